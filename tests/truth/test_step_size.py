"""The stationary error of the samplers with a step size: linear in it, with the coefficient of the closed form."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnnviz import samplers, targets
from bnnviz.samplers.random import RandomNumbers, seeded

PRECISION, FRICTION = 2.0, 0.1
#: On a Gaussian the variance is 1 / (precision (1 - c eps)), so that 1 - 1 / (variance x precision) is c eps.
COEFFICIENTS = {"sgld": PRECISION / 4, "sghmc": PRECISION / (2 * (2 - FRICTION))}
SHARES = np.array([0.05, 0.1, 0.2, 0.3, 0.45])  # of the largest stable step size, 1 / c
CHAINS = 4000
LIMIT = 4.5  # standard errors; p < 1e-5 each, fewer than ten tests


def bent(name: str, size: float) -> tuple[float, float]:
    """Return 1 - 1 / (variance x precision) in the end, and its standard error over chains."""
    target = targets.Gaussian(np.zeros(1), np.eye(1) / PRECISION).to("cpu", torch.float64)
    sampler = samplers.REGISTRY.get(name)(step_size=size, **({"friction": FRICTION} if name == "sghmc" else {}))
    sampler.prepare(target, None)
    x0 = torch.as_tensor(target.exact_draws(CHAINS, seed=3))
    rng = seeded(4)
    state = sampler.init(x0, rng)
    # What a start leaves of a variance is exp(-eps precision t) under SGLD, (1 - friction)^t under SGHMC.
    wait = int(10 / (size * PRECISION)) if name == "sgld" else 100
    total = torch.zeros(CHAINS, dtype=torch.float64)
    for move in range(3 * wait):
        state, _ = sampler.step(rng, state)
        if move >= wait:
            total += state.x[:, 0] ** 2
    ratio = total * PRECISION / (2 * wait)
    return 1 - 1 / float(ratio.mean()), float(ratio.std() / CHAINS**0.5 / ratio.mean() ** 2)


def fitted(name: str) -> tuple[float, float]:
    """Return the coefficient of a line through the origin, and its standard error."""
    sizes = SHARES / COEFFICIENTS[name]
    off, error = np.array([bent(name, size) for size in sizes]).T
    weight = sizes**2 / error**2
    return float((weight * off / sizes).sum() / weight.sum()), float(weight.sum() ** -0.5)


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_the_error_is_linear_in_the_step_size(name: str) -> None:
    for share in SHARES:
        off, error = bent(name, share / COEFFICIENTS[name])
        assert abs(off - share) / error < LIMIT
    found, error = fitted(name)
    assert abs(found - COEFFICIENTS[name]) / error < LIMIT
    assert error < 0.01 * COEFFICIENTS[name]


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_noise_of_another_scale_is_caught(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    normal = RandomNumbers.normal
    monkeypatch.setattr(RandomNumbers, "normal", lambda self, shape, dtype: 1.02 * normal(self, shape, dtype))
    found, error = fitted(name)
    assert abs(found - COEFFICIENTS[name]) / error > LIMIT
