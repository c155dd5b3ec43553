r"""Test whether intervals of predicted numbers hold what they should.

With predictive distribution functions :math:`F_i` the probability integral transform of a row is :math:`u_i =
F_i(y_i)`, which is uniform from 0 to 1 where predictions are right (Dawid 1984, https://doi.org/10.2307/2981683;
Gneiting, Balabdaoui and Raftery 2007, https://doi.org/10.1111/j.1467-9868.2007.00587.x). The central interval of level
:math:`l` holds the row where :math:`|2 u_i - 1| \le l`. Of n right predictions the number that an interval holds is
binomial, and so is the number in a bin of the transforms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from bnnviz.errors import BnnvizError

LEVELS = np.linspace(0.05, 0.95, 19)


class Coverage(NamedTuple):
    """How many rows intervals hold, and how their transforms are spread.

    ``levels`` (levels,) of central intervals; of each ``share``, the rows that it holds, and ``low`` and ``high``,
    between which the share of right predictions is with the probability that was asked for. ``edges`` (bins + 1,) of
    the transforms; of each bin ``density``, its rows over what uniform ones would be, and ``density_low`` and
    ``density_high``, between which those of right predictions are. ``rows``: their number.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> found = diagnostics.coverage(np.random.default_rng(0).uniform(size=400))
    >>> bool(abs(found.share - found.levels).max() < 0.1)
    True
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
    """Return how many rows central intervals hold, by probability integral transforms.

    Parameters
    ----------
    transforms : ndarray, shape (rows,)
        From 0 to 1.
    levels : ndarray, shape (levels,)
        Of the intervals, between 0 and 1.
    bins : int, default 10
        Of equal width from 0 to 1.
    probability : float, default 0.95
        With which the share of each level, and the rows of each bin, are within their bands by chance.

    Raises
    ------
    BnnvizError
        If there are no rows, or one is not from 0 to 1.

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
