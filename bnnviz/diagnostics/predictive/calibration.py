r"""Test the calibration of predicted probabilities.

Rows are binned into :math:`B_1, \dots, B_M` by the probability of their most probable class, the confidence. The
expected calibration error (Guo, Pleiss, Sun and Weinberger 2017, equation 3,
https://proceedings.mlr.press/v70/guo17a.html) is

.. math:: \mathrm{ECE} = \sum_{m=1}^M \frac{|B_m|}{n} \left| \mathrm{acc}(B_m) - \mathrm{conf}(B_m) \right|.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bnnviz.diagnostics.predictive.intervals import share_interval
from bnnviz.errors import BnnvizError

_BINS = 15
PAPER_BINS = 10  # of the PDMP paper


class Reliability(NamedTuple):
    """A reliability diagram.

    ``edges`` (bins + 1,) are the edges of the bins. For each bin, ``count`` is the number of rows, ``confidence`` the
    mean probability of the predicted class, ``accuracy`` the proportion of correct predictions, and ``low`` and
    ``high`` its interval, or nan for empty bins. ``ece`` is the expected calibration error, from 0 to 1.
    """

    edges: np.ndarray
    count: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ece: float


def calibration_error(probabilities: np.ndarray, observed: np.ndarray, bins: int = _BINS) -> float:
    """Compute the expected calibration error with bins of equal width.

    Parameters
    ----------
    probabilities : ndarray, shape (rows, classes)
    observed : ndarray, shape (rows,)
        Class numbers.
    bins : int, default 15

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> diagnostics.calibration_error(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 1]))
    0.0
    """
    sure, right, place = _binned(probabilities, observed, bins)
    # The share of a bin times its gap is the sum of its gaps over all rows.
    gaps = np.bincount(place, weights=sure - right, minlength=bins)
    return float(np.abs(gaps).sum() / len(observed))


def reliability(
    probabilities: np.ndarray, observed: np.ndarray, bins: int = PAPER_BINS, level: float = 0.95
) -> Reliability:
    """Compute the accuracy of predicted classes as a function of their confidence.

    Parameters
    ----------
    probabilities : ndarray, shape (rows, classes)
        Predicted class probabilities.
    observed : ndarray, shape (rows,)
        Class numbers.
    bins : int, default 10
        Number of bins of equal width from 0 to 1. The default of `calibration_error` and `class_metrics` is 15.
    level : float, default 0.95
        Level of Wilson's intervals.

    Raises
    ------
    BnnvizError
        If there are no rows, or the numbers of rows are inconsistent.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> chances = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
    >>> found = diagnostics.reliability(chances, np.array([0, 0, 1, 0]))
    >>> int(found.count.sum()), 0 < found.ece < 1
    (4, True)
    """
    probabilities, observed = np.asarray(probabilities, dtype=float), np.asarray(observed)
    if probabilities.ndim != 2 or not len(probabilities) or observed.shape != probabilities.shape[:1]:
        raise BnnvizError(
            "Give probabilities of shape (rows, classes) and one observation per row, not shapes"
            f" {probabilities.shape} and {observed.shape}.",
            "probabilities",
        )
    sure, right, place = _binned(probabilities, observed, bins)
    count, hits = np.bincount(place, minlength=bins), np.bincount(place, weights=right, minlength=bins)
    ends = [share_interval(k, n, level) if n else (np.nan, np.nan) for k, n in zip(hits, count, strict=True)]
    low, high = np.array(ends).T
    return Reliability(
        np.linspace(0.0, 1.0, bins + 1),
        count,
        _shares(np.bincount(place, weights=sure, minlength=bins), count),
        _shares(hits, count),
        low,
        high,
        calibration_error(probabilities, observed, bins),
    )


def _binned(probabilities: np.ndarray, observed: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each row the probability of its most probable class, whether it is of that class, and its bin."""
    sure, right = probabilities.max(1), probabilities.argmax(1) == observed
    return sure, right, np.minimum((sure * bins).astype(int), bins - 1)


def _shares(sums: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.divide(sums, count, out=np.full(len(count), np.nan), where=count > 0)
