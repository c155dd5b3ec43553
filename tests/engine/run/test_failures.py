"""Densities that no chain can follow: an edge, and none at all; each is told in a sentence that is true."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz import targets
from bnnviz.engine.monitor.identity import has_edge, has_long_tail
from bnnviz.engine.run.failures import RunawayWatch
from bnnviz.errors import BnnvizError


def half_normal(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x.square() / 2, torch.inf).sum(-1)


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
@pytest.mark.parametrize("sampler", ["zigzag", "bps"])
def test_an_edge_is_named_with_what_helps(density, sampler: str) -> None:
    told = " ".join(failed(density, sampler).summary()["warnings"])
    assert "came to an edge of the density, where U is infinite" in told and "HMC or NUTS" in told


@pytest.mark.parametrize("density", [log_density, log_laplace, log_student], ids=lambda each: each.__name__)
@pytest.mark.parametrize("sampler", ["hmc", "bps", "zigzag"])
def test_a_log_density_is_named(density, sampler: str) -> None:
    assert "is this a log density? U must be minus it" in " ".join(failed(density, sampler).summary()["warnings"])


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
        assert watch.sentence(target, torch.full((4, 2), far, dtype=torch.float64)) == ""


def test_an_edge_and_a_long_tail_are_found() -> None:
    rng = np.random.default_rng(0)
    inside, whole = torch.from_numpy(np.abs(rng.normal(size=(2000, 2)))), torch.from_numpy(rng.normal(size=(2000, 2)))
    bounded = targets.Callable(half_normal, dim=2).to("cpu", torch.float64)
    assert has_edge(bounded, inside)
    assert not has_edge(targets.Gaussian().to("cpu", torch.float64), whole)
    assert has_long_tail(rng.standard_t(3, (4000, 2))) and not has_long_tail(whole.numpy())
