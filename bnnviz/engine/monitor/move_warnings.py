r"""Warn if moves cast doubt on draws (none, divergences, constant energy), or a function that contradicts itself.

With :math:`E_n` the energy where the n-th trajectory of a chain begins, the energy Bayesian fraction of missing
information is

.. math:: \text{E-BFMI} = \frac{\sum_n (E_n - E_{n-1})^2}{\sum_n (E_n - \bar E)^2}

(Betancourt 2016, https://doi.org/10.48550/arXiv.1604.00695): below 0.3 fresh momenta move a chain too slowly between
energies to come into the tails.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from bnnviz.engine.monitor import remedies
from bnnviz.engine.monitor.identity import has_edge
from bnnviz.engine.protocol import AnyRun
from bnnviz.messages import Message, Remedy
from bnnviz.numerals import named_chains
from bnnviz.samplers.base import ENERGY
from bnnviz.targets import BNN, Callable
from bnnviz.targets.lines import Fit, fits

_FEWEST = 20  # draws of a chain
_STILL = 0.99  # fraction of draws that equal the one before
_MOST_COLUMNS = 100
_DIVERGED, _CLUSTER = 1e-3, 10  # fraction of the draws, and maximum draws of a chain between two in a cluster
_DEEPEST = 0.01  # fraction of the draws
_FEWEST_ENERGIES, _LOW = 100, 0.3
_LINES = 24
_LEAST = 0.05  # of U: a jump that changes a density by less than a twentieth is ignored
_FEW = 2  # lines
_GRAIN = 0.1  # of U: acceptance probabilities are off by a tenth if neighbouring numbers differ by this much


def of_moves(run: AnyRun) -> Iterator[Message]:
    """Warn about the moves of a run's chains; no warnings for draws that are not chains."""
    if run.sampler.traits.weighted or not run.sampler.traits.converges:
        return
    stats = run.sample_stats
    draws = run.store.view(run.alive)
    if draws.shape[1] >= _FEWEST:
        columns = draws[..., :: -(-draws.shape[2] // _MOST_COLUMNS)]
        shares = (columns[:, 1:] == columns[:, :-1]).all(-1).double().mean(1).cpu().numpy()
        if still := _numbers(shares >= _STILL, run.alive):
            ways = [remedies.elsewhere(run), *remedies.shorter_steps(run)]
            yield Message("stuck", *ways, chains=named_chains(still), numbers=still)
    if "diverging" in stats:
        yield from _of_divergences(run, stats["diverging"])
    if "reached_max_treedepth" in stats:
        reached = stats["reached_max_treedepth"]
        share = float((np.nan_to_num(reached) > 0).mean()) if reached.size else 0.0
        if share > _DEEPEST:
            yield Message("max_treedepth", *remedies.deeper_trees(run), remedies.RESCALE, percent=100 * share)
    if ENERGY in stats and not getattr(run.sampler, "momentum_persistence", 0):
        yield from _of_energies(run, stats[ENERGY])


def _of_divergences(run: AnyRun, diverging: np.ndarray) -> Iterator[Message]:
    marked = np.nan_to_num(diverging) > 0
    count = int(marked.sum())
    gaps = [np.diff(np.flatnonzero(chain)) for chain in marked]
    cluster = any(len(gap) and gap.min() < _CLUSTER for gap in gaps)
    if not count or (count < _DIVERGED * marked.size and not cluster):
        return
    if not isinstance(run.target, BNN) and has_edge(run.target, run.store.view(run.alive).flatten(0, 1)):
        yield Message("edge_divergences", remedies.NAME_BOUNDS, count=count, total=marked.size)
    else:
        ways = [*remedies.shorter_steps(run), remedies.easier_density(run)]
        yield Message("divergences", *ways, count=count, total=marked.size)


def _of_energies(run: AnyRun, energy: np.ndarray) -> Iterator[Message]:
    known = np.isfinite(energy).all(0) if energy.size else np.zeros(0, bool)
    if known.sum() < _FEWEST_ENERGIES:
        return
    fractions = bfmi(energy[:, known])
    low = _numbers(fractions < _LOW, run.alive)
    if low:
        ways = [*remedies.more(run), remedies.easier_density(run)]
        least = float(np.nanmin(fractions))
        yield Message("low_bfmi", *ways, chains=named_chains(low), numbers=low, bfmi=least, least=_LOW)


def bfmi(energy: np.ndarray) -> np.ndarray:
    """Return the E-BFMI (chains,) of energies (chains, draws); nan for a chain with constant energy."""
    spread = np.square(energy - energy.mean(1, keepdims=True)).sum(1)
    changes = np.square(np.diff(energy, axis=1)).sum(1)
    return np.divide(changes, spread, out=np.full(len(energy), np.nan), where=spread > 0)


def _numbers(chosen: np.ndarray, alive: np.ndarray) -> list[int]:
    """Return the numbers of the chosen living chains, or of all if none lives."""
    chains = np.flatnonzero(alive) if alive.any() else np.arange(len(alive))
    return chains[chosen].tolist()


def of_gradient(run: AnyRun) -> Iterator[Message]:
    """Check the caller's own function at draws and on lines between them."""
    draws = run.store.view(run.alive)
    if (
        not isinstance(run.target, Callable)
        or run.sampler.traits.functional
        or draws.shape[0] * draws.shape[1] < 2 * _LINES
    ):
        return
    target, pooled = run.target.clone(), draws.flatten(0, 1)
    chosen = pooled[np.random.default_rng(0).choice(len(pooled), 2 * _LINES, replace=False)].to(target.dtype)
    together, again = (target.defined_potential(chosen).detach() for _ in range(2))
    if not _close(together, again):
        yield Message("random_density", Remedy("remove the random numbers from U"))
        return
    if not _close(together, torch.cat([target.defined_potential(point[None]).detach() for point in chosen])):
        yield Message("chains_interact", Remedy("reduce over the last axis only and avoid statistics over chains"))
        return
    rejects, dtype = remedies.rejects(run), together.dtype
    largest = float(together.abs().nan_to_num(0.0, 0.0, 0.0).max())
    grain = largest * torch.finfo(dtype).eps
    if rejects and grain > _GRAIN:
        ways = Remedy("subtract a constant from U"), remedies.DOUBLE
        yield Message("rounding", *ways, largest=largest, dtype=str(dtype).removeprefix("torch."), grain=grain)
    found = fits(target.gradient, chosen[:_LINES], chosen[_LINES:], _LEAST)
    jumps, otherwise = found.count(Fit.JUMP), found.count(Fit.OTHERWISE)
    if otherwise >= _FEW:
        effect = "proposals are poor" if rejects else f"draws of {run.sampler.title} are biased"
        remedy = Remedy("make all of U differentiable")
        yield Message("wrong_gradient", remedy, count=otherwise, lines=_LINES, effect=effect)
    elif jumps >= _FEW and not rejects:
        remedy = remedies.reference_sampler("use HMC or NUTS, whose acceptance step uses U itself")
        yield Message("jumps", remedy, count=jumps, lines=_LINES, sampler=run.sampler.title)


def _close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.allclose(a, b, rtol=100 * torch.finfo(a.dtype).eps, atol=1e-5, equal_nan=True)
