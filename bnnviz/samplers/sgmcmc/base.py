r"""Define the base of samplers that move by batch gradients and noise, without an accept step.

They sample $\pi(x) \propto \exp(-U(x) / T)$ up to an error that vanishes with the step size
$\epsilon_t = \epsilon (1 + t / t_0)^{-\gamma}$. The gradient of a batch B of the N rows is
$\frac{N}{|B|} \sum_{i \in B} \nabla u_i(x)$, plus that of the prior. Reference: Y.-A. Ma, T. Chen and E. B. Fox, A
complete recipe for stochastic gradient MCMC, NeurIPS 2015, doi:10.48550/arXiv.1506.04696.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import Traits, length
from bnnviz.samplers.discrete import Discrete, State, StepSize
from bnnviz.samplers.minibatch import MiniBatch, batch_size_setting, refuse_without_rows
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.sgmcmc.text import DriftText
from bnnviz.targets import Target

SAFE = 0.2  # step size, in units of the inverse curvature
_BATCHES = {"batch_size": {"least": 1}}


class Info(NamedTuple):
    """Info of one move for every chain, shape (chains,)."""

    potential: Tensor  # U on the batch, before the move
    step_size: Tensor
    # Distance moved by the gradient and by noise
    drift: Tensor
    noise: Tensor
    failed: Tensor  # bool: The chain met a non-finite value


class Move(NamedTuple):
    """Result of a move: position and momentum (chains, dim), and its gradient and noise parts."""

    x: Tensor
    momentum: Tensor
    drift: Tensor
    noise: Tensor


class StochasticGradient(Discrete):
    """Base of the stochastic-gradient samplers: batches, step size and its schedule."""

    traits = Traits(exact=False)
    info_means = {"drift": "by the gradient", "noise": "by noise"}
    text = DriftText

    thin = settings.Integer(
        10, bounds=(1, 100_000), scale="log", live=True, unit="moves", doc="Number of steps between draws."
    )
    step_size = settings.Number(
        None,
        bounds=(1e-9, 100.0),
        scale="log",
        allow_None=True,
        live=True,
        empty="found",
        doc="Step size. Empty: one fifth of the inverse of the largest curvature of U at the start.",
    )
    decay = settings.Number(
        0.0,
        bounds=(0.0, 1.0),
        step=0.05,
        live=True,
        doc="Exponent of the decay of the step size, which is proportional to (1 + t / decay_after)^-decay in step t;"
        " 0: constant.",
    )
    decay_after = settings.Number(
        1000.0,
        bounds=(1.0, 1e7),
        scale="log",
        unit="moves",
        live=True,
        doc="Number of steps after which the step size decays.",
    )
    batch_size = batch_size_setting(
        "Number of random data rows per gradient, redrawn for each transition. Empty: all rows.", live=True
    )
    control_variates = settings.Boolean(
        False,
        when=_BATCHES,
        doc="Use control variates: subtract the batch gradient at the mode from each batch gradient and add the full"
        " gradient at the mode. This doubles the cost of a gradient.",
    )

    @property
    def needs_mode(self) -> bool:
        """Whether a mode is needed before the chains start."""
        return self.control_variates

    def move(self, rng: RandomNumbers, x: Tensor, momentum: Tensor, g: Tensor, size: Tensor) -> Move:
        """Return the move of chains at x with momentum and gradient g (chains, dim) for step sizes (chains, 1)."""
        raise NotImplementedError

    def check(self, target: Target) -> None:
        """Raise if batches do not fit the target."""
        refuse_without_rows(target, self.batch_size)

    def set_mode(self, mode: Tensor | None) -> None:
        """Choose the source of gradients; control variates, if used, are anchored at the mode (dim,)."""
        anchor = mode if self.control_variates else None
        self.source = MiniBatch(self.target, self.batch_size, anchor=anchor)

    @property
    def gradients_per_step(self) -> int:
        """Single-row gradients that a move is charged."""
        return self.source.examples

    def first_size(self, rng: RandomNumbers, x: Tensor) -> float:
        """Return a fifth of the inverse of the largest curvature, for which SGLD's variance is 5% too large."""
        return SAFE / self.largest_curvature(rng, x)

    def sizes(self, adaptation: StepSize, count: Tensor) -> Tensor:
        """Return the step sizes (chains,) of chains after ``count`` moves."""
        size = self.size(adaptation)
        if self.decay == 0:
            return torch.full_like(count, size)
        return size * (1 + count / self.decay_after) ** -self.decay

    def pre_draw(self, rng: RandomNumbers, state: Any) -> tuple[Any]:
        """Draw the batch."""
        return (self.source.draw((), len(state.x), rng),)

    def kernel(self, rng: RandomNumbers, state: State, batch: Any) -> tuple[State, Info]:
        """Move every chain once."""
        potential, g = self.source.of(batch).gradient(state.x)
        size = self.sizes(state.adaptation, state.count)
        move = self.move(rng, state.x, state.momentum, g, size[:, None].to(g.dtype))
        finite = torch.isfinite(potential) & torch.isfinite(move.x).all(-1)
        after, failed = self.moved(state, finite, x=move.x, momentum=move.momentum)
        return after, Info(potential, size, length(move.drift), length(move.noise), failed)
