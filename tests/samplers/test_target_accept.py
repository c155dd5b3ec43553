"""The step size at the end of the warm-up gives the target acceptance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bnnviz import targets
from bnnviz.engine.run.run import Run
from bnnviz.samplers.mcmc.step_size import DualAveraging
from bnnviz.specs.run import Spec
from tests.quick_cases import some_quick

_MOVES = 6  # that an acceptance is as noisy as the mean of


def acceptance(size: float) -> float:
    """Return that of leapfrog steps on many independent Gaussians: erfc of the squared size."""
    return math.erfc(size**2)


def found(target_accept: float, rng: np.random.Generator, updates: int) -> DualAveraging:
    """Return dual averaging after so many moves whose acceptance is known but for noise."""
    averaging, size = DualAveraging.begun(0.3), 0.3
    for _ in range(updates):
        mean = min(max(acceptance(size), 1e-9), 1 - 1e-9)
        seen = rng.beta(_MOVES * mean, _MOVES * (1 - mean))
        averaging, size = averaging.updated(math.log(size), seen, target_accept)
    return averaging


def finished(sampler: str, target: targets.Target, **changes: int) -> Run:
    spec = Spec("gaussian", {}, sampler, {}, device="cpu", dtype="float64")
    run = Run(spec.replace(**changes), target=target)
    while not run.finished:
        run.advance(0.2)
    return run


@pytest.mark.parametrize("target_accept", [0.6, 0.8, 0.9])
def test_the_size_is_that_of_the_requested_acceptance(target_accept: float) -> None:
    rng = np.random.default_rng(1)
    runs = [found(target_accept, rng, 50) for _ in range(200)]
    mean = np.mean([acceptance(one.size(target_accept)) for one in runs])
    of_mean_size = np.mean([acceptance(math.exp(one.log_mean)) for one in runs])
    assert abs(mean - target_accept) < 0.03
    assert abs(mean - target_accept) < abs(of_mean_size - target_accept)


@pytest.mark.parametrize("seed", some_quick(range(3), 1))
def test_trees_are_accepted_as_was_requested(seed: int) -> None:
    """Where the step size changed within a tree, 0.87 of the points were accepted after the warm-up, for 0.8."""
    target = targets.Gaussian(np.zeros(50), np.diag(np.geomspace(0.1, 10, 50) ** 2))
    run = finished("nuts", target, warmup=300, draws=200, seed=seed)
    assert abs(run.stats["acceptance_rate"] - 0.8) < 0.045


def test_a_tree_keeps_its_step_size() -> None:
    target = targets.Gaussian(np.zeros(5), np.diag(np.geomspace(0.1, 10, 5) ** 2))
    run = finished("nuts", target, warmup=40, draws=5)
    sampler, state = run.sampler, run.state
    sizes, begun = [], []
    for step in range(60):
        learned = state.adaptation._replace(step_size=0.1 * (1 + step % 7))
        state = state._replace(adaptation=learned)
        begun.append(state.fresh.clone())
        before = state.step_size
        state, _ = sampler.step(run.numbers, state)
        assert bool((state.step_size == before)[~begun[-1]].all())
        sizes.append(state.step_size[begun[-1]])
        assert np.allclose(sizes[-1], learned.step_size)
    assert sum(map(len, sizes)) > 5 and not all(each.all() for each in begun)
