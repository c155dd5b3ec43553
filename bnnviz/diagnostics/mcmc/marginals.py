r"""Estimate densities of single coordinates of draws, and correlations of pairs.

The correlation of coordinates i and j is :math:`r_{ij} = \Sigma_{ij} / \sqrt{\Sigma_{ii} \Sigma_{jj}}`, with
:math:`\Sigma` the covariance of the draws.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bnnviz import optional
from bnnviz.diagnostics.packages import array_stats


def density(values: np.ndarray, points: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Compute a kernel density estimate of values (n,) using ArviZ.

    The result is empty for fewer than four values, constant values, or without ArviZ.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> places, height = diagnostics.density(np.random.default_rng(0).normal(size=1000))
    >>> places.shape, height.shape
    ((200,), (200,))
    """
    if values.size < 4 or not np.ptp(values) > 0 or not optional.has("arviz_stats"):
        return np.empty(0), np.empty(0)
    x, y, _ = array_stats().kde(values.ravel(), grid_len=points)
    return x, y


def correlation(draws: np.ndarray) -> np.ndarray:
    """Compute the correlation matrix (dim, dim) of draws (n, dim).

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> x = np.arange(5.0)
    >>> diagnostics.correlation(np.column_stack([x, -x])).round(6).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.atleast_2d(np.corrcoef(draws.T))


def column_quantiles(values: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """Return quantiles of each column, interpolated linearly, as `numpy.quantile` does by default.

    For a few hundred values per column, sorting is several times faster than the selection of `numpy.quantile`.

    Parameters
    ----------
    values : ndarray, shape (n, columns)
        At least one row.
    shares : sequence of float
        Each in 0 to 1.

    Returns
    -------
    ndarray, shape (shares, columns)

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> diagnostics.column_quantiles(np.arange(10.0).reshape(5, 2), [0.5]).tolist()
    [[4.0, 5.0]]
    """
    ordered = np.sort(values.T, axis=1)  # along contiguous memory
    place = np.asarray(shares) * (len(values) - 1)
    below = place.astype(int)
    above = np.minimum(below + 1, len(values) - 1)
    low, high = ordered[:, below].T, ordered[:, above].T
    return low + (place - below)[:, None] * (high - low)
