"""Functions whose operations are recorded have PyTorch's values and gradients, and others are left to PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.distributions import constraints

import bnnviz
from bnnviz import targets
from bnnviz.targets.base import differentiate
from bnnviz.targets.tape import Tape, record

DIM = 4
Y = torch.randn(30, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
COUNTS = torch.arange(5, dtype=torch.float64)


def _garch(x: Tensor) -> Tensor:
    y, total = Y[:, 0].to(x.dtype), 0.0
    variance = torch.full_like(x[:, 0], 0.25)
    a = torch.sigmoid(x[:, 2])
    for t in range(len(y)):
        if t:
            variance = x[:, 1].exp() + a * (y[t - 1] - x[:, 0]) ** 2 + (1 - a) * torch.sigmoid(x[:, 3]) * variance
        total = total + 0.5 * torch.log(variance) + 0.5 * (y[t] - x[:, 0]) ** 2 / variance
    return total


def _in_place(x: Tensor) -> Tensor:
    moved = x * 1
    moved[:, 0] += x[:, 1]
    path = x.new_zeros(len(x), 3)
    path[:, 1] = moved[:, 0].tanh()
    path *= 2.0
    return path.square().sum(-1) + x.square().sum(-1)


def _mixture(x: Tensor) -> Tensor:
    shares = torch.log_softmax(x[:, :2], -1)[:, None]
    parts = shares - 0.5 * (Y[:, 0, None].to(x.dtype) - x[:, None, 2:]).square()
    return x.square().sum(1) - torch.logsumexp(parts, -1).sum(-1)


def _shapes(x: Tensor) -> Tensor:
    turned = torch.cat([x[:, 1:], x[:, :1]], 1).flip(1).reshape(-1, 2, 2).transpose(1, 2)
    mean = torch.stack([x, 2 * x], 1).mean(1).view(-1, 2, 2)
    return (turned * mean).sum((1, 2)) + x.square().sum(1) + x[:, [0, 2]].var(1)


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "garch": _garch,
    "in place": _in_place,
    "mixture": _mixture,
    "normal": lambda x: 0.5 * x.square().sum(-1),
    "funnel": lambda x: x[:, 0] ** 2 / 18 + (torch.exp(-x[:, :1]) * x[:, 1:] ** 2).sum(1) / 2 + 1.5 * x[:, 0],
    "regression": lambda x: (Y[:, 2].to(x) - x[:, :3] @ Y.to(x).T).square().sum(-1) + x[:, 3].square(),
    "student": lambda x: 2.5 * torch.log1p(x.square() / 4).sum(-1),
    "poisson": lambda x: (x.exp()[:, :, None] - COUNTS.to(x) * x[:, :, None]).sum((1, 2)) + x.square().sum(1),
    "gamma": lambda x: (torch.lgamma(x.exp()) - x + x.square()).sum(-1),
    "constants": lambda x: (0.1 * torch.log(x.exp() + 0.1) + x.square() / 3).sum(-1),
    "laplace": lambda x: x.abs().sum(-1),
    "piecewise": lambda x: torch.where(x > 0, x, -2 * x).sum(-1) + torch.clamp(x, min=-1.0, max=2.0).mean(-1) ** 2,
    "extremes": lambda x: x.square().sum(1) + torch.relu(x).sum(1) + x.amax(1) - torch.minimum(x[:, 0], x[:, 1]),
    "powers": lambda x: (x.abs() ** 2.5 + (x**2 + 1) ** -0.5 + torch.rsqrt(x**2 + 2) + 2.0**x + x**4 / 9).sum(1),
    "waves": lambda x: (x.square() + torch.sin(x) * torch.cos(2 * x) + torch.atan(x) + torch.atan2(x, x**2 + 1)).sum(1),
    "links": lambda x: (torch.nn.functional.softplus(x) - torch.nn.functional.logsigmoid(x) + torch.erf(x)).sum(1),
    "softmax": lambda x: -torch.softmax(x, -1)[:, 0].log() + torch.expm1(x.square()).sum(1).log1p(),
    "shapes": _shapes,
    "walk": lambda x: torch.cumsum(x, 1).square().sum(1) + x.diff(dim=1).square().sum(1),
    "logaddexp": lambda x: torch.logaddexp(x[:, 0], x[:, 1]) + x.square().sum(1),
    "vmap": torch.func.vmap(lambda x: x.square().sum() + torch.dot(x, x.flip(0)) / 4),
    "distributions": lambda x: -(
        torch.distributions.StudentT(3.0).log_prob(x).sum(-1)
        + torch.distributions.Normal(x[:, 0], x[:, 1].exp()).log_prob(Y[0, 0].to(x))
        + torch.distributions.Gamma(2.0, x[:, 2].exp()).log_prob(x[:, 3].exp())
    ),
    "batch of matrices": lambda x: (x.view(-1, 2, 2) @ x.view(-1, 2, 2)).square().sum((1, 2)) + x.square().sum(1),
}  # fmt: skip


def _tape(function: Callable[[Tensor], Tensor], dtype: torch.dtype = torch.float64) -> Tape | None:
    return record(function, partial(differentiate, function), DIM, dtype, waits=True)


def _points(count: int = 7) -> Tensor:
    return torch.randn(count, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_recorded_function_has_the_values_and_gradients_of_pytorch(name: str) -> None:
    tape, x = _tape(FUNCTIONS[name]), _points()
    for one, other in zip(tape.gradient(x), differentiate(FUNCTIONS[name], x), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_single_precision_is_rounded_once() -> None:
    tape, x = _tape(_garch, torch.float32), _points().float()
    exact, gradient = differentiate(_garch, x.double())
    value, slope = tape.gradient(x)
    assert value.dtype is slope.dtype is torch.float32
    torch.testing.assert_close(value, exact.float(), rtol=2e-7, atol=0)
    torch.testing.assert_close(slope, gradient.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: x.square().sum(-1) if bool((x[0, 0] > 0).item()) else x.abs().sum(-1), id="branch"),
        pytest.param(lambda x: x.square().sum(-1) + torch.rand(len(x)).to(x), id="random"),
        pytest.param(lambda x: (x - x.mean(0)).square().sum(-1), id="all chains together"),
        pytest.param(lambda x: (x * x.detach()).sum(-1), id="detached"),
        pytest.param(lambda x: x.round().abs().sum(-1) + x.square().sum(-1), id="operation that is not recorded"),
        pytest.param(lambda x: torch.linalg.cholesky(torch.diag_embed(x.exp())).sum((1, 2)), id="factor"),
        pytest.param(lambda x: x.square() @ torch.ones(DIM, 2000).to(x) @ torch.ones(2000).to(x), id="large products"),
    ],
)
def test_other_functions_are_left_to_pytorch(function: Callable[[Tensor], Tensor]) -> None:
    assert _tape(function) is None


def test_edges_of_the_density_are_those_of_pytorch() -> None:
    def function(x: Tensor) -> Tensor:
        return x.square().sum(-1) - x[:, 0].log() + torch.where(x[:, 1] > 1, math.inf, 0.0)

    x = torch.tensor([[-1.0, 0, 0, 0], [0, 0, 0, 0], [1, 2, 0, 0], [1, 0, 0, 0]]).double()
    torch.testing.assert_close(_tape(function).gradient(x)[0], function(x), equal_nan=True)


def test_named_parameters_are_recorded_with_their_jacobians() -> None:
    given = {"rate": bnnviz.positive(), "share": bnnviz.simplex(3), "tau": bnnviz.Parameter(constraints.interval(0, 2))}

    def function(p: dict[str, Tensor]) -> Tensor:
        return p["rate"] - 2 * p["rate"].log() - p["share"].log().sum(-1) + p["tau"] ** 2

    target = targets.ParameterDensity(function, given).to("cpu", torch.float64)
    tape = record(target.potential, target.gradient, target.dim, torch.float64, waits=True)
    torch.testing.assert_close(tape.gradient(_points()), target.gradient(_points()))


def test_a_density_computes_long_functions_from_their_tape_and_short_ones_with_pytorch() -> None:
    for function, is_long in ((_garch, True), (FUNCTIONS["normal"], False)):
        target = targets.Callable(function, DIM).to("cpu", torch.float64)
        expected = target.gradient(_points())
        target.use_native(waits=True)
        assert (target.native_gradient(_points(4)) is not None) is is_long
        torch.testing.assert_close(target.gradient(_points()), expected)


@pytest.mark.slow
def test_nuts_on_a_long_function_has_the_moments_of_importance_sampling() -> None:
    run = bnnviz.sample(lambda x: _garch(x) + x.square().sum(-1), "nuts", dim=DIM, draws=1000, chains=4, seed=3)
    summary = run.summary()
    proposals = torch.randn(200_000, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    weights = torch.softmax(-_garch(proposals) - 0.5 * proposals.square().sum(-1), 0)
    mean = weights @ proposals
    error = (weights.square() @ (proposals - mean).square() + torch.tensor(summary["mean_se"]).square()).sqrt()
    assert ((torch.tensor(summary["mean"]) - mean).abs() < 4.5 * error).all()
