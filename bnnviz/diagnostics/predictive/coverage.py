r"""Test the coverage of predictive intervals.

With predictive distribution functions :math:`F_i` the probability integral transform of a row is :math:`u_i =
F_i(y_i)`, which is uniform from 0 to 1 for calibrated predictions (Dawid 1984, https://doi.org/10.2307/2981683;
Gneiting, Balabdaoui and Raftery 2007, https://doi.org/10.1111/j.1467-9868.2007.00587.x). The central interval of level
:math:`l` contains the row if :math:`|2 u_i - 1| \le l`. For n calibrated predictions the number of rows in an interval
is binomial, and so is the number in a bin of the transforms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from bnnviz.errors import BnnvizError

LEVELS = np.linspace(0.05, 0.95, 19)


class Coverage(NamedTuple):
    """Coverage of predictive intervals and distribution of probability integral transforms.

    ``levels`` (levels,) are the levels of central intervals, ``share`` the proportion of covered rows, and ``low`` and
    ``high`` its limits for calibrated predictions. ``edges`` (bins + 1,) are bins of the transforms, ``density`` the
    density in each bin, and ``density_low`` and ``density_high`` its limits for calibrated predictions. ``rows`` is the
    number of rows.
    """

    levels: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    edges: np.ndarray
    density: np.ndarray
    density_low: float
    density_high: float
    rows: int


def coverage(
    transforms: np.ndarray, levels: np.ndarray = LEVELS, bins: int = 10, probability: float = 0.95
) -> Coverage:
    """Compute the coverage of central intervals from probability integral transforms.

    Parameters
    ----------
    transforms : ndarray, shape (rows,)
        Probability integral transforms, between 0 and 1.
    levels : ndarray, shape (levels,)
        Levels of the intervals, between 0 and 1.
    bins : int, default 10
        Number of equal-width bins from 0 to 1.
    probability : float, default 0.95
        Probability of the limits for each level and each bin under calibration.

    Raises
    ------
    BnnvizError
        If there are no rows, or a transform is outside 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> found = diagnostics.coverage(np.array([0.1, 0.4, 0.6, 0.9]), levels=np.array([0.5]))
    >>> float(found.share[0]), found.rows
    (0.5, 4)
    """
    u, levels = np.asarray(transforms, dtype=float), np.asarray(levels, dtype=float)
    if u.ndim != 1 or not len(u) or not ((u >= 0) & (u <= 1)).all():
        raise BnnvizError("Give probability integral transforms of rows, each from 0 to 1.", "transforms")
    rows = len(u)
    distance = np.sort(np.abs(2 * u - 1))
    held = np.searchsorted(distance, levels, side="right")
    low, high = scipy.stats.binom.interval(probability, rows, levels)
    counts, edges = np.histogram(u, bins, (0.0, 1.0))
    ends = np.array(scipy.stats.binom.interval(probability, rows, 1 / bins)) * bins / rows
    return Coverage(
        levels, held / rows, low / rows, high / rows, edges, counts * bins / rows, float(ends[0]), float(ends[1]), rows
    )
