r"""Warn where the moves of chains speak against their draws: chains stand still, diverge, or keep their energy.

With :math:`E_n` the energy where the n-th trajectory of a chain begins, the energy Bayesian fraction of missing
information is

.. math:: \text{E-BFMI} = \frac{\sum_n (E_n - E_{n-1})^2}{\sum_n (E_n - \bar E)^2}

(Betancourt 2016, https://doi.org/10.48550/arXiv.1604.00695): below 0.3 fresh momenta move a chain too slowly between
energies to come into the tails.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bnnviz.engine.monitor import remedies
from bnnviz.engine.monitor.identity import has_edge
from bnnviz.engine.monitor.words import named_chains
from bnnviz.engine.protocol import DrawSource
from bnnviz.remedies import option
from bnnviz.samplers.base import ENERGY
from bnnviz.targets import BNN

_FEWEST = 20  # draws of a chain
_STILL = 0.99  # share of draws that are the one before
_MOST_COLUMNS = 100
_DIVERGED, _CLUSTER = 1e-3, 10  # share of the draws, and within how many draws of a chain two are a cluster
_DEEPEST = 0.01  # share of the draws
_FEWEST_ENERGIES, _LOW = 100, 0.3


def of_moves(run: DrawSource) -> Iterator[str]:
    """Say what is wrong with the moves that led to a run's draws; nothing where the draws are no chains."""
    if run.sampler.traits.weighted or not run.sampler.traits.converges:
        return
    stats = run.sample_stats
    yield from _of_still_chains(run)
    if "diverging" in stats:
        yield from _of_divergences(run, stats["diverging"])
    if "reached_max_treedepth" in stats:
        yield from _of_deepest(run, stats["reached_max_treedepth"])
    if ENERGY in stats and not getattr(run.sampler, "momentum_persistence", 0):
        yield from _of_energies(run, stats[ENERGY])


def _of_still_chains(run: DrawSource) -> Iterator[str]:
    draws = run.store.view(run.alive)
    if draws.shape[1] < _FEWEST:
        return
    columns = draws[..., :: -(-draws.shape[2] // _MOST_COLUMNS)]
    shares = (columns[:, 1:] == columns[:, :-1]).all(-1).double().mean(1).cpu().numpy()
    still = _numbers(shares >= _STILL, run.alive)
    if still:
        verb = "stands" if len(still) == 1 else "stand"
        yield (
            f"{named_chains(still)} {verb} still: hardly a draw differs from the one before, so these are no draws of"
            f" the target; begin elsewhere{_elsewhere(run)}, or take a smaller step{remedies.shorter_step(run)}."
        )


def _elsewhere(run: DrawSource) -> str:
    if not remedies.has(run, "start") or run.sampler.start == "random":
        return f" ({option(seed=run.spec.seed + 1)})"
    return remedies.of_sampler(run, start="random")


def _of_divergences(run: DrawSource, diverging: np.ndarray) -> Iterator[str]:
    told = np.nan_to_num(diverging) > 0
    count = int(told.sum())
    gaps = [np.diff(np.flatnonzero(chain)) for chain in told]
    cluster = any(len(gap) and gap.min() < _CLUSTER for gap in gaps)
    if not count or (count < _DIVERGED * told.size and not cluster):
        return
    if not isinstance(run.target, BNN) and has_edge(run.target, run.store.view(run.alive).flatten(0, 1)):
        yield (
            f"{count:,} of {told.size:,} draws come from a trajectory that ended beyond an edge of the density, where U"
            " is not finite; that biases nothing, but costs moves: name what is positive or bounded, as in"
            ' `parameters={"sigma": bnnviz.positive()}`, and there is no edge.'
        )
    else:
        yield (
            f"{count:,} of {told.size:,} draws come from a trajectory that diverged, so draws miss where the density"
            f" bends too sharply: take shorter steps{remedies.shorter_step(run)}, or {_other_way(run)}."
        )


def _of_deepest(run: DrawSource, reached: np.ndarray) -> Iterator[str]:
    share = float((np.nan_to_num(reached) > 0).mean()) if reached.size else 0.0
    if share > _DEEPEST:
        yield (
            f"{100 * share:.0f} % of the trees ended at their largest depth before they turned, so that draws depend on"
            f" each other for longer: {remedies.deeper(run)}write U in parameters"
            " of like scales."
        )


def _of_energies(run: DrawSource, energy: np.ndarray) -> Iterator[str]:
    known = np.isfinite(energy).all(0) if energy.size else np.zeros(0, bool)
    if known.sum() < _FEWEST_ENERGIES:
        return
    fractions = bfmi(energy[:, known])
    low = _numbers(fractions < _LOW, run.alive)
    if low:
        yield (
            f"{named_chains(low)} came slowly from one energy to the next (E-BFMI {np.nanmin(fractions):.2f}, good"
            f" above {_LOW}), so the tails are seen too little: make more draws{remedies.more(run)}, or"
            f" {_other_way(run)}."
        )


def _other_way(run: DrawSource) -> str:
    """Say what else to do about a density that is hard to move in."""
    if not isinstance(run.target, BNN):
        return "write U in other parameters"
    return f"give the network a narrower prior{remedies.narrower_prior(run)}"


def bfmi(energy: np.ndarray) -> np.ndarray:
    """Return the E-BFMI (chains,) of energies (chains, draws); nan where a chain has but one energy."""
    spread = np.square(energy - energy.mean(1, keepdims=True)).sum(1)
    changes = np.square(np.diff(energy, axis=1)).sum(1)
    return np.divide(changes, spread, out=np.full(len(energy), np.nan), where=spread > 0)


def _numbers(chosen: np.ndarray, alive: np.ndarray) -> list[int]:
    """Return the numbers of the chosen of the living chains; of all where none lives."""
    chains = np.flatnonzero(alive) if alive.any() else np.arange(len(alive))
    return chains[chosen].tolist()
