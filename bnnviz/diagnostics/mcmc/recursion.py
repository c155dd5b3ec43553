r"""Solve linear recursions: what a sampler with a step size is on a Gaussian.

.. math:: z_{n+1} = A z_n + \xi_n, \quad \xi_n \sim N(0, B), \qquad V = A V A^\top + B,

with the stationary covariance V where every eigenvalue of A lies inside the unit circle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

Recursion = Callable[[float], tuple[np.ndarray, np.ndarray]]

_FARTHEST = 1e6


class LogSlope(NamedTuple):
    """The slope of a straight line through points on two logarithmic axes, with its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> x = np.array([1.0, 2.0, 4.0])
    >>> round(diagnostics.log_slope(x, x**2, 0.1 * x**2).value, 6)
    2.0
    """

    value: float
    error: float


def forgetting(matrix: np.ndarray) -> float:
    """Return the largest absolute eigenvalue of A (k, k): what a step leaves of a start; from 1 on it diverges.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> diagnostics.forgetting(np.array([[0.5, 0.0], [0.0, -0.8]]))
    0.8
    """
    return float(np.abs(np.linalg.eigvals(matrix)).max())


def stationary_variance(matrix: np.ndarray, noise: np.ndarray) -> float:
    """Return the variance of the first coordinate in the end; nan where the recursion diverges.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> step = 1.0  # of Langevin dynamics on a standard normal distribution
    >>> round(diagnostics.stationary_variance(np.array([[1 - step / 2]]), np.array([[step]])), 6)
    1.333333
    """
    if forgetting(matrix) >= 1:
        return float("nan")
    return float(scipy.linalg.solve_discrete_lyapunov(matrix, noise)[0, 0])


def largest_stable(recursion: Recursion, begin: float) -> float:
    """Return the step size from which on a recursion diverges, searched for upwards from a size that does not.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> def langevin(step):  # of a standard normal distribution
    ...     return np.array([[1 - step / 2]]), np.array([[step]])
    >>> round(diagnostics.largest_stable(langevin, 0.1), 3)
    4.0
    """
    high = begin
    while forgetting(recursion(high)[0]) < 1:
        high *= 1.5
        if high > _FARTHEST * begin:
            return float("inf")
    return float(
        scipy.optimize.brentq(lambda size: forgetting(recursion(size)[0]) - 1, high / 1.5, high, xtol=1e-12 * high)
    )


def log_slope(x: np.ndarray, y: np.ndarray, error: np.ndarray) -> LogSlope | None:
    """Fit a line to log y against log x, points weighted by their errors; None for fewer than two.

    Parameters
    ----------
    x, y, error : ndarray, shape (n,)
        Points above 0 and the standard errors of y.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> x = np.array([1.0, 2.0, 4.0])
    >>> round(diagnostics.log_slope(x, 3 * x, 0.1 * x).value, 6)
    1.0
    """
    if len(x) < 2:
        return None
    weight = (y / error) ** 2  # the reciprocal variance of log y
    across = np.log(x) - np.average(np.log(x), weights=weight)
    spread = (weight * across**2).sum()
    return LogSlope(float((weight * across * np.log(y)).sum() / spread), float(spread**-0.5))
