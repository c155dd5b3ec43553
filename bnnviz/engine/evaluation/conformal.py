r"""Correct quantiles of predictions by held-out rows: split conformal prediction.

For a level :math:`\tau > 1/2` the predicted quantile :math:`q_\tau(x)` becomes :math:`q_\tau(x) + c \, s(x)` with the
predictive sd s, where c is the :math:`\lceil (n + 1) \tau \rceil`-th smallest :math:`(y_i - q_\tau(x_i)) / s(x_i)` of
the n held-out rows; levels below 1/2 are mirrored. The error of a new row is exchangeable with theirs, so its rank is
uniform and the observation is below the corrected quantile with probability :math:`\tau` at least. Quantiles are
corrected in this way by Romano, Patterson and Candès (2019, https://arxiv.org/abs/1905.03222), with s = 1.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bnnviz.data import DataSet
from bnnviz.engine.evaluation.metrics import NetworkDraws
from bnnviz.engine.evaluation.predictive_distribution import PredictiveDistribution, predict
from bnnviz.errors import BnnvizError

_ROUNDING = 1e-9


def conformalised(
    given: NetworkDraws, found: PredictiveDistribution, draws: int | None = None
) -> PredictiveDistribution:
    """Return a prediction with quantiles that are corrected by the held-out rows of the network's data."""
    data = given.target.data_set
    if found.task != "regression" or not isinstance(data, DataSet):
        raise BnnvizError("A conformal correction requires a regression on a table with held-out rows.", "conformal")
    levels, rows = sorted(found.quantiles), len(data.y_test)
    share = max((max(level, 1 - level) for level in levels if level != 0.5), default=0.0)
    if math.ceil((rows + 1) * share - _ROUNDING) > rows:
        raise BnnvizError(
            f"A conformal correction of the {max(levels):g} quantile requires at least"
            f" {math.ceil(share / (1 - share) - _ROUNDING)} held-out rows, but there are {rows}. Choose a narrower"
            " interval.",
            "conformal",
        )
    seen = predict(given, data.x_test, levels, draws=draws)
    moved = []
    for level in levels:
        side = np.sign(level - 0.5)
        errors = np.sort(side * (data.y_test - seen.quantiles[level]) / seen.sd, axis=0)
        rank = math.ceil((rows + 1) * max(level, 1 - level) - _ROUNDING)
        moved.append(found.quantiles[level] + side * errors[rank - 1] * found.sd)
    # The coverage of an interval given the held-out rows has a beta distribution.
    held = max(levels) - min(levels)
    margin = 2 * math.sqrt(held * (1 - held) / (rows + 2))
    note = (
        f"Quantiles are corrected by {rows} held-out rows: the coverage of {held:.0%} intervals varies by {margin:.0%}"
        " with the choice of these rows."
    )
    # Corrections of neighbouring levels may cross.
    return replace(found, quantiles=dict(zip(levels, np.sort(moved, axis=0), strict=True)), note=note)
