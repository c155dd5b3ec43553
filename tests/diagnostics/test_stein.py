"""Widening by Stein's identity on draws whose variances are known; threshold: 4.4 standard errors (p about 1e-5)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from families import some_quick
from scipy.stats import norm

from bnnviz import targets
from bnnviz.diagnostics import pareto_k, variance_inflation
from bnnviz.engine.monitor.identity import has_long_tail
from bnnviz.engine.monitor.importance import CLEAR_WEIGHTED
from bnnviz.engine.monitor.variances import is_clear
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec

MOST = 4.4


def gaussian(dim: int, factor: float = 1.0, shape: tuple[int, int] = (16, 200)) -> tuple[np.ndarray, ...]:
    """Return draws of N(mean, factor S), and U and its gradient of N(mean, S)."""
    rng = np.random.default_rng(dim)
    root = np.tril(rng.normal(size=(dim, dim)) / dim) + np.eye(dim)
    precision, mean = np.linalg.inv(root @ root.T), rng.normal(size=dim)
    x = mean + np.sqrt(factor) * rng.standard_normal((*shape, dim)) @ root.T
    gradient = (x - mean) @ precision
    return x, ((x - mean) * gradient).sum(-1) / 2, gradient


@pytest.mark.parametrize("dim", [1, 5, 50])
@pytest.mark.parametrize("shape", [(16, 200), (2, 1600)])
def test_right_draws_are_found_right(dim: int, shape: tuple[int, int]) -> None:
    found = variance_inflation(*gaussian(dim, shape=shape))
    assert abs(found.share) < MOST * found.error
    assert found.error < 0.1
    assert (found.each is None) == (dim > 8)


@pytest.mark.parametrize("dim", [1, 2, 5, 50])
@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_the_share_is_found(dim: int, factor: float) -> None:
    found = variance_inflation(*gaussian(dim, factor))
    assert abs(found.share - (factor - 1)) < MOST * found.error
    assert abs(found.share) > MOST * found.error


def test_draws_of_a_bent_density() -> None:
    target = targets.REGISTRY.get("banana")()
    exact = target.exact_draws(6400, 3).reshape(16, 400, 2)
    for stretched, wrong in ((1.0, False), (1.2, True)):
        x = exact * np.sqrt(stretched)
        potential, gradient = (part.numpy() for part in target.gradient(torch.as_tensor(x.reshape(-1, 2))))
        found = variance_inflation(x, potential.reshape(16, 400), gradient.reshape(x.shape))
        assert (found.share > MOST * found.error) == wrong
        true = x.reshape(-1, 2).var(0) / np.diag(target.cov()) - 1
        assert wrong or (abs(found.each - true) < MOST * found.each_error).all()


@pytest.mark.parametrize("dim", [2, 8, 50, 150])
def test_the_tails_of_many_normal_coordinates_do_not_seem_long(dim: int) -> None:
    """Of twenty sets of draws three at most, whatever the dimension; those of t with 3 degrees of freedom mostly."""
    normal = student = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        normal += has_long_tail(rng.normal(size=(1045, dim)))
        student += has_long_tail(rng.standard_t(3, size=(1045, dim)))
    assert normal <= 3 and student >= 17


def test_a_wrong_gradient_is_caught() -> None:
    x, potential, gradient = gaussian(2)
    found = variance_inflation(x, potential, 0.7 * gradient)
    assert abs(found.share) > MOST * found.error


def test_too_few_or_broken_draws_give_nothing() -> None:
    assert variance_inflation(*(part[:1, :10] for part in gaussian(2))) is None
    x, potential, gradient = gaussian(2)
    gradient[0, 0, 0] = np.nan
    assert variance_inflation(x, potential, gradient) is None


@pytest.mark.parametrize("reference", ["exact", "from_prior", "prior"])
def test_the_aim_of_a_boomerang_is_what_it_samples(reference: str) -> None:
    spec = Spec(target="network", sampler="boomerang", settings={"reference": reference, "mode_steps": 300}, chains=2)
    run = ViewedRun(spec.replace(dtype="float64", device="cpu"))
    run.prepare()
    x = run.mode + 0.1 * torch.randn(3, run.target.dim, dtype=torch.float64, generator=run.rng)
    potential, gradient = run.sampler.tempered_target(x, run.state)
    step = 1e-5 * torch.randn(x.shape, dtype=torch.float64, generator=run.rng)
    ahead, behind = (run.sampler.tempered_target(there, run.state)[0] for there in (x + step, x - step))
    assert torch.allclose((ahead - behind) / 2, (gradient * step).sum(-1), rtol=1e-4)
    # At the mode of the posterior a reference in the place of the prior leaves only the prior's own pull.
    at_mode = run.sampler.tempered_target(run.mode[None], run.state)[1]
    pull = torch.zeros_like(at_mode) if reference != "prior" else -run.target.prior_precision * run.mode
    stiff = run.target.curvature_diagonal(run.mode).max()
    assert (at_mode - pull).abs().max() < 0.05 * stiff


def _exact(name: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return 2,000 exact draws of a density, with U and its gradient."""
    if name == "gaussian":
        x = rng.normal(size=(2000, 10)) * np.geomspace(0.1, 10, 10)
        g = x / np.geomspace(0.1, 10, 10) ** 2
        return x, (x * g).sum(1) / 2, g
    if name == "log-gamma":
        x = np.log(rng.gamma(0.5, size=(2000, 12)))
        return x, (np.exp(x) - 0.5 * x).sum(1), np.exp(x) - 0.5
    if name.startswith("t-"):
        degrees = int(name.removeprefix("t-"))
        x = rng.standard_t(degrees, size=(2000, 2))
        u = (degrees + 1) / 2 * np.log1p(x**2 / degrees).sum(1)
        return x, u, (degrees + 1) * x / (degrees + x**2)
    if name == "banana":
        first, second = rng.normal(size=(2, 2000)) * [[1.0], [0.5]]
        x = np.stack([first, first**2 + second], 1)
        return x, first**2 / 2 + 2 * second**2, np.stack([first - 8 * second * first, 4 * second], 1)
    dim = int(name.removeprefix("funnel-"))
    v = 3 * rng.normal(size=(2000, 1))
    x = np.hstack([v, np.exp(v / 2) * rng.normal(size=(2000, dim))])
    squares = (x[:, 1:] ** 2).sum(1) * np.exp(-x[:, 0])
    first = x[:, 0] / 9 + dim / 2 - squares / 2
    return x, x[:, 0] ** 2 / 18 + dim * x[:, 0] / 2 + squares / 2, np.column_stack([first, x[:, 1:] * np.exp(-v)])


@pytest.mark.parametrize(
    "name", some_quick(["gaussian", "log-gamma", "funnel-9", "funnel-1", "t-3", "t-5", "banana"], 3)
)
def test_exact_draws_seldom_raise_an_alarm(name: str) -> None:
    """At one in twenty more than 5 of 40 seeds would raise one with probability 0.014; long tails are left out."""
    alarms = 0
    for seed in range(40):
        x, u, g = _exact(name, np.random.default_rng(seed))
        found = variance_inflation(x.reshape(4, 500, -1), u.reshape(4, 500), g.reshape(4, 500, -1))
        alarms += not has_long_tail(x) and is_clear(found.share, found.error)
    assert alarms <= 5


@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_draws_of_another_spread_raise_the_alarm(factor: float) -> None:
    for seed in range(10):
        x, _, g = _exact("gaussian", np.random.default_rng(seed))
        x, g = factor * x, factor * g
        found = variance_inflation(x.reshape(4, 500, -1), (x * g).sum(1).reshape(4, 500) / 2, g.reshape(4, 500, -1))
        assert is_clear(found.share, found.error) and (found.share > 0) == (factor > 1)


@pytest.mark.parametrize("half", [1.0, 1.5, 5.0])
def test_weighted_draws_that_miss_a_part_are_too_narrow_though_their_weights_are_light(half: float) -> None:
    """Uniform draws in a box, weighted to be normal in it; its variance has a closed form."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-half, half, size=(10, 400, 2))
    u = (x * x).sum(-1) / 2
    found = variance_inflation(x, u, x, logs=-u)
    cut = 2 * half * norm.pdf(half) / (2 * norm.cdf(half) - 1)
    assert pareto_k(-u) < 0.5
    assert abs(found.share + cut) < MOST * found.error < 0.3
    assert is_clear(found.share, found.error, CLEAR_WEIGHTED) == (half < 5)


def test_weights_that_undo_another_spread_leave_nothing_to_tell() -> None:
    alarms = 0
    for seed in range(10):
        z = np.random.default_rng(seed).normal(size=(10, 100, 2))
        x = 1.4 * z  # of twice the variance, weighted back
        u = (x * x).sum(-1) / 2
        found = variance_inflation(x, u, x, logs=(z * z).sum(-1) / 2 - u)
        alarms += is_clear(found.share, found.error, CLEAR_WEIGHTED)
        assert is_clear(*variance_inflation(x, u, x)[:2], CLEAR_WEIGHTED), "without their weights they are too wide"
    assert alarms <= 1


def test_weights_that_have_collapsed_tell_nothing() -> None:
    x = np.random.default_rng(0).normal(size=(10, 400, 2))
    u = (x * x).sum(-1) / 2
    assert variance_inflation(x, u, x, logs=-1000 * u) is None


@pytest.mark.parametrize("every", [1, 2, 4, 8])
def test_the_error_of_weighted_draws_covers_right_ones_at_any_thinning(every: int) -> None:
    x, u, gradient = gaussian(3, shape=(4, 3200))
    logs = np.random.default_rng(1).normal(0.0, 0.1, u.shape)
    found = variance_inflation(x, u[:, ::every], gradient[:, ::every], every, logs)
    assert abs(found.share) < MOST * found.error < 0.5
