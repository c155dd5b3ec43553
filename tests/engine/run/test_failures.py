"""Densities that no chain can follow: an edge, and none at all; each is told in a sentence that is true."""

from __future__ import annotations

import contextlib
import re

import numpy as np
import pytest
import torch
from families import some_quick

import bnnviz
from bnnviz import targets
from bnnviz.engine.monitor.identity import has_edge, has_long_tail
from bnnviz.engine.run.failures import RunawayWatch
from bnnviz.errors import BnnvizError
from tests.targets.odd_densities import half_normal


def shifted_exponential(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > -2, x, torch.inf).sum(-1)


def log_density(x: torch.Tensor) -> torch.Tensor:
    return -x.square().sum(-1) / 2


def log_laplace(x: torch.Tensor) -> torch.Tensor:
    return -x.abs().sum(-1)


def log_student(x: torch.Tensor) -> torch.Tensor:
    return -2 * torch.log1p(x.square() / 3).sum(-1)


def failed(density, sampler: str, dim: int = 2):
    run = bnnviz.start(density, sampler, dim=dim, chains=4, draws=100, seed=1)
    with contextlib.suppress(BnnvizError):
        run.run_to_end()
    return run


@pytest.mark.parametrize("density", [half_normal, shifted_exponential], ids=lambda each: each.__name__)
@pytest.mark.parametrize("sampler", ["zigzag", "bps", "map", "bbb", "func_hmc"])
def test_an_edge_is_named_with_what_helps(density, sampler: str) -> None:
    (reported,) = failed(density, sampler).summary()["warnings"]
    assert (reported.code, reported.values["value"]) == ("edge", "infinite") and "HMC or NUTS" in str(reported)


def spike(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x[:, 0].abs() < 0.05, -torch.inf, x.square().sum(-1) / 2)


@pytest.mark.parametrize("sampler", ["bps", "zigzag", "boomerang", "sgld", "sghmc", "psgld", "map", "mle"])
def test_an_infinite_density_ends_a_run_with_the_point(sampler: str) -> None:
    settings = {"steps": 2000, "learning_rate": 0.02} if sampler in ("map", "mle") else {}
    settings |= {"step_size": 0.1} if sampler in ("sgld", "sghmc") else {}
    run = bnnviz.start(spike, sampler, dim=2, chains=8, draws=400, seed=1, settings=settings)
    with pytest.raises(BnnvizError, match=r"minus infinity \(x = \(-?\d") as caught:
        run.run_to_end()
    place = re.search(r"x = \((.*?), ", caught.value.sentence)
    assert abs(float(place[1])) < 0.05 and [each.code for each in run.summary()["warnings"]] == ["infinite_density"]


@pytest.mark.parametrize("sampler", ["hmc", "nuts", "parallel_tempering", "pmcnet_light"])
def test_points_of_infinite_density_are_left_out_and_named(sampler: str) -> None:
    run = bnnviz.sample(spike, sampler, dim=2, chains=8, draws=200, warmup=100, seed=1)
    reported = [each for each in run.summary()["warnings"] if each.code == "infinite_points"]
    place = re.search(r"x = \((.*?), ", reported[0].values["where"])
    assert len(reported) == 1 and abs(float(place[1])) < 0.05
    if sampler != "pmcnet_light":
        assert (np.abs(run.draws[..., 0]) >= 0.05).all()


@pytest.mark.parametrize("sampler", ["hmc", "nuts"])
def test_what_ends_beyond_an_edge_is_no_divergence(sampler: str) -> None:
    run = bnnviz.sample(half_normal, sampler, dim=1, chains=4, draws=200, warmup=100, seed=1)
    found = run.summary()
    reported = {each.code for each in found["warnings"]}
    assert "edge_divergences" in reported and "divergences" not in reported
    error = np.sqrt((1 - 2 / np.pi) / found["ess_min"])
    assert abs(run.draws.mean() - np.sqrt(2 / np.pi)) < 4 * error


@pytest.mark.parametrize("density", [log_density, log_laplace, log_student], ids=lambda each: each.__name__)
@pytest.mark.parametrize("sampler", some_quick(["hmc", "nuts", "bps", "zigzag"], 2))
def test_a_log_density_is_named(density, sampler: str) -> None:
    run = failed(density, sampler)
    assert [each.code for each in run.summary()["warnings"]] == ["runs_away"]
    assert run.stats["steps"] < 3000


@pytest.mark.parametrize(
    "density",
    [lambda x: 0 * x.sum(-1), lambda x: x[:, 0].square() / 2 + 0 * x[:, 1], lambda x: (x[:, 0] - x[:, 1]).square() / 2],
    ids=["flat", "one coordinate", "a ridge"],
)
@pytest.mark.parametrize("sampler", ["hmc", "bps"])
@pytest.mark.slow
def test_a_density_without_an_integral_is_named(density, sampler: str) -> None:
    assert {each.code for each in failed(density, sampler).summary()["warnings"]} & {"wanders_off", "rhat"}


def test_a_flat_way_is_found() -> None:
    target = targets.Callable(lambda x: x[:, 0].square() / 2 + 0 * x[:, 1], dim=2).to("cpu", torch.float32)
    watch = RunawayWatch(torch.ones(4, 2))
    assert watch.message(target, torch.tensor([[0.3, 70.0]]).expand(4, 2)).code == "wanders_off"


@pytest.mark.parametrize(
    "potential",
    [
        lambda x: (x - 1e6).square().sum(-1) / 2e8,
        lambda x: 2 * torch.log1p(x.square() / 3).sum(-1),
        lambda x: torch.exp(-x[:, 0]) + 1e-3 * x[:, 0] + x[:, 1:].square().sum(-1),
    ],
    ids=["far away", "heavy tails", "a long slope"],
)
def test_a_density_that_is_far_or_long_does_not_run_away(potential) -> None:
    target = targets.Callable(potential, dim=2).to("cpu", torch.float64)
    watch = RunawayWatch(torch.ones(4, 2, dtype=torch.float64))
    for far in (1e2, 1e4, 1e6):
        assert watch.message(target, torch.full((4, 2), far, dtype=torch.float64)) is None


def test_an_edge_and_a_long_tail_are_found() -> None:
    rng = np.random.default_rng(0)
    inside, whole = torch.from_numpy(np.abs(rng.normal(size=(2000, 2)))), torch.from_numpy(rng.normal(size=(2000, 2)))
    bounded = targets.Callable(half_normal, dim=2).to("cpu", torch.float64)
    assert has_edge(bounded, inside)
    assert not has_edge(targets.Gaussian().to("cpu", torch.float64), whole)
    assert has_long_tail(rng.standard_t(3, (4000, 2))) and not has_long_tail(whole.numpy())
