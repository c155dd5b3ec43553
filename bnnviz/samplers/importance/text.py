"""Warn of what is wrong with the weights of adaptive importance samplers."""

from __future__ import annotations

from typing import Any

from bnnviz.samplers.text import MoveText, percent

ALARM = 0.05  # weight ESS, as a share of the draws, below which the weights have collapsed


class WeightsText(MoveText):
    """Say where the weights have collapsed."""

    def warning(self, figures: dict[str, float]) -> tuple[str, list[dict[str, Any]]]:
        """Say where the weights have collapsed."""
        draws = figures.get("last_weighed", 0)
        if not draws:
            return "", []
        if figures["last_weight_ess"] == 0:
            return "No draw has a weight: U is finite at none of them. Begin elsewhere, or with a smaller sigma0.", []
        share = figures["last_weight_ess"] / draws
        if share >= ALARM:
            return "", []
        return (
            f"The weights have collapsed: weight ESS is {figures['last_weight_ess']:.1f} of {draws:,} draws"
            f" ({percent(share)}, under {percent(ALARM)}). Estimates rest on few draws, and"
            " their errors are too small.",
            [],
        )
