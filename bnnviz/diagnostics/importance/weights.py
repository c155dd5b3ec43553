r"""Analyse weighted draws: effective sample size, estimates, and unweighted resampling.

With weights :math:`w_i` and their shares :math:`\bar w_i = w_i / \sum_j w_j`,

.. math::
    \hat\mu = \sum_i \bar w_i f(x_i), \qquad
    \mathrm{ESS} = \frac{1}{\sum_i \bar w_i^2}, \qquad
    \mathrm{se}(\hat\mu)^2 = \sum_i \bar w_i^2 (f(x_i) - \hat\mu)^2

(Kong, Liu and Wong 1994, https://doi.org/10.1080/01621459.1994.10476469; Owen 2013, section 9.2,
https://artowen.su.domains/mc/).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bnnviz import optional
from bnnviz.diagnostics.packages import array_stats


class Weighted(NamedTuple):
    """Means (dim,) and covariance (dim, dim) of weighted draws, with standard errors."""

    mean: np.ndarray
    mean_se: np.ndarray
    cov: np.ndarray
    variance_se: np.ndarray


def normalised(logs: np.ndarray) -> np.ndarray:
    """Return normalised weights, or zeros if all weights are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> diagnostics.normalised(np.log([1.0, 3.0])).round(6).tolist()
    [0.25, 0.75]
    """
    logs = np.asarray(logs, dtype=float)
    most = logs.max(initial=-math.inf)
    if not math.isfinite(most):
        return np.zeros_like(logs)
    weights = np.exp(logs - most)
    return weights / weights.sum()


def weight_ess(logs: np.ndarray) -> float:
    """Compute the effective sample size of weighted draws, 1 / sum of squared normalised weights.

    Regions without draws are not detected. The result is 0 if all weights are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> round(diagnostics.weight_ess(np.zeros(10)), 6), diagnostics.weight_ess(np.array([0.0, -1000.0]))
    (10.0, 1.0)
    """
    squares = float((normalised(logs) ** 2).sum())
    return 1 / squares if squares > 0 else 0.0


def pareto_k(logs: np.ndarray) -> float:
    r"""Estimate the tail index :math:`\hat k` of importance weights by fitting a generalised Pareto distribution.

    Source: Vehtari, Simpson, Gelman, Yao and Gabry 2024, https://jmlr.org/papers/v25/19-556.html.

        Estimates are reliable if the value is below 0.7. Regions without draws are not detected (see
        `bnnviz.diagnostics.variance_inflation`). The result is nan for fewer than 25 draws, equal weights in the tail,
        or without ArviZ.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> logs = np.random.default_rng(0).normal(size=1000)
    >>> diagnostics.pareto_k(logs) < 0.7
    True
    """
    found = np.asarray(logs, dtype=float).ravel()
    found = found[np.isfinite(found)]
    if len(found) < 25 or np.ptp(found) == 0 or not optional.has("arviz_stats"):
        return float("nan")
    # ArviZ takes log likelihoods, whose reciprocals are the weights of leave-one-out. If weights differ by many orders
    # of magnitude, the smaller ones are lost to rounding.
    with np.errstate(all="ignore"):
        try:
            return float(array_stats().psislw(-found)[1])
        except ValueError:  # the largest weights are all equal
            return float("nan")


def log_evidence(logs: np.ndarray) -> tuple[float, float]:
    """Estimate the log evidence, the logarithm of the integral of exp(-U), with its standard error.

    The estimate is the logarithm of the mean weight. Its standard error assumes independent draws and is too small if
    few draws dominate the weights. The result is (-inf, nan) if all weights are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> value, error = diagnostics.log_evidence(np.zeros(100))
    >>> value, error
    (0.0, 0.0)
    """
    logs = np.asarray(logs, dtype=float).ravel()
    most = logs.max(initial=-math.inf)
    if not math.isfinite(most):
        return -math.inf, float("nan")
    scaled = np.exp(logs - most)
    mean = scaled.mean()
    error = scaled.std(ddof=1) / math.sqrt(len(scaled)) if len(scaled) > 1 else float("nan")
    return float(most + math.log(mean)), float(error / mean)


def weighted_moments(draws: np.ndarray, logs: np.ndarray) -> Weighted:
    """Compute self-normalised estimates of mean and covariance.

    Parameters
    ----------
    draws : ndarray, shape (..., dim)
    logs : ndarray, shape (...)
        Log weights of the draws.

    Returns
    -------
    Weighted
        Standard errors by the delta method.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> draws = np.array([[0.0], [1.0]])
    >>> diagnostics.weighted_moments(draws, np.log([1.0, 3.0])).mean.round(6).tolist()
    [0.75]
    """
    x = np.asarray(draws, dtype=float).reshape(-1, np.shape(draws)[-1])
    weights = normalised(logs).ravel()[:, None]
    mean = (weights * x).sum(0)
    apart = x - mean
    cov = (weights * apart).T @ apart
    spread = apart**2 - np.diag(cov)
    return Weighted(
        mean,
        np.sqrt((weights**2 * apart**2).sum(0)),
        cov,
        np.sqrt((weights**2 * spread**2).sum(0)),
    )


def systematic(logs: np.ndarray, count: int, offset: float = 0.5) -> np.ndarray:
    """Resample draws systematically and return their indices (count,).

    Parameters
    ----------
    logs : ndarray, shape (draws,)
    count : int
    offset : float, in [0, 1)
        Offset of the first point. Use a uniform random number for unbiased resampling.

    Raises
    ------
    ValueError
        If no draw has a weight.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> diagnostics.systematic(np.log([0.5, 0.25, 0.25]), 4).tolist()
    [0, 0, 1, 2]
    """
    shares = normalised(logs)
    if not shares.any():
        raise ValueError("No draw has a weight.")
    places = (np.arange(count) + offset) / count * shares.sum()
    return np.minimum(np.searchsorted(shares.cumsum(), places), len(shares) - 1)
