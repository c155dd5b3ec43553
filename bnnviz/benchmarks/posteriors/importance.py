r"""Compute moments of posteriors by importance sampling from a Student t that was fitted to them.

The proposal begins at Laplace's approximation and takes mean and covariance of its own weighted draws a few times. The
errors are those of ratios of sums, so that they hold whatever the proposal is, as long as the weights have no long tail
(Owen 2013, *Monte Carlo theory, methods and examples*, section 9.2; Vehtari et al. 2024, arXiv:1507.02646).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bnnviz import diagnostics
from bnnviz.benchmarks.posteriors.catalogue import Posterior
from bnnviz.benchmarks.posteriors.quadrature import laplace, potentials

_FREEDOM = 8.0  # of the Student t
_FITTED, _ROUNDS, _DRAWS = 40_000, 4, 400_000
_SEED = 2026


class WeightedDraws(NamedTuple):
    """Draws (rows, dim) with weights (rows,) of sum 1, their effective sample size, and Pareto's k-hat."""

    draws: np.ndarray
    weight: np.ndarray
    ess: float
    pareto_k: float


def sample(posterior: Posterior, draws: int = _DRAWS) -> WeightedDraws:
    """Return weighted draws of a posterior."""
    rng = np.random.default_rng(_SEED)
    mean, factor = laplace(posterior)
    for _ in range(_ROUNDS):
        points, weight, _ = _weighted(posterior, rng, mean, factor, _FITTED)
        mean = weight @ points
        factor = np.linalg.cholesky(((points - mean) * weight[:, None]).T @ (points - mean))
    points, weight, logs = _weighted(posterior, rng, mean, factor, draws)
    return WeightedDraws(points, weight, float(1 / (weight**2).sum()), diagnostics.pareto_k(logs))


def _weighted(
    posterior: Posterior, rng: np.random.Generator, mean: np.ndarray, factor: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return draws of a Student t, their weights of sum 1, and the logarithms of those up to a constant."""
    scale = np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, count))[:, None]
    whitened = scale * rng.standard_normal((count, posterior.dim))
    points = mean + whitened @ factor.T
    proposal = -0.5 * (_FREEDOM + posterior.dim) * np.log1p((whitened**2).sum(1) / _FREEDOM)
    logs = -potentials(posterior.potential, points) - proposal
    weight = np.exp(logs - logs.max())
    return points, weight / weight.sum(), logs


def moments(values: np.ndarray, weight: np.ndarray) -> dict[str, np.ndarray]:
    """Return mean and standard deviation of values (rows, columns) with their standard errors."""
    mean = weight @ values
    off = values - mean
    variance = weight @ off**2
    mean_se = np.sqrt(weight**2 @ off**2)
    variance_se = np.sqrt(weight**2 @ (off**2 - variance) ** 2)
    sd = np.sqrt(variance)
    return {"mean": mean, "mean_se": mean_se, "sd": sd, "sd_se": variance_se / (2 * sd)}
