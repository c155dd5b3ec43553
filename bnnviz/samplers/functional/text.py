"""Describe the moves of the samplers of functionals."""

from __future__ import annotations

from typing import Any

from bnnviz.samplers.mcmc.text import LeapfrogText


class FuncHMCText(LeapfrogText):
    """Describe the outcome of functionals, and their energy terms."""

    move = (
        "the energy changed by {energy_error:.3g}; the new functional, with acceptance probability"
        " {acceptance_rate:.2f}, was {fate}. Mean of U {potential:.3g}, entropy {entropy:.3g}."
    )
    table = {"Acceptance; entropy": "{accepted:.2f}; {entropy:.3g}"}
    words = "of which {accepted:.0%} were accepted, each a whole distribution to draw from"

    def more(self, state: Any, values: dict[str, float]) -> dict[str, Any]:
        """Return whether the functional was accepted."""
        return {"fate": "accepted" if values["accepted"] else "rejected: the functional stays and turns back"}
