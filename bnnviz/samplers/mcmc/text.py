"""Describe the moves of the Hamiltonian samplers."""

from __future__ import annotations

from typing import Any, ClassVar

from bnnviz.samplers.text import MoveText, percent


class LeapfrogText(MoveText):
    """Texts shared by HMC and related samplers: the step size, and the divergent share."""

    #: The object that may diverge.
    diverged: ClassVar[str] = "Trajectories"

    def rows(self, state: Any) -> list[list[str]]:
        """Return the step size."""
        return [["Leapfrog step", f"{self.sampler.size(state.adaptation):.3g}", ""]]

    def mean_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return acceptance, lengths, and the divergent share if moves report it."""
        rows, share = super().mean_rows(means), means.get("diverging")
        if share is None:
            return rows
        return [*rows, [f"{self.diverged} that diverged", percent(share), "bad" if share > 0.01 else ""]]

    def mean_words(self, means: dict[str, float]) -> str:
        """Return acceptance, lengths, and the divergent share."""
        return super().mean_words(means | {"percent": 100 * means.get("diverging", 0.0)})


class HMCText(LeapfrogText):
    """Describe the outcome of trajectories."""

    move = (
        "the energy changed by {energy_error:.3g} along the trajectory; its end, with acceptance probability"
        " {acceptance_rate:.2f}, was {fate}."
    )
    table = {"Acceptance; a move's length": "{acceptance_rate:.2f}; {jump_distance:.3g}"}
    words = (
        "of which {accepted:.0%} were accepted; a move leads {jump_distance:.3g} away on average; {percent:.2g}%"
        " diverged"
    )

    def more(self, state: Any, values: dict[str, float]) -> dict[str, Any]:
        """Return whether the trajectory's end was accepted."""
        if values["diverging"]:
            return {"fate": "rejected: it diverged"}
        accepted = f"accepted, {values['jump_distance']:.3g} away"
        return {"fate": accepted if values["accepted"] else "rejected: the chain stays"}


class NUTSText(LeapfrogText):
    """Describe how trees ended."""

    diverged = "Trees"
    waiting = "The first tree has not ended yet."
    move = (
        "a tree of {n_steps:.0f} leapfrog steps with mean acceptance probability {acceptance_rate:.2f}; {end}. The draw"
        " is {jump_distance:.3g} away from the previous one."
    )
    words = "each a tree of {n_steps:.3g} leapfrog steps on average; {percent:.2g}% diverged"
    table = {"Acceptance; leapfrog steps of a tree": "{acceptance_rate:.2f}; {n_steps:.3g}"}

    def more(self, state: Any, values: dict[str, float]) -> dict[str, Any]:
        """Return the reason why the tree ended."""
        if values["diverging"]:
            return {"end": "the energy error ended it: it diverged"}
        deepest = "it reached the maximum depth"
        return {"end": deepest if values["reached_max_treedepth"] else "it turned back"}

    def mean_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return acceptance, the trees' sizes, and the shares that diverged or reached the maximum depth."""
        share = means["reached_max_treedepth"]
        largest = ["Trees at maximum depth", percent(share), "bad" if share > 0.01 else ""]
        return [*super().mean_rows(means), *([largest] if share else [])]
