"""Chains of a bare kernel, and how far their estimates are from a known answer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import stats

from bnnviz.benchmarks.calibration import without_skew
from bnnviz.benchmarks.chains import begin, follow
from bnnviz.samplers.base import Sampler
from bnnviz.samplers.random import seeded
from bnnviz.targets import Target

# Stated before looking: over all the figures that one test compares, the probability of a false alarm.
LEVEL = 1e-4


class Verdict(NamedTuple):
    """The worst standardised error, and the probability of one as bad among all that were compared."""

    z: float
    p: float
    which: str


def run_chains(
    target: Target,
    sampler: Sampler,
    x0: np.ndarray,
    draws: int,
    seed: int = 0,
    mode: np.ndarray | None = None,
    dtype: torch.dtype = torch.float64,
    scaling: Any = None,
) -> np.ndarray:
    """Return (chains, draws, dim) of chains that start at x0, stopped at equal path time, with no warm-up.

    A sampler that learns a scaling in its warm-up is given it.
    """
    rng = seeded(seed)
    state = begin(target, sampler, x0, rng, mode, dtype)
    if scaling is not None:
        state = sampler.rescaled(rng, state, scaling)
    return follow(sampler, rng, state, draws).draws


def compare(draws: np.ndarray, truth: np.ndarray) -> Verdict:
    """Compare means, squares, cross products and quantiles with those of exact draws or known moments.

    Parameters
    ----------
    draws : ndarray, shape (chains, draws, dim)
    truth : ndarray, shape (n, dim)
        Many independent draws from the truth (their own error is added).
    """
    figures, reference, labels = [], [], []
    dim = draws.shape[2]

    def add(label: str, function) -> None:
        figures.append(function(draws).mean(1))
        reference.append(function(truth[None])[0])
        labels.append(label)

    low, high = np.quantile(truth, [0.1, 0.9], axis=0)
    for i in range(dim):
        add(f"mean x{i}", lambda x, i=i: x[..., i])
        add(f"below q10 x{i}", lambda x, i=i: (x[..., i] < low[i]).astype(float))
        add(f"below q90 x{i}", lambda x, i=i: (x[..., i] < high[i]).astype(float))
        for j in range(i + 1):
            add(f"x{i} x{j}", lambda x, i=i, j=j: x[..., i] * x[..., j])
    z = np.array([_z(chain, known) for chain, known in zip(figures, reference, strict=True)])
    worst = int(np.abs(z).argmax())
    p = min(1.0, 2 * stats.norm.sf(abs(z[worst])) * len(z))
    return Verdict(float(z[worst]), float(p), labels[worst])


def compare_moments(draws: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> Verdict:
    """Compare means and second moments with known ones."""
    z, labels = [], []
    for i in range(len(mean)):
        z.append(_z(draws[..., i].mean(1), np.array([mean[i]])))
        labels.append(f"mean x{i}")
        for j in range(i + 1):
            products = ((draws[..., i] - mean[i]) * (draws[..., j] - mean[j])).mean(1)
            z.append(_z(products, np.array([cov[i, j]])))
            labels.append(f"cov x{i} x{j}")
    worst = int(np.abs(z).argmax())
    return Verdict(float(z[worst]), float(min(1.0, 2 * stats.norm.sf(abs(z[worst])) * len(z))), labels[worst])


def _z(chains: np.ndarray, known: np.ndarray) -> float:
    """Return the standardised difference of chain averages and known values (one, or many draws).

    Corrected for skewness: of squares in a long tail even exact draws are up to five plain standard errors off.
    """
    error = chains.var(ddof=1) / len(chains)
    if len(known) > 1:
        error += known.var(ddof=1) / len(known)
    plain = (chains.mean() - known.mean()) / np.sqrt(error)
    return float(without_skew(plain, stats.skew(chains), len(chains)))
