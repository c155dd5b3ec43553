"""Compare estimates of chains with known answers, in standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from bnnviz.targets import Target

LEVELS = (0.1, 0.9)
_REFERENCE = 1_000_000  # exact draws that the quantiles are taken from


class ErrorTest(NamedTuple):
    """One estimate: what it is of, its error, the error's standard error, and how far from zero it is in these.

    ``z`` is Student's with the correction of Hall (1992) for skewness: averages of squares in a long tail are skewed,
    and where they come out small their standard error does too.
    """

    label: str
    error: float
    se: float
    z: float


@dataclass(frozen=True)
class KnownAnswers:
    """Exact moments (dim,) of a target, and quantiles (2, dim) of exact draws with standard errors of their levels."""

    mean: np.ndarray
    variance: np.ndarray
    quantiles: np.ndarray | None
    level_se: np.ndarray

    @classmethod
    def of(cls, target: Target) -> KnownAnswers:
        """Return the answers of a target that knows its moments."""
        draws = target.exact_draws(_REFERENCE, seed=99)
        quantiles = None if draws is None else np.quantile(draws, LEVELS, axis=0)
        se = np.sqrt([level * (1 - level) / _REFERENCE for level in LEVELS])
        return cls(target.mean(), np.diag(target.cov()), quantiles, se)


def of_draws(draws: np.ndarray, truth: KnownAnswers, weights: np.ndarray | None = None) -> list[ErrorTest]:
    """Test means, variances and quantiles of draws (chains, draws, dim), with weights (chains, draws) if they have any.

    The variances are around the known mean, so that each chain's estimate has no bias of its own.
    """
    tests = []
    for i, (mean, variance) in enumerate(zip(truth.mean, truth.variance, strict=True)):
        x = draws[..., i]
        tests.append(_test(f"mean x{i + 1}", x - mean, weights))
        tests.append(_test(f"variance x{i + 1}", ((x - mean) ** 2 - variance) / variance, weights))
        if truth.quantiles is not None:
            for level, quantile, se in zip(LEVELS, truth.quantiles[:, i], truth.level_se, strict=True):
                tests.append(_test(f"{100 * level:g}% of x{i + 1}", (x < quantile) - level, weights, se))
    return tests


def of_path(path: np.ndarray, truth: KnownAnswers) -> list[ErrorTest]:
    """Test means and variances from integrals (chains, 1 + 2 dim) along whole paths of equal length."""
    time, first, second = path[:, :1], *np.split(path[:, 1:], 2, axis=1)
    mean = first / time
    variance = second / time - 2 * truth.mean * mean + truth.mean**2
    tests = []
    for i, known in enumerate(truth.variance):
        tests.append(_test(f"path mean x{i + 1}", mean[:, i : i + 1] - truth.mean[i]))
        tests.append(_test(f"path variance x{i + 1}", (variance[:, i : i + 1] - known) / known))
    return tests


def _test(label: str, errors: np.ndarray, weights: np.ndarray | None = None, known_se: float = 0.0) -> ErrorTest:
    """Test that errors (chains, draws) are zero on average, each chain counting as one observation."""
    if weights is None:
        chains = errors.mean(1)
    else:
        chains = (weights * errors).sum(1) / weights.sum(1).mean()
    error, se = chains.mean(), np.hypot(chains.std(ddof=1) / np.sqrt(len(chains)), known_se)
    return ErrorTest(label, float(error), float(se), float(without_skew(error / se, stats.skew(chains), len(chains))))


def without_skew(t: float, skew: float, count: int) -> float:
    """Return Student's t of an average of ``count`` observations, corrected for their skewness (Hall 1992)."""
    slant = skew / np.sqrt(count)
    return t + slant * t**2 / 3 + slant**2 * t**3 / 27 + slant / 6


def p_value(z: float, tests: int, chains: int) -> float:
    """Return the p-value of the worst of so many tests, whose statistic is z (Bonferroni, Student's t)."""
    return float(min(1.0, 2 * stats.t.sf(abs(z), chains - 1) * tests))


def limit(level: float, tests: int, chains: int) -> float:
    """Return the z that the worst of so many tests exceeds with a probability of at most ``level``."""
    return float(stats.t.isf(level / (2 * tests), chains - 1))
