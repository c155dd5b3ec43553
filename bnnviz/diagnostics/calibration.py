"""Whether stated chances come true."""

from __future__ import annotations

import numpy as np

_BINS = 15


def calibration_error(chances: np.ndarray, observed: np.ndarray, bins: int = _BINS) -> float:
    """Return the expected calibration error of predicted classes (Guo et al. 2017, equation 3).

    Rows are put in equal bins by the chance of their likeliest class; the error is the mean distance between a bin's
    mean chance and the share of its rows that are of that class, bins weighted by their rows.

    Parameters
    ----------
    chances : ndarray, shape (rows, classes)
    observed : ndarray, shape (rows,)
        Class numbers.
    bins : int, default 15
    """
    sure, right = chances.max(1), chances.argmax(1) == observed
    place = np.minimum((sure * bins).astype(int), bins - 1)
    # A bin's share of the rows times its gap is the sum of its gaps over all rows.
    gaps = np.bincount(place, weights=sure - right, minlength=bins)
    return float(np.abs(gaps).sum() / len(observed))
