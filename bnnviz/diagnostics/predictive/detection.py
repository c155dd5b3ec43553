r"""Measure how well a score distinguishes out-of-distribution (OOD) from in-distribution rows, and its distribution.

For scores :math:`S_\mathrm{in}` and :math:`S_\mathrm{out}` of random rows of each kind,

.. math::
    \mathrm{AUROC} = P(S_\mathrm{out} > S_\mathrm{in}) + \tfrac12 P(S_\mathrm{out} = S_\mathrm{in}), \qquad
    \mathrm{FPR95} = P(S_\mathrm{in} \ge t) \text{ with } P(S_\mathrm{out} \ge t) \ge 0.95

(Hendrycks and Gimpel 2017, https://doi.org/10.48550/arXiv.1610.02136; Liang, Li and Srikant 2018,
https://doi.org/10.48550/arXiv.1706.02690).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from bnnviz.diagnostics.packages import learn_metrics
from bnnviz.errors import BnnvizError

TRUE_POSITIVES = 0.95
_RESAMPLES = 500
_BINS = 40
_POINTS = 200


class Detection(NamedTuple):
    """Performance of a score for detecting out-of-distribution rows, with intervals.

    ``auroc`` is the area under the ROC curve. ``fpr95`` is the false positive rate at a true positive rate of 95%.
    """

    auroc: float
    auroc_low: float
    auroc_high: float
    fpr95: float
    fpr95_low: float
    fpr95_high: float


class Steps(NamedTuple):
    """Points ``x`` and ``y`` of a step function."""

    x: np.ndarray
    y: np.ndarray


def detection(
    inside: np.ndarray, outside: np.ndarray, level: float = 0.95, resamples: int = _RESAMPLES, seed: int = 0
) -> Detection:
    """Evaluate a score for detecting out-of-distribution rows, which are the positive class.

    Parameters
    ----------
    inside : ndarray, shape (rows,)
        Scores of in-distribution rows, such as predictive entropies.
    outside : ndarray, shape (other rows,)
        Scores of out-of-distribution rows, which should be higher.
    level : float, default 0.95
        Level of the bootstrap percentile intervals, which resample rows of both sets.
    resamples, seed : int

    Raises
    ------
    BnnvizError
        If a set has fewer than two rows, or a score is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> rng = np.random.default_rng(0)
    >>> found = diagnostics.detection(rng.normal(0, 1, 100), rng.normal(2, 1, 100))
    >>> found.auroc_low < found.auroc < found.auroc_high
    True
    """
    inside, outside = _scores(inside, "inside"), _scores(outside, "outside")
    found = scipy.stats.bootstrap(
        (inside, outside),
        _figures,
        n_resamples=resamples,
        vectorized=False,
        confidence_level=level,
        method="percentile",
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    area, rate = _figures(inside, outside)
    return Detection(*map(float, (area, found.low[0], found.high[0], rate, found.low[1], found.high[1])))


def score_histogram(values: np.ndarray, top: float, bins: int = _BINS) -> Steps:
    """Compute a histogram of scores: the proportion of rows (bins,) and the edges (bins + 1,).

    Parameters
    ----------
    values : ndarray, shape (rows,)
        Nonnegative scores. Values above ``top`` are clipped.
    top : float
        Upper edge of the last bin, such as the logarithm of the number of classes for entropies.
    bins : int, default 40

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> float(diagnostics.score_histogram(np.array([0.1, 0.4, 0.4, 0.9]), top=1.0, bins=2).y[0])
    0.75
    """
    count, edges = np.histogram(np.clip(_scores(values, "values", 1), 0.0, top), bins=bins, range=(0.0, top))
    return Steps(edges, count / count.sum())


def score_ecdf(values: np.ndarray, points: int = _POINTS) -> Steps:
    """Compute the empirical distribution function of scores at selected steps.

    Parameters
    ----------
    values : ndarray, shape (rows,)
    points : int, default 200
        Maximum number of evenly spaced steps, including the first and the last.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> diagnostics.score_ecdf(np.array([0.1, 0.4, 0.4, 0.9])).x.tolist()
    [0.1, 0.4, 0.9]
    """
    cdf = scipy.stats.ecdf(_scores(values, "values", 1)).cdf
    taken = np.unique(np.linspace(0, len(cdf.quantiles) - 1, points).astype(int))
    return Steps(cdf.quantiles[taken], cdf.probabilities[taken])


def _figures(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    metrics = learn_metrics()
    ood = np.repeat([False, True], [len(inside), len(outside)])
    fpr, tpr, _ = metrics.roc_curve(ood, np.concatenate([inside, outside]), drop_intermediate=False)
    return np.array([metrics.auc(fpr, tpr), fpr[np.argmax(tpr >= TRUE_POSITIVES)]])


def _scores(values: np.ndarray, field: str, least: int = 2) -> np.ndarray:
    values = np.asarray(values, dtype=float).ravel()
    if len(values) < least or not np.isfinite(values).all():
        raise BnnvizError(
            f"{field} has {len(values)} scores, or one that is not finite; give at least {least} finite ones.", field
        )
    return values
