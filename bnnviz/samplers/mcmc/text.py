"""Say what the moves of the Hamiltonian samplers did."""

from __future__ import annotations

from typing import Any

from bnnviz.samplers.text import MoveText


class LeapfrogText(MoveText):
    """Say what HMC and its relatives have in common: the step size."""

    def rows(self, state: Any) -> list[list[str]]:
        """Return the step size."""
        return [["Leapfrog step", f"{self.sampler.size(state.adaptation):.3g}", ""]]


class HMCText(LeapfrogText):
    """Say what became of trajectories."""

    move = (
        "the energy changed by {energy_error:.3g} along the trajectory; its end, of acceptance probability"
        " {acceptance_rate:.2f}, was {fate}."
    )
    table = {"Acceptance; a move's length": "{accepted:.2f}; {jump_distance:.3g}"}
    words = "of which {accepted:.0%} were accepted; a move leads {jump_distance:.3g} away on average"

    def more(self, state: Any, values: dict[str, float]) -> dict[str, Any]:
        """Say whether the trajectory's end was accepted."""
        accepted = f"accepted, {values['jump_distance']:.3g} away"
        return {"fate": accepted if values["accepted"] else "rejected: the chain stays"}


class NUTSText(LeapfrogText):
    """Say how trees have ended."""

    waiting = "The first tree has not ended yet."
    move = (
        "a tree of {n_steps:.0f} leapfrog steps, of mean acceptance probability {acceptance_rate:.2f}; {end}. The draw"
        " is {jump_distance:.3g} off."
    )
    words = "each a tree of {n_steps:.3g} leapfrog steps on average; {percent:.2g}% diverged"
    table = {"Acceptance; leapfrog steps of a tree": "{acceptance_rate:.2f}; {n_steps:.3g}"}

    def more(self, state: Any, values: dict[str, float]) -> dict[str, Any]:
        """Say what ended the tree."""
        if values["diverging"]:
            return {"end": "the energy's error ended it: it diverged"}
        whole = values["n_steps"] + 1 >= 1 << self.sampler.deepest(state.adaptation)
        return {"end": "it has doubled as often as it may" if whole else "it turned back"}

    def mean_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return acceptance, the trees' sizes, and the share that diverged."""
        share = means["diverging"]
        tone = "bad" if share > 0.01 else ""
        return [*super().mean_rows(means), ["Trees that diverged", f"{100 * share:.2g} %", tone]]

    def mean_words(self, means: dict[str, float]) -> str:
        """Return the trees' sizes and the share that diverged."""
        return super().mean_words(means | {"percent": 100 * means["diverging"]})
