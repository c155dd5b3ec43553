"""Mean and covariance of draws with their Monte Carlo errors."""

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
    """Return moments of (chains, draws, dim) with standard errors by batch means.

    Each chain is cut into equal batches, some 64 over all chains or one a chain if there are more;
    the spread of the batches' averages is the error, autocorrelation included as long as a batch
    is longer than it.
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
