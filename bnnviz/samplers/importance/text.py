"""Warn of collapsed weights of adaptive importance samplers."""

from __future__ import annotations

from bnnviz.messages import Message
from bnnviz.samplers.text import MoveText

ALARM = 0.05  # weight ESS, as a share of the draws, below which the weights have collapsed


class WeightsText(MoveText):
    """Warnings of collapsed weights."""

    def warnings(self, figures: dict[str, float]) -> list[Message]:
        """Warn if the weights have collapsed."""
        draws, ess = figures.get("last_weighed", 0), figures.get("last_weight_ess", 0.0)
        if not draws or ess >= ALARM * draws:
            return []
        if ess == 0:
            return [Message("no_weights")]
        return [Message("collapsed_weights", ess=ess, draws=draws, percent=100 * ess / draws, least=100 * ALARM)]
