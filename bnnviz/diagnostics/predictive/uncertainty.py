r"""Measure predictive uncertainty: entropies, intervals, effective sample size of functions.

With the probabilities :math:`p_s(k)` of draws s, their mean :math:`\bar p`, and :math:`H(p) = -\sum_k p(k) \log p(k)`,

.. math:: H(\bar p) = \frac1S \sum_s H(p_s) + I,

the predictive entropy is the expected one plus the mutual information I of a row's class and the weights, which is
BALD's score (Houlsby, Huszar, Ghahramani and Lengyel 2011, equation 2, https://doi.org/10.48550/arXiv.1112.5745).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy

from bnnviz.diagnostics.mcmc.convergence import ess_each
from bnnviz.errors import BnnvizError

_ROUNDING = 1e-3  # tolerance of the sum of a row's probabilities


class ClassIntervals(NamedTuple):
    """Means and central intervals of class probabilities over draws, each of shape (rows, classes)."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


class FunctionEss(NamedTuple):
    """Effective sample sizes of class probabilities.

    ``each`` (rows, classes) is nan for constant probabilities or fewer than four draws per chain. ``median`` and
    ``lowest`` (the first decile) ignore nan. ``unknown`` is the number of nan.
    """

    each: np.ndarray
    median: float
    lowest: float
    unknown: int


def predictive_entropy(
    probabilities: np.ndarray, base: float = math.e, weights: np.ndarray | None = None
) -> np.ndarray:
    """Compute the entropy (rows,) of the mean of the class probabilities over draws.

    Parameters
    ----------
    probabilities : ndarray, shape (draws, rows, classes)
        Class probabilities, which sum to 1 over the last axis.
    base : float, default e
        Base of the logarithm: e for nats, 2 for bits.
    weights : ndarray or None, shape (draws,)
        Weights of the draws. None for equal weights.

    Raises
    ------
    BnnvizError
        If probabilities or weights are invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> sure = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])  # two draws that are sure, each of another class
    >>> diagnostics.predictive_entropy(sure, base=2).tolist()
    [1.0]
    """
    probabilities, shares = _checked(probabilities, weights)
    return _entropy(np.tensordot(shares, probabilities, 1), base)


def expected_entropy(probabilities: np.ndarray, base: float = math.e, weights: np.ndarray | None = None) -> np.ndarray:
    """Compute the mean over draws of the entropy of the class, (rows,).

    See `predictive_entropy` for parameters and errors.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> sure = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])  # two draws that are sure, each of another class
    >>> diagnostics.expected_entropy(sure).tolist()
    [0.0]
    """
    probabilities, shares = _checked(probabilities, weights)
    return np.tensordot(shares, _entropy(probabilities, base), 1)


def mutual_information(
    probabilities: np.ndarray, base: float = math.e, weights: np.ndarray | None = None
) -> np.ndarray:
    """Compute the mutual information of class and weights, (rows,), which is the predictive minus the expected entropy.

    It measures the disagreement between draws. See `predictive_entropy` for parameters and errors.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> sure = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])  # two draws that are sure, each of another class
    >>> diagnostics.mutual_information(sure, base=2).tolist()
    [1.0]
    """
    gap = predictive_entropy(probabilities, base, weights) - expected_entropy(probabilities, base, weights)
    # Negative values are due to rounding.
    return np.maximum(gap, 0.0)


def class_intervals(
    probabilities: np.ndarray, level: float = 0.95, weights: np.ndarray | None = None
) -> ClassIntervals:
    """Compute means and central credible intervals of class probabilities over draws.

    Parameters
    ----------
    probabilities : ndarray, shape (draws, rows, classes)
    level : float, default 0.95
        Probability of the intervals.
    weights : ndarray or None, shape (draws,)
        Weights of the draws. The ends of weighted intervals are inverses of the weighted distribution function.

    Raises
    ------
    BnnvizError
        If probabilities or weights are invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> chances = np.random.default_rng(0).dirichlet([2, 2, 2], size=(100, 5))
    >>> diagnostics.class_intervals(chances).mean.shape
    (5, 3)
    """
    equal = weights is None
    probabilities, shares = _checked(probabilities, weights)
    ends = [(1 - level) / 2, (1 + level) / 2]
    how = {} if equal else {"weights": shares, "method": "inverted_cdf"}
    low, high = np.quantile(probabilities, ends, axis=0, **how)
    return ClassIntervals(np.tensordot(shares, probabilities, 1), low, high)


def function_ess(probabilities: np.ndarray) -> FunctionEss:
    """Compute the bulk effective sample size of class probabilities.

    Weights of a network can be permuted without changing its function, so the effective sample size of the function is
    more relevant than that of the weights.

    Parameters
    ----------
    probabilities : ndarray, shape (chains, draws, rows, classes)
        Probabilities in the order of sampling.

    Raises
    ------
    BnnvizError
        If the shape is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> chances = np.random.default_rng(0).dirichlet([2, 2], size=(4, 100, 5))
    >>> diagnostics.function_ess(chances).unknown
    0
    """
    probabilities = np.asarray(probabilities, dtype=float)
    if probabilities.ndim != 4:
        raise BnnvizError(
            f"Give probabilities as (chains, draws, rows, classes), not of shape {probabilities.shape}.",
            "probabilities",
        )
    each = ess_each(probabilities.reshape(*probabilities.shape[:2], -1))
    known = each[np.isfinite(each)]
    median, lowest = np.quantile(known, [0.5, 0.1]) if known.size else (math.nan, math.nan)
    return FunctionEss(each.reshape(probabilities.shape[2:]), float(median), float(lowest), len(each) - len(known))


def _entropy(probabilities: np.ndarray, base: float) -> np.ndarray:
    return scipy.special.entr(probabilities).sum(-1) / math.log(base)


def _checked(probabilities: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities as float64, and shares (draws,) of sum 1."""
    probabilities = np.asarray(probabilities, dtype=float)
    if probabilities.ndim != 3 or not len(probabilities):
        raise BnnvizError(
            f"Give probabilities as (draws, rows, classes), not of shape {probabilities.shape}.", "probabilities"
        )
    # A nan makes the sum nan, for which comparisons are false.
    if not ((probabilities >= 0).all() and (np.abs(probabilities.sum(-1) - 1) < _ROUNDING).all()):
        raise BnnvizError(
            "Probabilities must be nonnegative with sum 1 over the classes, as from a softmax.", "probabilities"
        )
    if weights is None:
        return probabilities, np.full(len(probabilities), 1 / len(probabilities))
    weights = np.asarray(weights, dtype=float)
    if weights.shape != probabilities.shape[:1] or not (weights >= 0).all() or not 0 < weights.sum() < math.inf:
        raise BnnvizError(f"Give {len(probabilities)} nonnegative weights, one per draw, not all of them 0.", "weights")
    return probabilities, weights / weights.sum()
