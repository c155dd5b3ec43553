"""Frozen parameters against a closed form: under a frozen random layer the head of a network has a normal posterior."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import bnnviz
from tests.truth.chains import LEVEL, compare_moments

PRIOR_SD, NOISE_SD, CHAINS = 1.2, 0.4, 64
RNG = np.random.default_rng(11)
X = RNG.normal(size=(12, 2))
Y = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=12)


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    module = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    module[0].requires_grad_(False)
    return module


def posterior(module: nn.Module) -> bnnviz.BNN:
    return bnnviz.BNN(module, (X, Y), prior_sd=PRIOR_SD, noise_sd=NOISE_SD)


def closed_form(module: nn.Sequential) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of the head's weights and bias, by linear algebra."""
    features = module[1](module[0](torch.tensor(X))).numpy()
    design = np.column_stack([features, np.ones(len(X))])
    cov = np.linalg.inv(design.T @ design / NOISE_SD**2 + np.eye(4) / PRIOR_SD**2)
    return cov @ design.T @ Y / NOISE_SD**2, cov


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["nuts", "hmc"])
def test_the_head_on_a_frozen_layer_has_the_known_posterior(sampler: str) -> None:
    module = network()
    target = posterior(module)
    run = bnnviz.sample(target, sampler, chains=CHAINS, draws=150, warmup=200, seed=4, dtype="float64")
    found = compare_moments(run.draws, *closed_form(module))
    assert found.p > LEVEL, found
    other = compare_moments(run.draws, *closed_form(network(seed=1)))
    assert other.p < LEVEL, "Another frozen layer is told apart."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "settings"),
    [
        ("mc_dropout", {"steps": 100}),
        ("bbb", {"steps": 100}),
        ("sgld", {"start": "random"}),
        ("bps", {"start": "random"}),
        ("laplace", {}),
    ],
)
def test_other_samplers_leave_frozen_parameters_alone(sampler: str, settings: dict) -> None:
    module = network()
    module.append(nn.Tanh())
    module.append(nn.Linear(1, 1).double())
    target = posterior(module)
    run = bnnviz.sample(target, sampler, chains=2, draws=20, warmup=10, settings=settings)
    assert run.draws.shape == (2, 20, 6)
    assert np.isfinite(run.draws).all()
