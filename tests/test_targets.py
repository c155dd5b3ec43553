"""Targets: gradients and curvatures against automatic differentiation, moments against draws."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import bnnviz
from bnnviz import targets
from bnnviz.targets.base import Target

DENSITIES = [
    targets.Gaussian(size=3, correlation=0.7, spread=4.0),
    targets.Gaussian(mean=[1.0, -2.0], cov=[[2.0, 0.3], [0.3, 0.5]]),
    targets.Banana(bend=1.3, width=0.4),
    targets.DoubleWell(reading="text"),
    targets.DoubleWell(reading="figure"),
    targets.LogisticRegression(),
]


def networks() -> list[targets.BNN]:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 3)), rng.standard_normal(30)
    built = []
    for activation in (nn.Tanh, nn.ReLU, nn.SiLU, nn.Sigmoid, nn.Softplus):
        module = nn.Sequential(nn.Linear(3, 7), activation(), nn.Linear(7, 4), activation(), nn.Linear(4, 1))
        built.append(bnnviz.BNN(module, (x, y), prior_sd=0.8, noise_sd=0.3))
    wide = nn.Sequential(nn.Linear(3, 5, bias=False), nn.Tanh(), nn.Linear(5, 4))
    built.append(bnnviz.BNN(wide, (x, rng.integers(0, 4, 30)), "categorical"))
    built.append(bnnviz.BNN(nn.Sequential(nn.Linear(3, 1)), (x, (y > 0).astype(int)), "bernoulli"))
    return built


class Residual(nn.Module):
    """A module that is no plain stack of layers."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm, self.out = nn.Linear(3, 3), nn.LayerNorm(3), nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.norm(x + torch.tanh(self.inner(x))))


@pytest.mark.parametrize("target", [*DENSITIES, *networks()], ids=lambda t: f"{t.title}-{t.dim}")
def test_gradient_and_curvature_agree_with_autograd(target):
    target.to("cpu", torch.float64)
    rng = torch.Generator().manual_seed(1)
    x = 0.7 * torch.randn(5, target.dim, generator=rng, dtype=torch.float64)
    v = torch.randn(5, target.dim, generator=rng, dtype=torch.float64)
    expected = Target.gradient_and_curvature(target, x, v)
    found = target.gradient_and_curvature(x, v)
    for a, b in zip(found, expected, strict=True):
        assert torch.allclose(a, b, rtol=1e-6, atol=1e-7)
    for a, b in zip(target.gradient(x), expected[:2], strict=True):
        assert torch.allclose(a, b, rtol=1e-6, atol=1e-7)


def test_fast_path_is_taken_for_stacks_only():
    stacks = networks()
    assert all(target.layers is not None for target in stacks[:4])
    assert stacks[4].layers is None  # softplus has no hand-made derivative


@pytest.mark.parametrize("target", [t for t in DENSITIES if t.exact_draws(1) is not None], ids=lambda t: t.title)
def test_moments_agree_with_exact_draws(target):
    draws = target.exact_draws(200_000, seed=3)
    error = draws.std(0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(0) - target.mean()) < 5 * error).all()
    squares = (draws - target.mean()) ** 2
    error = squares.std(0) / np.sqrt(len(draws))
    assert (np.abs(squares.mean(0) - np.diag(target.cov())) < 5 * error).all()


def test_logistic_moments_agree_with_importance_sampling():
    target = targets.LogisticRegression().to("cpu", torch.float64)
    rng = np.random.default_rng(0)
    draws = target.mean() + rng.standard_t(8, (200_000, 3)) @ np.linalg.cholesky(1.3 * target.cov()).T
    from scipy import stats

    whitened = np.linalg.solve(np.linalg.cholesky(1.3 * target.cov()), (draws - target.mean()).T).T
    log_weight = -target.potential(torch.as_tensor(draws)).numpy() - stats.t(8).logpdf(whitened).sum(1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ draws
    assert np.allclose(mean, target.mean(), atol=0.01)
    assert np.allclose((draws - mean).T @ ((draws - mean) * weight[:, None]), target.cov(), atol=0.02)


def test_any_module_is_a_target():
    torch.manual_seed(0)
    x, y = np.random.default_rng(0).standard_normal((20, 3)), np.zeros(20)
    module = Residual()
    target = bnnviz.BNN(module, (x, y)).to("cpu", torch.float64)
    flat = torch.cat([p.detach().reshape(-1) for p in module.parameters()]).double()
    expected = module.double()(torch.as_tensor(x))
    assert torch.allclose(target.outputs(flat[None], target.x)[0], expected)
    assert target.gradient(flat[None])[1].shape == (1, target.dim)
    assert len(target.names()) == target.dim


def test_data_sets_can_be_named():
    net = nn.Sequential(nn.Linear(1, 5), nn.Tanh(), nn.Linear(5, 1))
    assert bnnviz.BNN(net, "toy_c", noise_sd=0.1).examples == 28
    with pytest.raises(bnnviz.BnnvizError, match="toy_a"):
        bnnviz.BNN(net, "toy_z")


def test_gauss_newton_diagonal_is_that_of_a_linear_model():
    x = np.random.default_rng(0).standard_normal((40, 3))
    target = bnnviz.BNN(nn.Sequential(nn.Linear(3, 1)), (x, np.zeros(40)), noise_sd=0.5).to("cpu", torch.float64)
    expected = np.append((x**2).sum(0), 40) / 0.25
    assert np.allclose(target.curvature_diagonal(torch.zeros(4, dtype=torch.float64)).numpy(), expected)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: bnnviz.BNN(nn.Linear(2, 1), (np.ones((5, 3)), np.ones(5))), "cannot read inputs"),
        (lambda: bnnviz.BNN(nn.Linear(3, 2), (np.ones((5, 3)), np.ones(5))), "one output"),
        (lambda: bnnviz.BNN(nn.Linear(3, 1), (np.ones((5, 3)), np.ones(4))), "5 inputs"),
        (lambda: bnnviz.BNN(nn.Linear(3, 1), (np.full((5, 3), np.nan), np.ones(5))), "missing or infinite"),
        (lambda: bnnviz.BNN(nn.Linear(3, 2), (np.ones((5, 3)), np.arange(5)), "categorical"), "must run from 0"),
        (lambda: bnnviz.BNN(nn.Linear(3, 1), (np.ones((5, 3)), np.arange(5)), "bernoulli"), "0 or 1"),
        (lambda: bnnviz.BNN(nn.Linear(3, 1), (np.ones((5, 3)), np.ones(5)), "poisson"), "gaussian, bernoulli"),
        (lambda: bnnviz.BNN(nn.Linear(3, 1), (np.ones((5, 3)), np.ones(5)), prior_sd=0.0), "prior_sd"),
        (lambda: bnnviz.BNN(nn.BatchNorm1d(3), (np.ones((5, 3)), np.ones(5))), "batch normalisation"),
        (lambda: targets.Gaussian(mean_list="[0, x]"), "JSON list"),
        (lambda: targets.Gaussian(mean_list="[0, 1]", cov_list="[[1, 2], [2, 1]]"), "positive definite"),
        (lambda: targets.Gaussian(mean=[0.0], cov=np.eye(2)), "shapes"),
    ],
)
def test_bad_targets_get_one_sentence(build, words):
    with pytest.raises(bnnviz.BnnvizError, match=words) as caught:
        build()
    assert caught.value.sentence.count("\n") == 0


@pytest.mark.parametrize("target", [t for t in DENSITIES if t.exact_draws(1) is not None], ids=lambda t: t.title)
def test_window_holds_the_density(target):
    draws = target.exact_draws(1000)
    for side, column in zip(target.window(), draws.T, strict=False):
        assert ((column >= side[0]) & (column <= side[1])).mean() > 0.99
