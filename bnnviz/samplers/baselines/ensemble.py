"""Sample by deep ensembles."""

from __future__ import annotations

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, preset
from bnnviz.samplers.baselines.descent import Point
from bnnviz.samplers.budget import Budget, BudgetProposal

_AUTOMATIC_BATCH, _FEWEST_STEPS, _MOST_STEPS = 100, 50, 5000


@REGISTRY.add
class Ensemble(Point):
    """Deep ensemble: averages the predictions of networks trained from different random starts.

    A chain is a member, so more chains make a larger ensemble. After its descent by Adam all draws of a chain are its
    end point, so one draw per chain suffices. Disagreement between members indicates uncertainty. Members are modes,
    not posterior draws, and there is no criterion for a sufficient number. With weight decay each member's loss is U,
    including the prior's term; without it, as in the paper, the likelihood alone. The paper's adversarial training and
    learned variances are omitted. Source: Lakshminarayanan, Pritzel and Blundell 2017.
    """

    registered = "ensemble"
    title = "Deep ensemble"

    weight_decay = settings.Boolean(True, doc="Add the negative log prior to the loss of each member.")

    presets = [
        preset(
            "paper",
            "As in the paper",
            "Members are trained without a prior on mini-batches of 100 rows.",
            weight_decay=False,
            batch_size=100,
        ),
    ]

    @classmethod
    def proposal(cls, budget: Budget) -> BudgetProposal | None:
        """Return descents, in batches for many rows; None if too few steps fit."""
        batch = _AUTOMATIC_BATCH if budget.rows > 4 * _AUTOMATIC_BATCH else None
        most = budget.gradients * (1 if batch is None else budget.rows / (4 * batch))
        if most < _FEWEST_STEPS:
            return None
        steps = int(min(most, _MOST_STEPS))
        given = {"weight_decay": True, "batch_size": batch, "steps": steps}
        return BudgetProposal(given, 0, 1, f"{budget.chains} descents of {steps:,} steps fit in the time")

    @property
    def regular(self) -> bool:
        """Whether the prior's term is part of the loss."""
        return self.weight_decay
