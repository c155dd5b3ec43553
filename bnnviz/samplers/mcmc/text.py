"""What the Hamiltonian samplers say of their moves."""

from __future__ import annotations

from typing import Any

from bnnviz.samplers.text import Text


class LeapfrogText(Text):
    """Says what HMC and its relatives have in common: the step size."""

    def rows(self, state: Any) -> list[list[str]]:
        """Return the step size."""
        return [["Leapfrog step", f"{self.sampler.size(state.adaptation):.3g}", ""]]


class HMCText(LeapfrogText):
    """Says what became of trajectories."""

    def caption(self, state: Any, info: Any, chain: int) -> str:
        """Say what became of a chain's trajectory."""
        parts = (info.energy_error, info.acceptance_rate, info.jump_distance)
        error, probability, distance = (float(part[chain]) for part in parts)
        fate = f"accepted, {distance:.3g} away" if float(info.accepted[chain]) else "rejected: the chain stays"
        return (
            f"the energy changed by {error:.3g} along the trajectory; its end, of chance {probability:.2f}, was {fate}."
        )

    def mean_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return acceptance and how far a move leads."""
        return [["Acceptance; a move's length", f"{means['accepted']:.2f}; {means['jump_distance']:.3g}", ""]]

    def mean_words(self, means: dict[str, float]) -> str:
        """Return acceptance and how far a move leads."""
        accepted, distance = means["accepted"], means["jump_distance"]
        return f"of which {100 * accepted:.0f} % were accepted; a move leads {distance:.3g} away on average"


class NUTSText(LeapfrogText):
    """Says how trees have ended."""

    waiting = "The first tree has not ended yet."

    def caption(self, state: Any, info: Any, chain: int) -> str:
        """Say how a chain's tree has ended."""
        parts = (info.n_steps, info.acceptance_rate, info.jump_distance)
        leaves, probability, distance = (float(part[chain]) for part in parts)
        if float(info.diverging[chain]):
            end = "the energy's error ended it: it diverged"
        elif leaves + 1 >= 1 << self.sampler.deepest(state.adaptation):
            end = "it has doubled as often as it may"
        else:
            end = "it turned back"
        tree = f"a tree of {leaves:.0f} leapfrog steps, of mean chance {probability:.2f}; {end}."
        return f"{tree} The draw is {distance:.3g} off."

    def mean_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return acceptance, the trees' sizes, and the share that diverged."""
        share, size = means["diverging"], means["n_steps"]
        return [
            ["Acceptance; leapfrog steps of a tree", f"{means['acceptance_rate']:.2f}; {size:.3g}", ""],
            ["Trees that diverged", f"{100 * share:.2g} %", "bad" if share > 0.01 else ""],
        ]

    def mean_words(self, means: dict[str, float]) -> str:
        """Return the trees' sizes and the share that diverged."""
        size, share = means["n_steps"], means["diverging"]
        return f"each a tree of {size:.3g} leapfrog steps on average; {100 * share:.2g} % diverged"
