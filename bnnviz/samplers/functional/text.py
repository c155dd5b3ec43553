"""What the samplers of functionals say of their moves."""

from __future__ import annotations

from typing import Any

from bnnviz.samplers.mcmc.text import LeapfrogText


class FuncHMCText(LeapfrogText):
    """Says what became of functionals, and their ledger."""

    def caption(self, state: Any, info: Any, chain: int) -> str:
        """Say what became of a chain's functional, and its ledger."""
        parts = (info.energy_error, info.acceptance_rate, info.potential, info.entropy)
        error, probability, potential, entropy = (float(part[chain]) for part in parts)
        fate = "accepted" if float(info.accepted[chain]) else "rejected: the functional stays and turns back"
        return (
            f"the energy changed by {error:.3g}; the new functional, of chance {probability:.2f}, was {fate}."
            f" Mean of U {potential:.3g}, entropy {entropy:.3g}."
        )

    def mean_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return acceptance and entropy."""
        return [["Acceptance; entropy", f"{means['accepted']:.2f}; {means['entropy']:.3g}", ""]]

    def mean_words(self, means: dict[str, float]) -> str:
        """Return how many functionals were accepted."""
        return f"of which {100 * means['accepted']:.0f} % were accepted, each a whole distribution to draw from"
