r"""Show the distribution of squared errors of test rows: a box and a violin of :math:`\log_{10} (\hat y_i - y_i)^2`.

A whisker ends at the last value within 1.5 heights of the box. The violin is a kernel estimate of the density (Hintze
and Nelson 1998, https://doi.org/10.1080/00031305.1998.10480559).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

_POINTS = 160
_REACH = 1.5  # maximum length of a whisker, in heights of the box
_MOST = 200  # maximum number of stored outliers


class ErrorSpread(NamedTuple):
    """Statistics of the decimal logarithms of squared errors for box and violin plots.

    ``low``, ``q1``, ``median``, ``q3`` and ``high`` define the box and its whiskers; ``outside`` contains up to 200
    outliers; ``y`` and ``density`` (points,) define the violin; ``mean`` is the logarithm of the mean squared error;
    ``zeros`` is the number of omitted rows with zero error.
    """

    low: float
    q1: float
    median: float
    q3: float
    high: float
    outside: np.ndarray
    y: np.ndarray
    density: np.ndarray
    mean: float
    zeros: int


def error_spread(squared: np.ndarray) -> ErrorSpread | None:
    """Compute box and violin statistics of squared errors, or None if all errors are zero.

    Parameters
    ----------
    squared : ndarray, shape (rows,)
        Squared errors.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> diagnostics.error_spread(np.zeros(10)) is None
    True
    """
    squared = np.asarray(squared, dtype=float)
    values = np.log10(squared[squared > 0])
    if not len(values):
        return None
    q1, median, q3 = np.quantile(values, [0.25, 0.5, 0.75])
    reach = _REACH * (q3 - q1)
    inside = values[(values >= q1 - reach) & (values <= q3 + reach)]
    outside = np.sort(values[(values < q1 - reach) | (values > q3 + reach)])
    if len(outside) > _MOST:
        outside = outside[np.linspace(0, len(outside) - 1, _MOST).astype(int)]
    y = density = np.empty(0)
    if np.ptp(values) != 0:
        y = np.linspace(values.min(), values.max(), _POINTS)
        density = scipy.stats.gaussian_kde(values)(y)
    return ErrorSpread(
        low=float(inside.min()),
        q1=float(q1),
        median=float(median),
        q3=float(q3),
        high=float(inside.max()),
        outside=outside,
        y=y,
        density=density,
        mean=float(np.log10(squared.mean())),
        zeros=int((squared == 0).sum()),
    )
