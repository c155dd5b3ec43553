r"""Compute ROC curves of draws, with credible envelopes.

A draw's curve is :math:`t \mapsto (\mathrm{FPR}(t), \mathrm{TPR}(t))`, the shares of negative and of positive rows
with a score of at least t (Fawcett 2006, https://doi.org/10.1016/j.patrec.2005.10.010). At each false positive rate an
envelope contains the central share of the draws' values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bnnviz.diagnostics.packages import learn_metrics
from bnnviz.errors import BnnvizError

LEVELS = (0.8, 0.95, 0.99)
_GRID = 201


class Roc(NamedTuple):
    """ROC curves on one grid of false positive rates.

    ``fpr`` (points,) are false positive rates and ``mean`` (points,) the mean true positive rates. ``low`` and ``high``
    (levels, points) are pointwise envelopes with probabilities ``levels``. ``auc_mean`` and ``auc_sd`` are the mean and
    standard deviation of the area under the curve over draws.
    """

    fpr: np.ndarray
    mean: np.ndarray
    levels: tuple[float, ...]
    low: np.ndarray
    high: np.ndarray
    auc_mean: float
    auc_sd: float


def roc_envelopes(
    probabilities: np.ndarray,
    observed: np.ndarray,
    weights: np.ndarray | None = None,
    levels: tuple[float, ...] = LEVELS,
) -> Roc:
    """Compute the mean ROC curve over draws and pointwise credible envelopes.

    Parameters
    ----------
    probabilities : ndarray, shape (draws, rows)
        Score of each row for each draw, higher for positive rows.
    observed : ndarray of bool, shape (rows,)
        Whether each row is positive.
    weights : ndarray or None, shape (draws,)
        None for equal weights.
    levels : tuple of float, default (0.8, 0.95, 0.99)
        Probabilities of the envelopes.

    Returns
    -------
    Roc
        Curves with linear interpolation between points.

    Raises
    ------
    BnnvizError
        If all rows have the same class.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> rng, observed = np.random.default_rng(0), np.arange(100) % 2
    >>> found = diagnostics.roc_envelopes(0.5 * observed + 0.5 * rng.uniform(size=(20, 100)), observed)
    >>> round(found.auc_mean, 6)
    1.0
    """
    observed = np.asarray(observed, dtype=bool)
    if observed.all() or not observed.any():
        raise BnnvizError("A ROC curve requires rows of both classes, but all rows have the same class.", "observed")
    metrics = learn_metrics()
    grid = np.linspace(0.0, 1.0, _GRID)
    curves, areas = np.empty((len(probabilities), _GRID)), np.empty(len(probabilities))
    for k, scores in enumerate(probabilities):
        fpr, tpr, _ = metrics.roc_curve(observed, scores)
        curves[k], areas[k] = np.interp(grid, fpr, tpr), metrics.auc(fpr, tpr)
    shares = (
        np.full(len(probabilities), 1 / len(probabilities))
        if weights is None
        else np.asarray(weights) / np.sum(weights)
    )
    tails = np.array([[(1 - level) / 2, (1 + level) / 2] for level in levels])
    low, high = np.quantile(curves, tails.T, axis=0, weights=shares, method="inverted_cdf")
    area = float(shares @ areas)
    spread = float(np.sqrt(max(shares @ (areas - area) ** 2, 0.0)))
    return Roc(grid, shares @ curves, tuple(levels), low, high, area, spread)
