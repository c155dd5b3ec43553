"""Move Markov chains from point to point with a temperature and a step size: a step is one move of every chain.

A subclass defines the move and the initial step size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import Sampler, SamplerState, counters
from bnnviz.samplers.random import RandomNumbers

_ROUNDS = 20  # power iterations for the largest curvature
_CURVATURE_CHAINS = 8


class StepSize(NamedTuple):
    """The adapted step size."""

    step_size: float


class State(NamedTuple):
    """All chains between two moves."""

    # (chains, dim): Position, and momentum; zero if a move keeps none
    x: Tensor
    momentum: Tensor
    count: Tensor  # (chains,), float64: Moves since the start
    alive: Tensor  # bool: False for a chain that met a non-finite value
    adaptation: StepSize


class Discrete(Sampler):
    """Temperature, thinning, initial positions and an adapted step size of Markov chains."""

    temperature = settings.Number(
        1.0,
        bounds=(1e-3, 10.0),
        scale="log",
        live=True,
        doc="Temperature of the density exp(-U / temperature). Values below 1 define cold posteriors.",
    )
    thin = settings.Integer(
        1, bounds=(1, 100_000), scale="log", live=True, unit="moves", doc="Number of steps between draws."
    )
    start = settings.Choice(
        "auto",
        objects=["auto", "mode", "random"],
        doc="Initial positions. mode: the mode found by Adam for each chain. auto: mode for networks (at most 100 steps"
        " if noise or prior are learned, because the mode overfits), random points for densities.",
    )
    mode_steps = settings.Integer(3000, bounds=(1, 100_000), doc="Number of Adam steps for finding a mode.")

    step_size: float | None = None

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains at their initial positions."""
        adaptation = self.first_adaptation(rng, x0)
        return State(x0, self.draw_momentum(rng, x0, adaptation), *counters(x0), adaptation)

    def first_adaptation(self, rng: RandomNumbers, x: Tensor) -> StepSize:
        """Return the initial adaptation of chains at x (chains, dim)."""
        return StepSize(self.first_size(rng, x))

    def first_size(self, rng: RandomNumbers, x: Tensor) -> float:
        """Return an initial step size from the largest curvature of U at points (n, dim)."""
        raise NotImplementedError

    def size(self, adaptation: StepSize) -> float:
        """Return the step size: the setting, or the adapted value."""
        return adaptation.step_size if self.step_size is None else self.step_size

    def draw_momentum(self, rng: RandomNumbers, like: Tensor, adaptation: StepSize) -> Tensor:
        """Return initial momenta."""
        return torch.zeros_like(like)

    def moved_to(self, rng: RandomNumbers, state: Any, x: Tensor) -> SamplerState:
        """Return the state of chains restarted at x (chains, dim), with fresh momenta."""
        return state._replace(x=x, momentum=self.draw_momentum(rng, x, state.adaptation))

    def largest_curvature(self, rng: RandomNumbers, x: Tensor, scale: Tensor | float = 1.0) -> float:
        """Return the largest |curvature| at some points (n, dim), in coordinates divided by ``scale`` (dim,)."""
        target = self.target if self.target.descent_rows is None else self.target.some_rows(self.target.descent_rows)
        x = x[:_CURVATURE_CHAINS]
        v = rng.normal(x.shape, x.dtype)
        largest = torch.ones(len(x), dtype=x.dtype, device=x.device)
        for _ in range(_ROUNDS):
            v = v / torch.linalg.vector_norm(v, dim=1, keepdim=True).clamp_min(1e-30)
            v = scale * target.gradient_and_product(x, scale * v)[2]
            largest = torch.linalg.vector_norm(v, dim=1)
        return max([float(value) for value in largest[torch.isfinite(largest)]], default=1.0) or 1.0
