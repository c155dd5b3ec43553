"""Functions that are no potential, or whose gradient is not theirs: each is told, and right ones say nothing."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import bnnviz
from bnnviz.targets.lines import Fit, fits
from tests.engine.monitor.test_alarms import codes


def detached_part(x: Tensor) -> Tensor:
    return x[:, 0].square() / 2 + (x[:, 1] + x[:, 1].detach()).square() / 8


def half_the_gradient(x: Tensor) -> Tensor:
    return (x.detach() * x).sum(-1) / 2


def under_no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        scale = 1 + x[:, 1].square()
    return x[:, 0].square() * scale / 2 + x[:, 1].square() / 2


def indicator(x: Tensor) -> Tensor:
    return x.square().sum(-1) / 2 + math.log(3) * (x[:, 0] > 0.5)


def whole_numbers(x: Tensor) -> Tensor:
    return x.square().sum(-1) / 2 + 0.4 * x[:, 0].round()


def best_of_two(x: Tensor) -> Tensor:
    return torch.where(x[:, 0] > 0, x.square().sum(-1) / 2, 2 + x.square().sum(-1))


def noisy(x: Tensor) -> Tensor:
    return x.square().sum(-1) / 2 + 0.1 * torch.randn_like(x[:, 0])


def of_all_chains(x: Tensor) -> Tensor:
    return (x - 0.5 * x.mean(0)).square().sum(-1) / 2


CODES = {
    "wrong_gradient": (detached_part, half_the_gradient, under_no_grad),
    "jumps": (indicator, whole_numbers, best_of_two),
    "random_density": (noisy, lambda x: noisy(2 * x), lambda x: noisy(x - 1)),
    "chains_interact": (
        of_all_chains,
        lambda x: x.square().sum(-1) / (1 + x.std()),
        lambda x: torch.nn.functional.normalize(x, dim=0).square().sum(-1) + x.square().sum(-1),
    ),
}
CASES = [pytest.param(code, each, id=f"{code}-{k}") for code, cases in CODES.items() for k, each in enumerate(cases)]


@pytest.mark.parametrize(("code", "density"), CASES)
def test_what_is_no_potential_of_its_own_is_reported(code: str, density) -> None:
    run = bnnviz.sample(density, "sgld", dim=2, chains=4, draws=40, warmup=10, settings={"step_size": 0.1}, seed=2)
    assert code in codes(run)


@pytest.mark.parametrize(
    "density",
    [
        lambda x: x.square().sum(-1) / 2,
        lambda x: x.abs().sum(-1) + torch.relu(x).sum(-1),
        lambda x: 100 * torch.sigmoid(100 * (x[:, 0] - 0.4)) + x.square().sum(-1),
        lambda x: -torch.logaddexp(-(x - 4).square().sum(-1), -(x + 4).square().sum(-1)),
        lambda x: x[:, 0].square() / 18 + (x[:, 1:].square() * torch.exp(-x[:, :1])).sum(-1) / 2 + x[:, 0] / 2,
        lambda x: 1e8 + x.square().sum(-1) / 2,
    ],
    ids=["normal", "kinks", "a steep step", "modes", "funnel", "a large constant"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_right_gradients_say_nothing(density, dtype: torch.dtype) -> None:
    target = bnnviz.targets.Callable(density, dim=2).to("cpu", dtype)
    rng = torch.Generator().manual_seed(0)
    start, end = (3 * torch.randn(30, 2, generator=rng, dtype=dtype) for _ in range(2))
    assert set(fits(target.gradient, start, end, 0.05)) == {Fit.RIGHT}


WITHOUT_GRADIENT = (
    lambda x: x.detach().square().sum(-1),
    lambda x: torch.as_tensor((x.detach().numpy() ** 2).sum(1)),
    lambda x: torch.ones(len(x)),
)
#: Functions whose derivatives are zero where they change.
WITHOUT_SLOPE = (
    lambda t: torch.floor((t**2).sum(-1)),
    lambda t: (t**2).sum(-1).detach() + 0 * t.sum(-1),
    lambda t: (torch.round(t) ** 2).sum(-1),
    lambda t: (t.abs() > 1).sum(-1) * 2.0 + 0 * t.sum(-1),
    lambda t: t[..., 0] ** 2 / 2 + t[..., 1].detach() ** 2 / 2,
    lambda t: t[..., 0] ** 2 / 2 + torch.round(t[..., 1]) ** 2,
)
#: Functions that have a slope, however odd.
ODD = {
    "narrow": lambda t: (t**2).sum(-1) * 5e5,
    "wide": lambda t: (t**2).sum(-1) * 5e-7,
    "two scales": lambda t: (t[..., 0] ** 2 * 1e6 + t[..., 1] ** 2 * 1e-6) / 2,
    "far off": lambda t: ((t - 1e4) ** 2).sum(-1) / 2,
    "large constant": lambda t: (t**2).sum(-1) / 2 + 1e6,
    "flat bottom": lambda t: torch.relu(t.abs() - 5).sum(-1) ** 2,
    "jump": lambda t: (t**2).sum(-1) / 2 + 2.0 * (t[..., 0] > 0),
    "waves": lambda t: (t**2).sum(-1) / 2 + torch.sin(1e5 * t).sum(-1),
    "long tails": lambda t: 1.5 * torch.log1p(t**2).sum(-1),
    "ridge": lambda t: (t[..., 0] ** 2) / 2 + 1e4 * (t[..., 1] - t[..., 0] ** 2) ** 2,
    "half in it": lambda t: t[..., 0].exp() - 2 * t[..., 0] + torch.where(t[..., 1] > 0, t[..., 1], torch.inf),
}


@pytest.mark.parametrize(
    ("density", "says"),
    [
        *((each, "does not depend on its argument in a differentiable way") for each in WITHOUT_GRADIENT),
        *((each, "its gradient there is zero at all 16 points") for each in WITHOUT_SLOPE),
    ],
)
@pytest.mark.parametrize("sampler", ["bps", "nuts", "sgld"])
def test_what_has_no_gradient_is_refused(density, says: str, sampler: str) -> None:
    with pytest.raises(bnnviz.BnnvizError, match=says):
        bnnviz.sample(density, sampler, dim=2, chains=2, draws=3, warmup=2, seed=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ODD)
def test_what_has_a_slope_passes(name: str, dtype: torch.dtype) -> None:
    run = bnnviz.sample(ODD[name], "nuts", dim=2, chains=2, draws=2, warmup=2, seed=1, dtype=dtype)
    assert "gradient" not in " ".join(map(str, run.summary()["notes"]))


EYE = torch.eye(2, dtype=torch.float64)


def writes_into(x: Tensor) -> Tensor:
    x *= 2
    return x.square().sum(-1)


@pytest.mark.parametrize(
    ("density", "says"),
    [
        (lambda x: (x @ EYE).square().sum(-1), "cannot compute in float32"),
        (lambda x: torch.addmm(EYE[:1], x, EYE).square().sum(-1), "cannot compute in float32"),
        (writes_into, "modifies its argument"),
        (lambda x: x.clamp_(min=-9).square().sum(-1), "modifies its argument"),
    ],
)
def test_precisions_that_meet_and_writing_in_place_are_reported(density, says: str) -> None:
    with pytest.raises(bnnviz.BnnvizError, match=says):
        bnnviz.sample(density, "hmc", dim=2, draws=3)
    if "compute" in says:
        run = bnnviz.sample(density, "hmc", dim=2, draws=3, warmup=2, dtype="auto")
        assert run.spec.dtype == "float64"


@pytest.mark.parametrize("constant", [1e8, -3e8])
def test_a_constant_in_whose_rounding_u_is_lost_is_reported(constant: float) -> None:
    """Neighbours of 1e8 are 8 apart in single precision; the variance, truly 1, comes out too large."""

    def far(x: Tensor) -> Tensor:
        return x.square().sum(-1) / 2 + constant

    given = {"dim": 2, "chains": 8, "draws": 100, "warmup": 50, "seed": 1}
    rounded, exact = (bnnviz.sample(far, "hmc", dtype=dtype, **given) for dtype in ("float32", "float64"))
    assert rounded.draws.var() > 1.2 > exact.draws.var()
    assert "rounding" in codes(rounded) and "rounding" not in codes(exact)
