"""Samplers that move from point to point: their stationary law at a given step size is known on a Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from families import some_quick
from scipy import linalg

from bnnviz import samplers, targets
from bnnviz.samplers.mcmc import nuts
from bnnviz.samplers.random import RandomNumbers, seeded
from truth.known_answers import SamplerCase, check, known_targets

CHAINS = 20_000
SCALES = np.array([1.0, 0.5])  # variances of the target's coordinates
LIMIT = 4.5  # standard errors; p < 1e-5 each, fewer than ten tests


def stationary(name: str, size: float, precision: float, friction: float = 0.1, temperature: float = 1.0) -> float:
    """Return the variance that a sampler has in the end, by its linear recursion."""
    if name == "sgld":
        step = np.array([[1 - size * precision / 2]])
        noise = np.array([[size * temperature]])
    else:
        # v' = (1 - a) v - eps p x + n, x' = x + v'
        step = np.array([[1 - size * precision, 1 - friction], [-size * precision, 1 - friction]])
        noise = 2 * friction * size * temperature * np.ones((2, 2))
    return float(linalg.solve_discrete_lyapunov(step, noise)[0, 0])


def variances(name: str, moves: int, **settings: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the chains' variances after some moves and their standard errors."""
    torch.manual_seed(0)
    target = targets.Gaussian(np.zeros(2), np.diag(SCALES)).to("cpu", torch.float64)
    sampler = samplers.REGISTRY.get(name)(**settings)
    sampler.prepare(target, None)
    rng = seeded(11)
    x0 = torch.randn(CHAINS, 2, generator=rng.generator, dtype=torch.float64) * torch.as_tensor(SCALES).sqrt()
    state = sampler.init(x0, rng)
    for _ in range(moves):
        state, _ = sampler.step(rng, state)
    square = state.x.square()
    return square.mean(0).numpy(), (square.std(0) / CHAINS**0.5).numpy()


@pytest.mark.parametrize("temperature", [1.0, 0.25])
@pytest.mark.parametrize(
    ("name", "size", "moves"), [("sgld", 0.3, 60), ("sgld", 1.0, 30), ("sghmc", 0.02, 150), ("sghmc", 0.2, 100)]
)
def test_the_stationary_variance_is_the_known_one(name: str, size: float, moves: int, temperature: float) -> None:
    found, error = variances(name, moves, step_size=size, temperature=temperature)
    known = [stationary(name, size, 1 / scale, temperature=temperature) for scale in SCALES]
    assert np.abs((found - known) / error).max() < LIMIT


def psgld_squares(moves: int, **settings: object) -> np.ndarray:
    """Return the squares of 20,000 chains on N(0, 1), begun there, whose preconditioner moves on."""
    target = targets.Gaussian(np.zeros(1), np.eye(1)).to("cpu", torch.float64)
    sampler = samplers.REGISTRY.get("psgld")(learn_preconditioner="always", **settings)
    sampler.prepare(target, None)
    rng = seeded(3)
    state = sampler.init(torch.randn(CHAINS, 1, generator=rng.generator, dtype=torch.float64), rng)
    for _ in range(moves):
        state, _ = sampler.step(rng, state)
    return state.x[:, 0].square().numpy()


# With floor 1 the density without Gamma is exp(-x^2/2) (1 + |x|): its variance.
WIDENED = (np.sqrt(2 * np.pi) + 4) / (np.sqrt(2 * np.pi) + 2)


@pytest.mark.parametrize(
    ("gamma", "smoothing", "variance"),
    some_quick([("none", 0.0, WIDENED), ("running", 0.0, 1.0), ("running", 0.9, 1.0), ("paper", 0.0, 1.0)], 2),
)
def test_a_moving_preconditioner_needs_gamma(gamma: str, smoothing: float, variance: float) -> None:
    squares = psgld_squares(600, gamma=gamma, smoothing=smoothing, floor=1.0, step_size=0.02)
    assert abs(squares.mean() - variance) < LIMIT * squares.std() / CHAINS**0.5


@pytest.mark.slow
def test_the_paper_s_gamma_is_too_small_for_a_mean_square_with_a_memory() -> None:
    squares = psgld_squares(600, gamma="paper", smoothing=0.9, floor=1.0, step_size=0.02)
    assert squares.mean() - 1 > LIMIT * squares.std() / CHAINS**0.5


@pytest.mark.parametrize("factor", [1.0, 1.03])
def test_psgld_with_a_preconditioner_that_is_kept_is_sgld(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """The variance of each chain is that of SGLD in its own coordinates; noise of another scale is caught."""
    if factor != 1:
        normal = RandomNumbers.normal
        monkeypatch.setattr(RandomNumbers, "normal", lambda self, shape, dtype: factor * normal(self, shape, dtype))
    target = targets.Gaussian(np.zeros(2), np.diag(SCALES)).to("cpu", torch.float64)
    sampler = samplers.REGISTRY.get("psgld")(smoothing=0.9, step_size=0.3)
    sampler.prepare(target, None)
    rng = seeded(5)
    x0 = torch.randn(CHAINS, 2, generator=rng.generator, dtype=torch.float64) * torch.as_tensor(SCALES).sqrt()
    state = sampler.init(x0, rng)
    for _ in range(50):
        state, _ = sampler.step(rng, state)
    state = sampler.freeze(rng, state)
    kept = state.square.clone()
    for _ in range(120):
        state, _ = sampler.step(rng, state)
    assert torch.equal(kept, state.square)
    precision = 1 / torch.as_tensor(SCALES)
    known = 1 / (precision * (1 - 0.3 * precision / (sampler.floor + kept.sqrt()) / 4))
    ratio = (state.x.square() / known).numpy()
    worst = np.abs((ratio.mean(0) - 1) / (ratio.std(0) / CHAINS**0.5)).max()
    assert worst < LIMIT if factor == 1 else worst > LIMIT


def test_the_closed_form_of_the_docstring() -> None:
    assert stationary("sgld", 0.3, 2.0) == pytest.approx(1 / (2 * (1 - 0.3 * 2 / 4)))


@pytest.mark.parametrize(("name", "size"), [("sgld", 0.3), ("sghmc", 0.05)])
def test_noise_of_another_scale_is_caught(monkeypatch: pytest.MonkeyPatch, name: str, size: float) -> None:
    normal = RandomNumbers.normal
    monkeypatch.setattr(RandomNumbers, "normal", lambda self, shape, dtype: 1.03 * normal(self, shape, dtype))
    found, error = variances(name, 120, step_size=size)
    known = [stationary(name, size, 1 / scale) for scale in SCALES]
    assert np.abs((found - known) / error).max() > LIMIT


@pytest.mark.slow
def test_hmc_is_right_whatever_its_step_size() -> None:
    for settings in (
        {},
        {"step_size": 0.5, "num_leapfrog_steps": 5},
        {"momentum_persistence": 0.7, "num_leapfrog_steps": 3, "jitter": False},
    ):
        for name in ("gaussian", "double_well"):
            found = check(SamplerCase("hmc", settings), known_targets()[name], draws=40, chains=600)
            assert found.ok, (settings, name, found)


def test_hmc_at_a_temperature() -> None:
    found, error = variances("hmc", 60, temperature=0.25, step_size=0.4)
    assert np.abs((found - 0.25 * SCALES) / error).max() < LIMIT


@pytest.mark.slow
def test_nuts_is_right_whatever_its_step_size() -> None:
    for settings in ({}, {"step_size": 0.7, "max_treedepth": 3, "thin": 2}):
        for name in ("gaussian-1", "double_well"):
            found = check(SamplerCase("nuts", settings), known_targets()[name], draws=20, chains=600)
            assert found.ok, (settings, name, found)


def latest(
    self: nuts.NUTS, state: nuts.State, point: nuts.PhasePoint, choice: nuts.Proposal, *rest: torch.Tensor
) -> object:
    log_weight, lot = rest
    return NUTS_EXTENDED(self, state, point, choice, log_weight, torch.full_like(lot, -torch.inf))


def unweighted(
    self: nuts.NUTS, state: nuts.State, point: nuts.PhasePoint, choice: nuts.Proposal, *rest: torch.Tensor
) -> object:
    log_weight, lot = rest
    return NUTS_EXTENDED(self, state, point, choice, torch.zeros_like(log_weight), lot)


def never_turns(self: nuts.NUTS, state: nuts.State, v: torch.Tensor) -> object:
    state, turned = NUTS_CHECKPOINTED(self, state, v)
    return state, torch.zeros_like(turned)


NUTS_EXTENDED, NUTS_CHECKPOINTED = nuts.NUTS._extended, nuts.NUTS._checkpointed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "wrong"), [("_extended", latest), ("_extended", unweighted), ("_checkpointed", never_turns)]
)
def test_a_broken_nuts_is_caught(monkeypatch: pytest.MonkeyPatch, method: str, wrong: object) -> None:
    """The last point of a subtree, points without weights, and a subtree's own turns that go unseen."""
    monkeypatch.setattr(nuts.NUTS, method, wrong)
    settings = {"step_size": 1.2 if wrong is unweighted else 0.35}
    found = check(SamplerCase("nuts", settings), known_targets()["gaussian-1"], draws=40, chains=3000)
    assert not found.ok, found


def always(self: RandomNumbers, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


def louder(self: RandomNumbers, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return 1.1 * torch.randn(tuple(shape), generator=self.generator, dtype=dtype)


@pytest.mark.parametrize(("method", "wrong"), [("uniform", always), ("normal", louder)])
def test_a_broken_hmc_is_caught(monkeypatch: pytest.MonkeyPatch, method: str, wrong: object) -> None:
    monkeypatch.setattr(RandomNumbers, method, wrong)
    found = check(
        SamplerCase("hmc", {"step_size": 1.0, "num_leapfrog_steps": 4}),
        known_targets()["gaussian"],
        draws=40,
        chains=600,
    )
    assert not found.ok, found
