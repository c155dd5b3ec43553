"""Targets given by distributions of PyTorch."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import torch
from scipy import integrate
from torch import distributions as d

import bnnviz
from bnnviz import targets
from bnnviz.errors import BnnvizError

LEVEL = 4.0  # standard errors
T = torch.tensor
MATRIX = T([[1.0, 0.6], [0.6, 2.0]])


def mixture(components: d.Distribution, count: int = 2) -> d.Distribution:
    return d.MixtureSameFamily(d.Categorical(torch.ones(count)), components)


UNIVARIATE = {
    "Normal": d.Normal(T(1.0), T(2.0)),
    "StudentT": d.StudentT(T(5.0)),
    "Gamma": d.Gamma(T(3.0), T(2.0)),
    "Beta": d.Beta(T(2.0), T(3.0)),
    "Uniform": d.Uniform(T(-1.0), T(3.0)),
    "HalfCauchy": d.HalfCauchy(T(1.0)),
    "LogNormal": d.LogNormal(T(0.0), T(0.5)),
    "Pareto": d.Pareto(T(2.0), T(3.0)),
    "mixture": mixture(d.Normal(T([-2.0, 2.0]), T([0.5, 1.0]))),
    "mixture of gammas": mixture(d.Gamma(T([1.0, 5.0]), T([1.0, 1.0]))),
    "mixture on an interval": mixture(d.Uniform(T([0.0, 0.0]), T([2.0, 2.0]))),
    "shifted exponential": d.TransformedDistribution(d.Exponential(T(1.0)), [d.AffineTransform(2.0, 3.0)]),
    "logit": d.TransformedDistribution(d.Normal(T(0.3), T(1.2)), [d.SigmoidTransform()]),
    "twice": d.TransformedDistribution(d.LogNormal(T(0.0), T(0.5)), [d.AffineTransform(0.0, -2.0)]),
}


@pytest.mark.parametrize("name", UNIVARIATE)
def test_the_density_of_the_coordinate_has_mass_1_and_the_quantiles_of_the_variable(name: str) -> None:
    """exp(-U) of the coordinate integrates to 1, Jacobian in, and below each point to the distribution's cdf."""
    distribution = UNIVARIATE[name]
    target = targets.DistributionDensity(distribution).to("cpu", torch.float64)
    assert target.dim == 1
    grid = torch.sinh(torch.linspace(-6, 6, 40_001, dtype=torch.float64))[:, None]
    density = np.exp(-target.potential(grid).numpy())
    assert integrate.trapezoid(np.nan_to_num(density), grid[:, 0].numpy()) == pytest.approx(1, abs=2e-3)
    x = target.named_values(grid)["x"].numpy()
    inside = density > 1e-3
    values, coordinate = x[inside], grid[:, 0].numpy()[inside]
    assert np.isfinite(values).all()
    draws = distribution.sample((4000,)).double().numpy()
    total = integrate.cumulative_trapezoid(density[inside], coordinate, initial=0)
    order = np.argsort(values)
    share = np.interp(np.median(draws), values[order], (total if values[0] < values[-1] else total[-1] - total)[order])
    assert abs(share - 0.5) < LEVEL * 0.5 / math.sqrt(4000) * 1.3 + 3e-3


SEVERAL = {
    "MultivariateNormal": (d.MultivariateNormal(T([1.0, -1.0]), MATRIX), 2),
    "Dirichlet": (d.Dirichlet(T([2.0, 3.0, 4.0])), 2),
    "LKJCholesky": (d.LKJCholesky(3, T(1.5)), 3),
    "batch": (d.Gamma(T([1.0, 2.0, 3.0]), T(1.0)), 3),
    "Independent": (d.Independent(d.Normal(torch.zeros(2, 3), 1.0), 2), 6),
    "mixture": (mixture(d.MultivariateNormal(T([[-1.0, 0.0], [1.0, 0.0]]), torch.eye(2))), 2),
    "transformed": (d.TransformedDistribution(d.Normal(torch.zeros(2), 1.0), [d.StickBreakingTransform()]), 2),
    "LowRank": (d.LowRankMultivariateNormal(torch.zeros(3), torch.ones(3, 1), torch.ones(3)), 3),
}


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_several_variables_have_their_log_density_and_jacobian(name: str, dtype: torch.dtype) -> None:
    """By a numerical Jacobian of the coordinates' transform, on the variables that are free."""
    distribution, dim = SEVERAL[name]
    target = targets.DistributionDensity(distribution).clone().to("cpu", dtype)
    assert target.dim == dim
    free = 0.4 * torch.randn(3, dim, dtype=dtype, generator=torch.Generator().manual_seed(0))
    x = target.named_values(free)["x"]
    log_prob = distribution.log_prob(x.to(torch.float32)).reshape(3, -1).sum(1)
    flat = dim if name not in ("Dirichlet", "transformed", "LKJCholesky") else None
    if flat:
        jacobian = torch.func.vmap(torch.func.jacrev(lambda one: target.named_values(one[None])["x"].flatten()))(free)
    elif name == "LKJCholesky":
        rows, columns = torch.tril_indices(3, 3, -1)
        jacobian = torch.func.vmap(
            torch.func.jacrev(lambda one: target.named_values(one[None])["x"][0][rows, columns])
        )(free)
    else:
        jacobian = torch.func.vmap(torch.func.jacrev(lambda one: target.named_values(one[None])["x"][0, :-1]))(free)
    exact = -log_prob - torch.linalg.slogdet(jacobian)[1]
    np.testing.assert_allclose(target.potential(free), exact.to(dtype), rtol=3e-4, atol=3e-4)


@pytest.mark.slow
def test_a_run_of_a_distribution_has_its_moments() -> None:
    run = bnnviz.sample(SEVERAL["MultivariateNormal"][0], "nuts", draws=300, warmup=150, chains=4, seed=0)
    found = run.summary()
    assert (np.abs(np.array(found["mean"]) - [1.0, -1.0]) < LEVEL * np.array(found["mean_se"])).all()
    np.testing.assert_allclose(run.parameters()["x"], run.draws, atol=1e-6)
    again = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(again.draws, run.draws)
    again.stop()
    assert bnnviz.sample(UNIVARIATE["Gamma"], "bps", draws=4, dtype="float64").draws.dtype == np.float64


@pytest.mark.parametrize(
    ("distribution", "statement"),
    [
        (d.Poisson(T(1.0)), "discrete"),
        (d.Categorical(torch.ones(3)), "discrete"),
        (mixture(d.Uniform(T([0.0, 1.0]), T([2.0, 3.0]))), "no bijection"),
        (mixture(d.Poisson(T([1.0, 2.0]))), "discrete"),
    ],
)
def test_what_cannot_be_sampled_is_refused(distribution: d.Distribution, statement: str) -> None:
    with pytest.raises(BnnvizError, match=statement):
        bnnviz.start(distribution, "hmc")
