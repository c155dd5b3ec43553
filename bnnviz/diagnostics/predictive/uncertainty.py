r"""Measure how sure predictions are, and why not: entropies, intervals, effective sample size of functions.

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

_ROUNDING = 1e-3  # that probabilities of one row may miss 1 by


class ClassIntervals(NamedTuple):
    """Of each row's class probabilities over the draws: mean and central interval, each (rows, classes).

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> chances = np.random.default_rng(0).dirichlet([2, 2, 2], size=(100, 5))
    >>> found = diagnostics.class_intervals(chances)
    >>> bool((found.low <= found.mean).all() and (found.mean <= found.high).all())
    True
    """

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


class FunctionEss(NamedTuple):
    """The effective sample size of the functions that draws are.

    ``each`` (rows, classes), nan where no draw differs or there are fewer than four of a chain; ``median`` and
    ``lowest``, the smallest decile, over those that are known (nan where none is); ``unknown``: how many are not.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> chances = np.random.default_rng(0).dirichlet([2, 2], size=(4, 100, 5))
    >>> diagnostics.function_ess(chances).median > 100
    True
    """

    each: np.ndarray
    median: float
    lowest: float
    unknown: int


def predictive_entropy(
    probabilities: np.ndarray, base: float = math.e, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the entropy (rows,) of the predictive distribution, which is the mean of the draws' probabilities.

    Parameters
    ----------
    probabilities : ndarray, shape (draws, rows, classes)
        Sum 1 over the classes.
    base : float, default e
        Of the logarithm: e gives nats, 2 bits.
    weights : ndarray or None, shape (draws,)
        What each draw counts; None: all the same.

    Raises
    ------
    BnnvizError
        If they are no probabilities, or weights do not fit.

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
    """Return the mean over the draws of their own entropies (rows,): what stays unsure once the weights are known.

    Parameters and errors as in `predictive_entropy`.

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
    """Return how much a row's class would tell of the weights (rows,): predictive minus expected entropy, from 0.

    It is the draws' disagreement. Parameters and errors as in `predictive_entropy`.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> sure = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])  # two draws that are sure, each of another class
    >>> diagnostics.mutual_information(sure, base=2).tolist()
    [1.0]
    """
    gap = predictive_entropy(probabilities, base, weights) - expected_entropy(probabilities, base, weights)
    # It is never below zero but for rounding.
    return np.maximum(gap, 0.0)


def class_intervals(
    probabilities: np.ndarray, level: float = 0.95, weights: np.ndarray | None = None
) -> ClassIntervals:
    """Return mean and central credible interval over the draws of each class's probability at each row.

    Parameters
    ----------
    probabilities : ndarray, shape (draws, rows, classes)
    level : float, default 0.95
        Share of the draws inside.
    weights : ndarray or None, shape (draws,)
        With weights an end is the smallest probability at which the weights of the draws up to it reach its share.

    Raises
    ------
    BnnvizError
        If they are no probabilities, or weights do not fit.

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
    """Return the bulk effective sample size of the probabilities themselves, for each row and class.

    Weights of a network may change places without changing what it says, so their own effective sample size may be
    that of nothing which matters; this is the one of the function.

    Parameters
    ----------
    probabilities : ndarray, shape (chains, draws, rows, classes)
        In the order in which the draws were made.

    Raises
    ------
    BnnvizError
        If the shape is another one.

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
    # A probability that is not a number makes a sum that is none, and no comparison with it is true.
    if not ((probabilities >= 0).all() and (np.abs(probabilities.sum(-1) - 1) < _ROUNDING).all()):
        raise BnnvizError(
            "Probabilities must be from 0, with sum 1 over the classes; give those of a softmax.", "probabilities"
        )
    if weights is None:
        return probabilities, np.full(len(probabilities), 1 / len(probabilities))
    weights = np.asarray(weights, dtype=float)
    if weights.shape != probabilities.shape[:1] or not (weights >= 0).all() or not 0 < weights.sum() < math.inf:
        raise BnnvizError(f"Give {len(probabilities)} weights from 0, one for each draw, not all of them 0.", "weights")
    return probabilities, weights / weights.sum()
