"""Every kind of density is sampled right, or refused in a sentence.

Stated before looking: each figure within 4.5 standard errors of the means of independent chains, which fifty exceed
once in 3,000.
"""

from __future__ import annotations

import contextlib
import re

import numpy as np
import pytest
import torch
from families import some_quick

import bnnviz
from bnnviz import targets
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from tests.targets.odd_densities import JUMPS, KINDS, REFUSED, Density, Kind, Known, Refused

LIMIT = 4.5
CASES = [(kind, known) for kind in KINDS for known in kind.known]


def grid(known: Known) -> tuple[np.ndarray, np.ndarray]:
    """Return points of a grid, its midpoints, and their shares of the mass."""
    count = 400_000 if known.dim == 1 else 1200
    assert known.dim > 1 or known.high - known.low <= 0.02 * count, "cells are too wide for an indicator"
    ticks = known.low + (np.arange(count) + 0.5) * (known.high - known.low) / count
    points = np.stack(np.meshgrid(*[ticks] * known.dim, indexing="ij"), -1).reshape(-1, known.dim)
    u = targets.Callable(known.density, known.dim).to("cpu", torch.float64).potential(torch.from_numpy(points))
    u = torch.where(torch.isfinite(u), u, torch.inf)
    weights = torch.exp(u.amin() - u).numpy()
    return points, weights / weights.sum()


def functions(x: np.ndarray, mean: np.ndarray, bounded: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return what is compared: mean and variance, or two bounded functions."""
    return (np.arctan(x), np.abs(x) < 1.0) if bounded else (x, (x - mean) ** 2)


def worst(kind: Kind, known: Known, draws: np.ndarray) -> float:
    """Return by how many standard errors of independent chains the worst figure is off."""
    points, weights = grid(known)
    mean = weights @ points
    found = []
    for values, exact in zip(functions(draws, mean, kind.bounded), functions(points, mean, kind.bounded), strict=True):
        of_chains = values.mean(1)
        error = of_chains.std(0, ddof=1) / len(of_chains) ** 0.5
        found.append(np.abs(of_chains.mean(0) - weights @ exact) / error)
    return float(np.max(found))


def sampled(known: Known, sampler: str, draws: int, warmup: int, chains: int = 64) -> np.ndarray:
    target = targets.Callable(known.density, dim=known.dim)
    spec = Spec(
        target=target.title, sampler=sampler, chains=chains, draws=draws, warmup=warmup, seed=2, dtype="float64"
    )
    run = Run(spec, target=target)
    run.prepare()
    while not run.finished:
        run.take(32)
    assert run.alive.all()
    return run.draws.astype(float)


SAMPLED = [(kind, known, sampler) for kind, known in CASES for sampler in known.samplers]
EACH = 3  # one of so many is a quick test


@pytest.mark.parametrize("kind", some_quick([kind for kind in KINDS if not kind.raises], 4))
def test_the_first_of_a_kind_is_sampled_right(kind: Kind) -> None:
    assert worst(kind, kind.known[0], sampled(kind.known[0], "hmc", 30, 150)) < LIMIT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "known", "sampler"),
    [
        pytest.param(*case, id=f"{case[0].name[:30]}-{k}", marks=[pytest.mark.slow] * bool(k % EACH))
        for k, case in enumerate(SAMPLED)
    ],
)
def test_a_density_is_sampled_right_by_every_sampler_that_takes_it(kind: Kind, known: Known, sampler: str) -> None:
    chains = 16 if kind.raises else 64  # each point that raises is found by halves
    draws, warmup = (100, 200) if sampler in JUMPS else (40, 60)  # a process takes several steps for a draw
    assert worst(kind, known, sampled(known, sampler, draws, warmup, chains)) < LIMIT


def reported(density: Density, sampler: str) -> str:
    """Return all that is said of a density that cannot be sampled."""
    try:
        run = bnnviz.start(density, sampler, dim=2, chains=4, draws=40, warmup=40, seed=1)
    except BnnvizError as refused:
        return refused.sentence
    statement = []
    with contextlib.suppress(BnnvizError):
        try:
            run.run_to_end()
        except BnnvizError as stopped:
            statement.append(stopped.sentence)
    return " ".join([*statement, *map(str, run.summary()["warnings"])])


@pytest.mark.parametrize(
    ("row", "density"),
    [
        pytest.param(row, each, id=f"{row.name[:40]}-{k}", marks=[pytest.mark.slow] * (k > 1))
        for row in REFUSED
        for k, each in enumerate(row.densities)
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_density_that_cannot_be_sampled_is_reported(row: Refused, density: Density) -> None:
    statement = reported(density, row.sampler)
    assert re.search(row.says, statement), statement
