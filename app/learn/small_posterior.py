"""Sample the posterior of a network with four hidden units, each chain at a copy of its own of the same weights.

The network is that of `exchange`; its twelve weights have a normal prior, and its data are points on its function with
normal noise. Chains are HMC's, with gradients in closed form: some thousands of them, a fraction of a second.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from bnnviz_app.learn.exchange import OFFSET, START, exchanged, outputs, turned

CHAINS, DRAWS = 4, 300
NOISE_SD, PRIOR_SD = 0.2, 2.0
_MOVES_BEFORE = 60
_STEP, _STEPS = 0.036, 15


class _Linear(NamedTuple):
    """A linear layer in a flat vector of weights, as `bnnviz.diagnostics.canonical` reads it."""

    inputs: int
    outputs: int
    weight: int
    bias: int | None
    activation: str


#: Of a flat vector: incoming weights, biases, outgoing weights.
LAYERS = (_Linear(1, 4, 0, 4, "tanh"), _Linear(4, 1, 8, None, "identity"))


def flat(units: np.ndarray) -> np.ndarray:
    """Return units (..., 4, 3) as flat vectors (..., 12)."""
    return np.swapaxes(units, -1, -2).reshape(*units.shape[:-2], 12)


def copies() -> np.ndarray:
    """Return the weights (chains, 4, 3) at which chains begin: one function, four times."""
    second = turned(exchanged(START, 0, 1), 2)
    third = exchanged(exchanged(START, 0, 2), 1, 3)
    fourth = turned(turned(exchanged(START, 1, 2), 0), 3)
    return np.stack([START, second, third, fourth])


@functools.cache
def data() -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs and the observations."""
    x = np.linspace(-1.5, 1.5, 25)
    return x, outputs(START, x) + NOISE_SD * np.random.default_rng(3).standard_normal(len(x))


def potential(units: np.ndarray) -> np.ndarray:
    """Return U (chains,) of units (chains, 4, 3)."""
    _, error = _forward(units)
    return 0.5 * (error**2).sum(1) / NOISE_SD**2 + 0.5 * (units**2).sum((1, 2)) / PRIOR_SD**2


def gradient(units: np.ndarray) -> np.ndarray:
    """Return the gradient of U (chains, 4, 3)."""
    hidden, error = _forward(units)
    inner = error[:, :, None] * (1 - hidden**2) * units[:, None, :, 2]
    parts = [(inner * data()[0][:, None]).sum(1), inner.sum(1), (error[:, :, None] * hidden).sum(1)]
    return np.stack(parts, axis=2) / NOISE_SD**2 + units / PRIOR_SD**2


def _forward(units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the hidden units (chains, rows, 4) and the errors (chains, rows)."""
    x, y = data()
    hidden = np.tanh(x[:, None] * units[:, None, :, 0] + units[:, None, :, 1])
    return hidden, (hidden * units[:, None, :, 2]).sum(2) + OFFSET - y


@functools.cache
def draws() -> np.ndarray:
    """Return the draws (chains, draws, 4, 3), from a fixed seed."""
    rng = np.random.default_rng(11)
    units, kept = copies(), []
    energy = potential(units)
    for move in range(_MOVES_BEFORE + DRAWS):
        units, energy = _move(units, energy, rng)
        if move >= _MOVES_BEFORE:
            kept.append(units)
    return np.stack(kept, axis=1)


def _move(units: np.ndarray, energy: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Move each chain by one trajectory of HMC."""
    velocity = rng.standard_normal(units.shape)
    before = energy + 0.5 * (velocity**2).sum((1, 2))
    end, step = units, _STEP * rng.uniform(0.6, 1.2)
    velocity = velocity - 0.5 * step * gradient(end)
    for last in [False] * (_STEPS - 1) + [True]:
        end = end + step * velocity
        velocity = velocity - (0.5 if last else 1.0) * step * gradient(end)
    reached = potential(end)
    accepted = np.log(rng.uniform(size=len(units))) < before - reached - 0.5 * (velocity**2).sum((1, 2))
    return np.where(accepted[:, None, None], end, units), np.where(accepted, reached, energy)
