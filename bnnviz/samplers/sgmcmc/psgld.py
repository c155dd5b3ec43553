r"""Sample by preconditioned stochastic-gradient Langevin dynamics.

$$V \leftarrow \beta V + (1 - \beta) (\nabla U(x) / N)^2, \qquad G = (\lambda + \sqrt V)^{-1},$$
$$x \leftarrow x - \tfrac\epsilon2 (G \nabla U(x) - T \Gamma) + \xi, \qquad \xi \sim N(0, \epsilon T G), \qquad
  \Gamma_i = \partial G_i / \partial x_i,$$

with a batch gradient over the N rows and no accept step. Reference: C. Li, C. Chen, D. Carlson and L. Carin,
Preconditioned stochastic gradient Langevin dynamics for deep neural networks, AAAI 2016, algorithm 1,
doi:10.1609/aaai.v30i1.10200.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, counters, length, preset
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.sgmcmc.base import SAFE, Info, StochasticGradient
from bnnviz.samplers.sgmcmc.text import PreconditionedText

_MEMORIES = 5  # length of the tuning, in memory lengths of the mean square
_LEAST = 1e-12  # minimum initial mean square


class Preconditioning(NamedTuple):
    """The adapted step size, and whether the preconditioner is fixed."""

    step_size: float
    frozen: bool


class State(NamedTuple):
    """State of all chains between two moves."""

    x: Tensor  # (chains, dim)
    square: Tensor  # (chains, dim): Mean square V of the gradient for one row
    # (chains,): As in `bnnviz.samplers.discrete.State`
    count: Tensor
    alive: Tensor
    slope: Tensor  # (chains, dim): Derivative of the mean square with respect to its coordinate
    adaptation: Preconditioning


@REGISTRY.add
class PSGLD(StochasticGradient):
    """SGLD with RMSprop's preconditioner G = 1 / (floor + sqrt(V)): x - (eps / 2) (G grad U - T Gamma) + N(0, eps G T).

    V is a running mean of the squared gradient per row, (grad U / N)^2, and Gamma = dG/dx. By default V is learned in
    the tuning and then fixed: SGLD in other coordinates, exact as eps goes to 0. With
    ``learn_preconditioner="always"``, as printed, V continues to change with x, and the sampled density depends on
    ``gamma``. Without Gamma, as the paper recommends, it is exp(-U) (floor + sqrt(V(x))) as eps goes to 0, which is
    wider than the target for exact gradients; batch noise reduces the difference. The paper's Gamma is the derivative
    of the newest square alone, (1 - smoothing) times the derivative of V for slowly moving x; ``running`` averages it
    like V. The second derivative in Gamma comes from one random sign vector per move (Hutchinson), and is charged as a
    gradient. Source: Li, Chen, Carlson and Carin 2016, algorithm 1.
    """

    registered = "psgld"
    title = "pSGLD"
    text = PreconditionedText
    width = 3

    smoothing = settings.Number(
        0.99, bounds=(0.0, 0.9999), step=0.01, live=True, doc="Decay rate of the mean square per step."
    )
    floor = settings.Number(
        1e-5,
        bounds=(1e-10, 10.0),
        scale="log",
        live=True,
        doc="Constant that is added to the root mean square to bound G.",
    )
    learn_preconditioner = settings.Choice(
        "tuning",
        objects=["tuning", "always"],
        label="Adapt",
        doc="tuning: the mean square is adapted during tuning and then fixed. always: it is adapted continuously, as in"
        " the paper, which is biased.",
    )
    gamma = settings.Choice(
        "none",
        objects=["none", "paper", "running"],
        when={"learn_preconditioner": ["always"]},
        doc="Correction for a preconditioner that changes with x. none: omitted, as the paper recommends. paper:"
        " computed from the latest square only. running: averaged like the mean square; exact as the step size goes to"
        " 0.",
    )

    presets = [
        preset(
            "paper",
            "As in the paper",
            "The preconditioner continues to change, without Gamma.",
            learn_preconditioner="always",
            gamma="none",
        ),
    ]

    @property
    def _corrects(self) -> bool:
        return self.learn_preconditioner == "always" and self.gamma != "none"

    @property
    def gradients_per_step(self) -> int:
        """Single-row gradients that a move is charged; Gamma costs about one more."""
        return self.source.examples * (2 if self._corrects else 1)

    @property
    def _rows(self) -> int:
        return self.target.data_rows or 1

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains at their initial positions, with the mean square expected in the bulk of the posterior."""
        # At a mode the gradient is zero; in the posterior its mean square equals the mean curvature.
        curvature = self.target.curvature_diagonal(x0[0]).abs() + (self.target.prior_precision or 0.0)
        square = (curvature / self._rows**2).clamp_min(_LEAST).expand_as(x0).clone()
        found = Preconditioning(self._size_for(rng, x0, square[0]), False)
        return State(x0, square, *counters(x0), torch.zeros_like(x0), found)

    def _size_for(self, rng: RandomNumbers, x: Tensor, square: Tensor) -> float:
        """Return a fifth of the inverse of the largest curvature, preconditioned by a mean square (dim,)."""
        return SAFE / self.largest_curvature(rng, x, self.preconditioner(square).sqrt())

    def preconditioner(self, square: Tensor) -> Tensor:
        """Return G for mean squares of the gradient."""
        return 1 / (self.floor + square.sqrt())

    def kernel(self, rng: RandomNumbers, state: State, batch: Any) -> tuple[State, Info]:
        """Move every chain once."""
        source, product = self.source.of(batch), None
        if self._corrects:
            sign = torch.where(rng.uniform(state.x.shape, state.x.dtype) < 0.5, -1.0, 1.0).to(state.x.dtype)
            potential, g, product = source.gradient_and_product(state.x, sign)
            product = sign * product
        else:
            potential, g = source.gradient(state.x)
        square, slope = self._remembered(state, g, product)
        size = self.sizes(state.adaptation, state.count)
        shape = self.preconditioner(square)
        drift = shape * g
        if self._corrects:
            # dG/dx by the chain rule through the root; if the square is zero, so is its slope.
            drift = drift + self.temperature * shape.square() * slope / (2 * square.sqrt()).clamp_min(1e-30)
        half = 0.5 * size[:, None].to(g.dtype) * drift
        noise = (size[:, None].to(g.dtype) * shape * self.temperature).sqrt()
        noise = noise * rng.normal(g.shape, g.dtype)
        x = state.x - half + noise
        finite = torch.isfinite(potential) & torch.isfinite(x).all(-1)
        after, failed = self.moved(state._replace(slope=slope), finite, x=x, square=square)
        return after, Info(potential, size, length(half), length(noise), failed)

    def _remembered(self, state: State, g: Tensor, product: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the mean square and its slope updated with a gradient g and, if known, the diagonal of H."""
        if state.adaptation.frozen:
            return state.square, state.slope
        keep, each = self.smoothing, g / self._rows
        square = keep * state.square + (1 - keep) * each.square()
        if product is None:
            return square, state.slope
        new = (1 - keep) * 2 * each * product / self._rows
        return square, new + keep * state.slope if self.gamma == "running" else new

    def is_tuned(self, state: State) -> bool:
        """Return whether the mean square no longer depends on its initial value."""
        return float(state.count.max()) * (1 - self.smoothing) >= _MEMORIES

    def freeze(self, rng: RandomNumbers, state: State) -> State:
        """Fix the preconditioner, if it is learned in the tuning, and find a step size for it."""
        if state.adaptation.frozen or self.learn_preconditioner != "tuning":
            return state
        living = state.alive if bool(state.alive.any()) else ~state.alive
        size = self._size_for(rng, state.x, state.square[living].mean(0))
        return state._replace(adaptation=Preconditioning(size, True))

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the state of chains restarted at x (chains, dim), with the adaptation kept."""
        return state._replace(x=x)
