"""Chains of a bare kernel, and how far their estimates are from a known answer."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import stats

from bnnviz.errors import BnnvizError
from bnnviz.samplers import Sampler
from bnnviz.samplers.observers import DrawCollector, StepBatch
from bnnviz.samplers.random import RandomNumbers, seeded
from bnnviz.targets import Target
from truth.calibration import without_skew

# Stated before looking: over all the figures that one test compares, the probability of a false alarm.
LEVEL = 1e-4
_BLOCK = 16


class Verdict(NamedTuple):
    """The worst standardised error, and the probability of one as bad among all that were compared."""

    z: float
    p: float
    which: str


class ChainDraws(NamedTuple):
    """Draws (chains, draws, dim) and, where the sampler gives them, the integrals along the path up to each.

    ``path`` has the shape (chains, draws, 1 + 2 dim): time, and the integrals of the position and of its square. The
    draws are of ``draw_collector``.
    """

    draws: np.ndarray
    path: np.ndarray | None
    draw_collector: DrawCollector


def begin(
    target: Target,
    sampler: Sampler,
    x0: np.ndarray,
    rng: RandomNumbers,
    mode: np.ndarray | None = None,
    dtype: torch.dtype = torch.float64,
) -> Any:
    """Bind a sampler to a target; return the state of chains at x0 (chains, dim), with no warm-up.

    A sampler with a centre has that of the mode: one at each chain's own beginning would know where that is, and chains
    that begin as the target is spread would not stay so.
    """
    target.to("cpu", dtype)
    if mode is not None and "one_mode" in getattr(sampler.param["start"], "objects", ()):
        sampler.start = "one_mode"
    sampler.prepare(target, None if mode is None else torch.as_tensor(mode, dtype=dtype))
    return sampler.init(torch.as_tensor(x0, dtype=dtype), rng)


def move(sampler: Sampler, rng: RandomNumbers, state: Any, x0: np.ndarray) -> Any:
    """Return the state of chains that set out anew from x0, with what the sampler has learned.

    Chains that took equally many steps are not spread as the target is, however they began: a draw made there would be
    biased for a while.
    """
    return sampler.moved_to(rng, state, torch.as_tensor(x0, dtype=state.x.dtype))


def follow(sampler: Sampler, rng: RandomNumbers, state: Any, draws: int, patience: float = float("inf")) -> ChainDraws:
    """Follow all chains until each has made its draws; the quick ones alone would be biased."""
    state = sampler.freeze(rng, state)
    draw_collector, chains, dim = sampler.draw_collector(rng, state), *state.x.shape
    kept = torch.zeros(chains, draws, dim, dtype=state.x.dtype)
    path = torch.zeros(chains, draws, 1 + 2 * dim).double() if sampler.integrates(chains, dim) else None
    end = time.monotonic() + patience
    while int(draw_collector.made.min()) < draws:
        if time.monotonic() > end:
            raise BnnvizError(f"The chains did not make their {draws} draws within {patience:g} s.")
        state, rows = _block(sampler, rng, draw_collector, state)
        inside = rows.index < draws
        where = rows.chain[inside], rows.index[inside]
        kept[where] = rows.x[inside]
        if path is not None and rows.path is not None:
            path[where] = rows.path[inside]
    return ChainDraws(kept.numpy(), None if path is None else path.numpy(), draw_collector)


def _block(sampler: Sampler, rng: RandomNumbers, draw_collector: Any, state: Any) -> tuple[Any, Any]:
    before, infos = [], []
    for _ in range(_BLOCK):
        before.append(state)
        state, info = sampler.step(rng, state)
        infos.append(info)
    return state, draw_collector.collect(StepBatch(before, infos, state, 0))


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
    """Compare draws (chains, draws, dim) with many exact draws (n, dim), whose own error is added."""
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
