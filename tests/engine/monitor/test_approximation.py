"""Approximations are judged by the weights of their own draws, against closed forms and integrals over a grid.

Stated before looking: of 2,000 draws k-hat within 0.3 of the tail's shape, total variation distances within 0.05.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal

import bnnviz
from bnnviz import samplers, targets
from bnnviz.errors import BnnvizError
from bnnviz.samplers.baselines.bbb import BayesByBackprop
from bnnviz.samplers.random import seeded
from tests.targets.odd_densities import half_normal

Density = Callable[[Tensor], Tensor]
NETWORK: dict[str, Any] = {"target": "network", "target_settings": {"data": "toy_c", "hidden": "4"}}
TURNED = torch.linalg.qr(torch.tensor([[1.0, 2, 3], [0, 1, 4], [5, 6, 0]], dtype=torch.float64))[0]


def approximated(density: Density, dim: int, dtype: str = "float64", **settings: Any) -> Any:
    return bnnviz.sample(density, "laplace", dim=dim, draws=50, chains=2, seed=1, dtype=dtype, settings=settings)


def scaled(*sds: float, turned: bool = False) -> Density:
    """Return U of a normal density with these sds, along the axes or along turned ones."""
    axes = TURNED[: len(sds), : len(sds)] if turned else torch.eye(len(sds), dtype=torch.float64)
    return lambda x: (x.double() @ axes / torch.tensor(sds, dtype=torch.float64)).square().sum(-1) / 2


def correlated(x: Tensor, rho: float) -> Tensor:
    return (x.square().sum(-1) - 2 * rho * x.prod(-1)) / (2 * (1 - rho**2))


def student(x: Tensor) -> Tensor:
    return (3 + x.shape[-1]) / 2 * torch.log1p(x.square().sum(-1) / 3)


def ring(x: Tensor) -> Tensor:
    return (x.norm(dim=-1) - 3).square() / (2 * 0.1**2)


def funnel(x: Tensor) -> Tensor:
    return x[:, 0].square() / 18 + x[:, 0] + (x[:, 1:].square() * torch.exp(-x[:, :1])).sum(-1) / 2


def narrow_well(x: Tensor) -> Tensor:
    """Much narrower than the curvature at its mode says, so that no weight is large."""
    return (x**4 / 4 + 0.005 * x.square()).sum(-1)


def poor(found: dict) -> list:
    return [each for each in found["warnings"] if each.code == "approximation_poor"]


# --- what is normal


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sds", [(1.0,), (1e-3, 1.0), (1e3, 1e3), (1.0,) * 5], ids=str)
def test_a_normal_density_is_approximated_exactly_and_nothing_is_stated(sds, dtype):
    found = approximated(scaled(*sds), len(sds), dtype).summary()
    assert found["total_variation"] < 0.01 and found["infinite_share"] == 0
    assert dtype == "float32" or found["pareto_k"] is None or found["pareto_k"] < 0.6, "rounding may have any tail"
    assert found["warnings"] == []


# --- figures that are known


def grid_distance(rho: float) -> float:
    """Return the total variation distance between a correlated normal density and N(0, 1 - rho^2) each, on a grid."""
    ticks = torch.linspace(-8, 8, 1601, dtype=torch.float64)
    points = torch.cartesian_prod(ticks, ticks)
    p, q = torch.exp(-correlated(points, rho)), torch.exp(-points.square().sum(-1) / (2 * (1 - rho**2)))
    return float((p / p.sum() - q / q.sum()).abs().sum() / 2)


@pytest.mark.parametrize("rho", [0.2, 0.6, 0.9])
def test_the_figures_of_forgotten_correlations_are_the_known_ones(rho):
    """With N(0, 1 - rho^2) each the weights are exp(rho (z1^2 - z2^2) / 2), whose tail has the shape rho."""
    found = approximated(lambda x: correlated(x, rho), 2, structure="diagonal").summary()
    assert found["pareto_k"] == pytest.approx(rho, abs=0.3)
    known = grid_distance(rho)
    if rho < 0.7:
        assert found["total_variation"] == pytest.approx(known, abs=0.05)
    else:
        assert 0.1 < found["total_variation"] < known + 0.05, "its weights have not settled"
    assert (known >= 0.1) == bool(poor(found))


@pytest.mark.parametrize("dim", [1, 2])
def test_the_share_of_draws_outside_of_the_support_is_reported(dim):
    """The mode of a half-normal density is its edge."""
    found = approximated(half_normal, dim).summary()
    share = 1 - 0.5**dim
    assert found["infinite_share"] == pytest.approx(share, abs=4.5 * 0.5 / 2000**0.5)
    assert found["total_variation"] == pytest.approx(share, abs=0.05)
    (reported,) = found["warnings"]
    assert reported.code == "approximation_outside" and reported.values["percent"] == 100 * found["infinite_share"]
    assert "bnnviz.positive()" in str(reported)


# --- what is not normal


@pytest.mark.parametrize(
    ("density", "dim"), [(student, 2), (student, 5), (funnel, 3), (narrow_well, 1), (narrow_well, 3)]
)
def test_where_a_normal_law_is_no_approximation_it_is_reported(density, dim):
    found = approximated(density, dim).summary()
    assert found["pareto_k"] >= 0.7 or found["total_variation"] >= 0.1
    (reported,) = poor(found)
    assert bool(reported.values["tail"]) == (found["pareto_k"] >= 0.7)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("dim", [2, 3])
def test_on_a_ring_there_is_no_normal_approximation(dim, dtype):
    try:
        found = approximated(ring, dim, dtype).summary()
    except BnnvizError as refused:
        assert "no normal approximation" in refused.sentence
    else:
        assert poor(found)


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_a_curvature_of_rounding_is_a_plateau(structure):
    """At a distance d beyond the ring the curvature along it is 33 d, where that across it is 100."""
    sampler = samplers.REGISTRY.get("laplace")(structure=structure)
    target = targets.Callable(ring, 2).to("cpu", torch.float64)
    for place in ([3 + 1e-14, 0.0], [3 + 1e-6, 0.0], [0.0, 3 + 1e-6]):
        with pytest.raises(BnnvizError, match="a plateau"):
            sampler.prepare(target, torch.tensor(place, dtype=torch.float64))


# --- draws and their density


def test_laplace_knows_the_density_of_its_draws():
    run = approximated(lambda x: correlated(x, 0.8), 2)
    sampler = run._run.sampler
    x, log_density = sampler.approximation(seeded(0), run._run.state, 300)
    cov = torch.tensor([[1, 0.8], [0.8, 1]], dtype=torch.float64)
    known = MultivariateNormal(sampler.mode, cov).log_prob(x)
    assert torch.allclose(log_density, known, atol=1e-8)


def test_bayes_by_backprop_knows_the_density_of_the_draws_of_each_chain():
    sampler = BayesByBackprop(steps=5)
    target = targets.Callable(scaled(1.0, 2.0), 2).to("cpu", torch.float64)
    sampler.prepare(target, None)
    state = sampler.init(torch.tensor([[0.0, 1.0], [5.0, 6.0], [9.0, 9.0]], dtype=torch.float64), seeded(0))
    state = state._replace(training=state.training._replace(taken=torch.tensor([5.0, 5.0, 4.0])))
    x, log_density = sampler.approximation(seeded(0), state, 301)
    assert x.shape == (302, 2), "the third chain still descends"
    sd = torch.nn.functional.softplus(state.c[:2, 1])
    known = Normal(state.c[:2, :1], sd[:, None]).log_prob(x.view(2, 151, 2)).sum(-1).flatten()
    assert torch.allclose(log_density, known, atol=1e-8)


# --- networks, and samplers without a density


def test_a_summary_changes_no_draw_and_is_the_same_again():
    run = approximated(funnel, 3)
    first, draws = run.summary(), run.draws.copy()
    again = run.summary()
    names = ("pareto_k", "total_variation", "infinite_share")
    assert [first[name] for name in names] == [again[name] for name in names]
    assert np.array_equal(draws, run.draws) and all(math.isfinite(first[name]) for name in names)
