"""The warm-up of HMC and NUTS: windows, step size, metric; and what counts as a move, a rejection, a divergence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from families import some_quick
from truth.known_answers import SamplerCase, check

from bnnviz import targets
from bnnviz.engine.run.run import Run
from bnnviz.samplers.mcmc.metric import Metric, WindowSums
from bnnviz.samplers.mcmc.step_size import DualAveraging, reasonable
from bnnviz.samplers.mcmc.windows import windows
from bnnviz.specs.run import Spec

HMC_AND_NUTS = ["hmc", "nuts"]
SD = np.array([1e-3, 1.0, 1e3])


class Box(targets.Target):
    """A round Gaussian in a box of half width 2, and a value outside."""

    def __init__(self, outside: float) -> None:
        super().__init__()
        self.dim, self.outside = 2, outside

    def potential(self, x: torch.Tensor) -> torch.Tensor:
        inside = (x.abs() < 2).all(-1)
        return torch.where(inside, 0.5 * x.square().sum(-1), self.outside)


def finished(sampler: str, target: Any = None, settings: dict[str, Any] | None = None, **changes: Any) -> Run:
    spec = Spec("gaussian", {}, sampler, settings or {}, draws=50, device="cpu", dtype="float64", seed=3)
    if isinstance(target, str):
        spec, target = spec.replace(target=target), None
    run = Run(spec.replace(**changes), target=target)
    while not run.finished:
        run.advance(0.2)
    return run


@pytest.mark.parametrize(
    ("moves", "first", "slow", "last"),
    [
        (1000, 75, (25, 50, 100, 200, 500), 50),
        (200, 75, (25, 50), 50),
        (150, 75, (25,), 50),
        (100, 15, (75,), 10),
        (40, 6, (24,), 10),
        (20, 3, (7,), 10),
    ],
)
def test_windows_are_those_of_stan(moves: int, first: int, slow: tuple[int, ...], last: int) -> None:
    found = windows(moves)
    assert sum(found.lengths) == moves and found.lengths[-1] == last
    assert sum(found.lengths[: found.early]) == first
    assert found.lengths[found.early : -1] == slow


@pytest.mark.parametrize("sampler", HMC_AND_NUTS)
@pytest.mark.parametrize("warmup", [1, 3, 12, 20, 21, 30, 60])
def test_a_short_warm_up_leaves_a_step_that_is_accepted(sampler: str, warmup: int) -> None:
    """Two moves after the metric once left a step at which all of HMC's trajectories diverged."""
    run = finished(sampler, targets.REGISTRY.get("gaussian")(), warmup=warmup, chains=2)
    found = run.sampler_stats.summary()
    assert found["acceptance_rate"] > 0.5 and found["diverging"] == 0


@pytest.mark.parametrize("scale", [1e-6, 0.3, 1e4])
@pytest.mark.parametrize("guess", [1e-5, 1.0, 1e3])
def test_the_search_crosses_the_acceptance(scale: float, guess: float) -> None:
    size = reasonable(lambda size: math.exp(-size / scale), guess)
    assert 0.5 <= size / (-scale * math.log(0.8)) <= 2


def sums_of(cov: np.ndarray, draws: int, dense: bool, spread: float = 1.0) -> WindowSums:
    rng, chains = np.random.default_rng(0), 4
    x = spread * torch.as_tensor(rng.multivariate_normal(np.zeros(len(cov)), cov, size=(draws, chains)))
    gradient = x @ torch.as_tensor(np.linalg.inv(cov))
    sums, yes = WindowSums.begun(x[0], gradient[0], dense), torch.ones(chains, dtype=torch.bool)
    for place, slope in zip(x, gradient, strict=True):
        sums = sums.added(place, slope, yes, yes)
    return sums


def test_scales_of_a_gaussian_are_known_after_a_few_draws_wherever_these_are() -> None:
    sums, metric = sums_of(np.diag(SD**2), 10, False, spread=1e-3), Metric.unit(3, False, torch.ones(1).double())
    for _ in range(3):
        metric = metric.learned(sums)
    np.testing.assert_allclose(metric.scale, SD, rtol=0.02)


def test_a_dense_metric_is_the_covariance() -> None:
    cov = np.full((20, 20), 0.99) + 0.01 * np.eye(20)
    metric = Metric.unit(20, True, torch.ones(1).double())
    for _ in range(3):
        metric = metric.learned(sums_of(cov, 25, True))
    np.testing.assert_allclose(metric.factor @ metric.factor.T, cov, atol=0.01)
    vector = torch.ones(4, 20).double()
    np.testing.assert_allclose(metric.apply(vector) @ vector[0], metric.apply_transpose(vector) @ vector[0])


def test_chains_that_stand_still_teach_nothing() -> None:
    x, yes, no = torch.ones(4, 2).double(), torch.ones(4, dtype=torch.bool), torch.zeros(4, dtype=torch.bool)
    metric, sums = Metric.unit(2, False, x), WindowSums.begun(x, x, False)
    for _ in range(50):
        sums = sums.added(x, x, yes, no)
    assert metric.learned(sums) is metric
    run = finished("hmc", "banana", {"step_size": 6.0}, dtype="float32")
    moved = (np.diff(run.draws, axis=1) != 0).any(-1).mean()
    assert float(run.state.adaptation.metric.scale.min()) > 1e-2
    assert abs(run.stats["accepted"] - moved) < 0.05


@pytest.mark.parametrize("name", HMC_AND_NUTS)
@pytest.mark.parametrize("warmup", [0, 7, 130])
def test_the_warm_up_has_the_moves_that_the_spec_says(name: str, warmup: int) -> None:
    run = Run(Spec("gaussian", {}, name, {"max_treedepth": 3} if name == "nuts" else {}, draws=4, warmup=warmup))
    run.prepare()
    while run.phase == "tuning":
        run.step_proposal()
    assert abs(float(run.state.count.mean()) - warmup) < 1
    if name == "hmc":
        assert run.steps == warmup
    assert run.store.skip == 0 and run.progress == pytest.approx(warmup / (warmup + 4), abs=0.02)
    while not run.finished:
        run.advance(0.1)
    assert run.draws.shape[1] == 4


def test_a_run_without_an_end_warms_up_long_enough() -> None:
    run = Run(Spec("gaussian", {}, "hmc", {}, draws=None, warmup=10))
    run.prepare()
    while run.phase == "tuning":
        run.advance(0.1)
    assert float(run.state.count.min()) >= 200


@pytest.mark.parametrize("name", HMC_AND_NUTS)
def test_the_acceptance_is_the_requested_one(name: str) -> None:
    target = targets.Gaussian(np.zeros(10), np.diag(np.geomspace(1e-6, 1e6, 10) ** 2))
    run = finished(name, target, warmup=300, draws=200)
    assert abs(run.stats["acceptance_rate"] - 0.8) < 0.1
    np.testing.assert_allclose(np.log10(run.draws.std((0, 1)) / np.geomspace(1e-6, 1e6, 10)), 0, atol=0.2)


@pytest.mark.parametrize(("name", "outside"), [("hmc", math.nan), ("nuts", math.inf), ("nuts", -math.inf)])
def test_a_value_that_is_not_finite_is_a_rejected_point(name: str, outside: float) -> None:
    start = torch.zeros(4, 2)
    target = Box(outside)
    target.initial = lambda chains, rng: start.double()
    run = finished(name, target)
    assert run.phase == "done" and run.alive.all() and "chain_stopped" not in {note.code for note in run.notes}
    assert (np.abs(run.draws) < 2).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", HMC_AND_NUTS)
@pytest.mark.parametrize("metric", ["diagonal", "dense", "low_rank"])
def test_scales_and_correlations_leave_it_right(name: str, metric: str) -> None:
    correlation = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.3], [0.0, 0.3, 1.0]])
    target = targets.Gaussian(np.zeros(3), correlation * np.outer(SD, SD))
    found = check(SamplerCase(name, {"metric": metric}), target, draws=40, chains=400)
    assert found.ok, found


def test_a_metric_of_a_curvature_is_the_covariance() -> None:
    cov = np.diag(SD) @ (0.3 * np.eye(3) + 0.7) @ np.diag(SD)
    precision, like = torch.as_tensor(np.linalg.inv(cov)), torch.ones(1).double()
    dense = Metric.unit(3, True, like).of_curvature(precision)
    np.testing.assert_allclose(dense.factor @ dense.factor.T, cov, rtol=1e-6)
    diagonal = Metric.unit(3, False, like).of_curvature(precision)
    np.testing.assert_allclose(diagonal.scale**4, np.diag(cov) / np.diag(precision), rtol=1e-6)
    assert Metric.unit(3, True, like).of_curvature(-precision) is None
    assert Metric.unit(3, True, like).of_curvature(precision * torch.nan) is None


def test_a_dense_metric_is_kept_where_a_window_has_too_few_draws_for_another() -> None:
    cov = np.array([[1.0, 0.99], [0.99, 1.0]])
    metric = Metric.unit(2, True, torch.ones(1).double()).of_curvature(torch.as_tensor(np.linalg.inv(cov)))
    few = metric.learned(sums_of(np.eye(2), 1, True, spread=1e-3))
    correlation = few.factor @ few.factor.T
    assert correlation[0, 1] / correlation[0, 0] == pytest.approx(0.99, abs=1e-6)


@pytest.mark.parametrize("name", HMC_AND_NUTS)
def test_chains_set_out_from_where_a_function_has_its_mass(name: str) -> None:
    cov = np.diag(SD) @ (0.3 * np.eye(3) + 0.7) @ np.diag(SD)
    precision, centre = torch.as_tensor(np.linalg.inv(cov)), torch.tensor([1e3, -20.0, 1e5]).double()

    def potential(x: torch.Tensor) -> torch.Tensor:
        return 0.5 * ((x - centre) @ precision * (x - centre)).sum(-1)

    target = targets.Callable(potential, 3)
    run = Run(Spec(target.title, {}, name, {}, chains=3, draws=10, device="cpu", dtype="float64"), target=target)
    run.prepare()
    assert float(((run.state.x - centre) / torch.as_tensor(SD)).abs().max()) < 1
    learned = run.state.adaptation
    np.testing.assert_allclose(learned.metric.factor @ learned.metric.factor.T, cov, rtol=1e-4)
    assert 0.3 < learned.step_size < 3


# --- the step size at the end of the warm-up

_MOVES = 6  # that an acceptance is as noisy as the mean of


def acceptance(size: float) -> float:
    """Return that of leapfrog steps on many independent Gaussians: erfc of the squared size."""
    return math.erfc(size**2)


def averaged(target_accept: float, rng: np.random.Generator, updates: int) -> DualAveraging:
    """Return dual averaging after so many moves whose acceptance is known but for noise."""
    averaging, size = DualAveraging.begun(0.3), 0.3
    for _ in range(updates):
        mean = min(max(acceptance(size), 1e-9), 1 - 1e-9)
        seen = rng.beta(_MOVES * mean, _MOVES * (1 - mean))
        averaging, size = averaging.updated(math.log(size), seen, target_accept)
    return averaging


@pytest.mark.parametrize("target_accept", [0.6, 0.8, 0.9])
def test_the_size_is_that_of_the_requested_acceptance(target_accept: float) -> None:
    rng = np.random.default_rng(1)
    runs = [averaged(target_accept, rng, 50) for _ in range(200)]
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
