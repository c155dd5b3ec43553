r"""Compute quantiles of many columns at once.

For sorted values :math:`x_{(0)} \le \dots \le x_{(n-1)}` the quantile of level q is
:math:`x_{(j)} + (h - j)(x_{(j+1)} - x_{(j)})` with :math:`h = q (n - 1)` and :math:`j = \lfloor h \rfloor` (Hyndman and
Fan 1996, definition 7, https://doi.org/10.1080/00031305.1996.10473566).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


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
