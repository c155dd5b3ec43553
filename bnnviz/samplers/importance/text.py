"""What adaptive importance samplers warn of."""

from __future__ import annotations

from typing import Any

from bnnviz.samplers.text import Text

ALARM = 0.05  # of the draws: so few that they are worth


class WeightsText(Text):
    """Says where the weights have collapsed."""

    def warning(self, figures: dict[str, float]) -> tuple[str, list[dict[str, Any]]]:
        """Say where the weights have collapsed."""
        of = figures.get("of", 0)
        if not of:
            return "", []
        if figures["worth"] == 0:
            return "No draw has a weight: U is finite at none of them. Begin elsewhere, or with a smaller sigma0.", []
        share = figures["worth"] / of
        if share >= ALARM:
            return "", []
        return (
            f"The weights have collapsed: {of:,} draws are worth {figures['worth']:.1f} plain ones"
            f" ({100 * share:.2g} %, under {100 * ALARM:g} %). What is averaged over them is the word of a few draws,"
            " whatever its error says.",
            [],
        )
