r"""Estimate mean and covariance of draws with their Monte Carlo errors, by batch means.

With b batches of averages :math:`\bar x_1, \dots, \bar x_b` the standard error of their mean is

.. math:: \mathrm{se} = \sqrt{\frac{1}{b (b - 1)} \sum_{k=1}^b (\bar x_k - \bar x)^2}

(Flegal and Jones 2010, https://doi.org/10.1214/09-AOS735).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_BATCHES = 64


class Moments(NamedTuple):
    """Mean (dim,), covariance (dim, dim), and a standard error for each entry."""

    mean: np.ndarray
    mean_se: np.ndarray
    cov: np.ndarray
    cov_se: np.ndarray


def moments_with_errors(draws: np.ndarray) -> Moments:
    """Compute means and covariances of draws (chains, draws, dim) with standard errors using batch means.

    Chains are divided into about 64 batches of equal length, or one batch per chain if there are more chains. Batch
    means account for autocorrelation within batches.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> found = diagnostics.moments_with_errors(np.random.default_rng(0).normal(size=(4, 500, 2)))
    >>> found.mean.shape
    (2,)
    """
    chains, count, dim = draws.shape
    pooled = draws.reshape(-1, dim)
    mean = pooled.mean(0)
    per_chain = max(1, min(-(-_BATCHES // chains), count))
    length = count // per_chain
    batches = (draws[:, : per_chain * length] - mean).reshape(chains * per_chain, length, dim)
    products = np.einsum("bli,blj->bij", batches, batches) / length
    root = np.sqrt(len(batches))
    if len(batches) < 2:
        unknown = np.full(dim, np.nan)
        return Moments(mean, unknown, np.cov(pooled.T, bias=True).reshape(dim, dim), np.full((dim, dim), np.nan))
    return Moments(
        mean,
        batches.mean(1).std(0, ddof=1) / root,
        (pooled - mean).T @ (pooled - mean) / len(pooled),
        products.std(0, ddof=1) / root,
    )


class PathMoments(NamedTuple):
    """Means and variances (dim,) with standard errors, and the path time per chain."""

    mean: np.ndarray
    mean_se: np.ndarray
    variance: np.ndarray
    variance_se: np.ndarray
    time: float


def path_moments(sums: np.ndarray) -> PathMoments | None:
    r"""Compute moments from integrals along the paths of chains, or None for fewer than two segments.

    Over a path of length T the mean is :math:`T^{-1} \int_0^T x(t)\,\mathrm{d}t`. The standard errors are those of a
    ratio of batch means, as in `moments_with_errors`.

    All chains are truncated at the same path time, because truncation at events would bias the estimates.

    Parameters
    ----------
    sums : ndarray, shape (chains, marks, 1 + 2 dim)
        Cumulative time, integral of the position and integral of its square at marks along the path of each chain.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> time = np.linspace(0.0, 10.0, 11)
    >>> sums = np.stack([time, 2 * time, 5 * time], -1)[None]  # of a path with mean 2 and mean square 5
    >>> found = diagnostics.path_moments(sums)
    >>> found.mean.round(6).tolist(), found.variance.round(6).tolist()
    ([2.0], [1.0])
    """
    chains, marks, columns = sums.shape
    if marks < 2 or columns < 3:
        return None
    time = sums[:, :, 0]
    stretches = np.diff(sums, axis=1)
    within = time[:, 1:] <= time[:, -1].min() * (1 + 1e-9)
    stretches = stretches * within[:, :, None]
    per_chain = max(1, min(-(-_BATCHES // chains), marks - 1))
    parts = np.array_split(np.arange(marks - 1), per_chain)
    batches = np.concatenate([stretches[:, part].sum(1) for part in parts])
    batches = batches[batches[:, 0] > 0]
    if len(batches) < 2:
        return None
    span = batches[:, :1]
    first, second = np.split(batches[:, 1:], 2, axis=1)
    total = span.sum()
    mean = first.sum(0) / total
    variance = second.sum(0) / total - mean**2
    factor = np.sqrt(len(batches) / (len(batches) - 1)) / total
    off_mean = first - mean * span
    off_variance = second - 2 * mean * first + (mean**2 - variance) * span
    return PathMoments(
        mean,
        np.sqrt((off_mean**2).sum(0)) * factor,
        variance,
        np.sqrt((off_variance**2).sum(0)) * factor,
        float(total / chains),
    )
