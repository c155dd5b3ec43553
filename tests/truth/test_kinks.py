"""Processes under the default bound on densities whose gradient jumps: moments by quadrature, chains in equilibrium."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from bnnviz import targets
from bnnviz.samplers.pdmp.base import PDMP
from bnnviz.samplers.pdmp.bounds import grid
from tests.truth.chains import LEVEL, Verdict, compare_moments, run_chains
from tests.truth.test_samplers import make

INPUTS = torch.tensor([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0], dtype=torch.float64)
OUTPUTS = torch.tensor([0.0, 0.2, -0.1, 0.6, 1.3, 2.1], dtype=torch.float64)
PLANES = torch.tensor([[1.0, 0.5], [0.8, -1.0], [-0.3, 1.2], [1.5, 1.0], [-1.0, 0.7]], dtype=torch.float64)


def asymmetric(x: Tensor) -> Tensor:
    return torch.maximum(1.5 * x, -0.5 * x).sum(-1)


def laplace(x: Tensor) -> Tensor:
    return x.abs().sum(-1)


def quantile_loss(x: Tensor) -> Tensor:
    off = torch.linspace(-2, 2, 9, dtype=x.dtype) - x[..., None]
    return torch.maximum(0.8 * off, -0.2 * off).sum((-1, -2))


def wave(x: Tensor) -> Tensor:
    """A gradient that jumps up and down twice in a unit."""
    return (x.abs() + 2.4 * ((x % 1.0) - 0.5).abs()).sum(-1)


def hinge(x: Tensor) -> Tensor:
    return 2 * (1 - x @ PLANES.T).clamp_min(0).sum(-1) + 0.5 * x.square().sum(-1)


def relu_network(x: Tensor) -> Tensor:
    """One hidden unit, and an absolute loss: kinks of both."""
    outputs = torch.relu(x[..., :1] * INPUTS + x[..., 1:])
    return 3 * (OUTPUTS - outputs).abs().sum(-1) + 0.5 * x.square().sum(-1)


def lasso(x: Tensor) -> Tensor:
    """A regression on two correlated inputs under a Laplace prior of each weight."""
    outputs = torch.tensor([1.1, -0.9, 0.2, 1.9, -0.4], dtype=x.dtype)
    return (outputs - x @ PLANES.T.to(x.dtype)).square().sum(-1) / 2 + 2 * x.abs().sum(-1)


def sparse_hinge(x: Tensor) -> Tensor:
    """A hinge loss under a Laplace prior."""
    return 3 * (1 - x @ PLANES.T.to(x.dtype)).clamp_min(0).sum(-1) + x.abs().sum(-1)


class Answer(NamedTuple):
    """Exact draws (n, 2), mean and covariance."""

    draws: np.ndarray
    mean: np.ndarray
    cov: np.ndarray


def answer(density: Callable[[Tensor], Tensor], chains: int) -> Answer:
    """Integrate a density of the plane on a grid of midpoints."""
    edge = 24.0 if density in (asymmetric, laplace, wave, sparse_hinge) else 6.0
    ticks = np.linspace(-edge, edge, 1601)
    points = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), -1).reshape(-1, 2)
    weights = np.exp(-density(torch.from_numpy(points)).numpy())
    weights /= weights.sum()
    mean = weights @ points
    rng = np.random.default_rng(0)
    spread = (ticks[1] - ticks[0]) / 2
    draws = points[rng.choice(len(points), chains, p=weights)] + rng.uniform(-spread, spread, (chains, 2))
    return Answer(draws, mean, (points - mean).T @ ((points - mean) * weights[:, None]))


def verdict(density: Callable[[Tensor], Tensor], sampler: str, chains: int) -> Verdict:
    known = answer(density, chains)
    target = targets.Callable(density, dim=2)
    mode = np.zeros(2) if sampler == "boomerang" else None
    draws = run_chains(target, make(sampler, {"spacing": 2.0}), known.draws, 20, mode=mode)
    return compare_moments(draws[:, 5:], known.mean, known.cov)


def test_the_asymmetric_density_has_the_moments_of_its_closed_form() -> None:
    known = answer(asymmetric, 1)
    assert known.cov == pytest.approx(np.eye(2) * 40 / 9, abs=0.01)
    assert known.mean == pytest.approx([-4 / 3] * 2, abs=0.01)


@pytest.mark.parametrize(
    ("density", "sampler"),
    [
        (asymmetric, "bps"),
        (hinge, "zigzag"),
        *(pytest.param(quantile_loss, sampler, marks=pytest.mark.slow) for sampler in ("bps", "zigzag")),
    ],
)
def test_a_gradient_that_jumps_up_is_sampled_right(density, sampler: str) -> None:
    assert verdict(density, sampler, 1000).p > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize(
    "density", [laplace, wave, relu_network, lasso, sparse_hinge], ids=lambda density: density.__name__
)
@pytest.mark.parametrize("sampler", ["zigzag", "bps", "sigma_bps"])
def test_kinks_of_other_kinds_are_sampled_right(density, sampler: str) -> None:
    assert verdict(density, sampler, 2000).p > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("density", [hinge, relu_network, lasso], ids=lambda density: density.__name__)
def test_the_boomerang_is_right_where_tails_are_those_of_its_reference(density) -> None:
    assert verdict(density, "boomerang", 1000).p > LEVEL


@pytest.mark.slow
def test_a_bound_that_knows_no_jump_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line of a smooth rate, and no reach."""
    monkeypatch.setattr(grid, "_jump", lambda width, before, after: torch.zeros_like(width))
    monkeypatch.setattr(PDMP, "_make_bound", lambda self, anchor: grid.Grid(self.margin, self.widest_cell))
    assert verdict(wave, "bps", 4000).p < LEVEL
