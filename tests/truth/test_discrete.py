"""Samplers that move from point to point: their stationary law at a given step size is known on a Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import linalg

from bnnviz import samplers, targets
from bnnviz.bench.suites.truth import Cell, known_targets, row
from bnnviz.samplers.noise import Noise

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
    rng = torch.Generator().manual_seed(11)
    x0 = torch.randn(CHAINS, 2, generator=rng, dtype=torch.float64) * torch.as_tensor(SCALES).sqrt()
    state = sampler.init(x0, rng)
    for _ in range(moves):
        state, _ = sampler.step(state)
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


def test_the_closed_form_of_the_docstring() -> None:
    assert stationary("sgld", 0.3, 2.0) == pytest.approx(1 / (2 * (1 - 0.3 * 2 / 4)))


@pytest.mark.parametrize(("name", "size"), [("sgld", 0.3), ("sghmc", 0.05)])
def test_noise_of_another_scale_is_caught(monkeypatch: pytest.MonkeyPatch, name: str, size: float) -> None:
    normal = Noise.normal
    monkeypatch.setattr(Noise, "normal", lambda self, shape, dtype: 1.03 * normal(self, shape, dtype))
    found, error = variances(name, 120, step_size=size)
    known = [stationary(name, size, 1 / scale) for scale in SCALES]
    assert np.abs((found - known) / error).max() > LIMIT


def test_hmc_is_right_whatever_its_step_size() -> None:
    for settings in ({}, {"step_size": 0.5, "leaps": 5}, {"step_size": 0.05, "leaps": 3, "every": 4}):
        for name in ("gaussian", "double_well"):
            found = row(Cell("hmc", settings), known_targets()[name], draws=40, chains=600)
            assert found.ok, (settings, name, found)


def test_hmc_at_a_temperature() -> None:
    found, error = variances("hmc", 60, temperature=0.25, step_size=0.4)
    assert np.abs((found - 0.25 * SCALES) / error).max() < LIMIT


def always(self: Noise, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


def louder(self: Noise, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return 1.1 * torch.randn(tuple(shape), generator=self.rng, dtype=dtype)


@pytest.mark.parametrize(("method", "wrong"), [("uniform", always), ("normal", louder)])
def test_a_broken_hmc_is_caught(monkeypatch: pytest.MonkeyPatch, method: str, wrong: object) -> None:
    monkeypatch.setattr(Noise, method, wrong)
    found = row(Cell("hmc", {"step_size": 1.0, "leaps": 4}), known_targets()["gaussian"], draws=40, chains=600)
    assert not found.ok, found
