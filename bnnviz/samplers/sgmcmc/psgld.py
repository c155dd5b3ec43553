r"""Sample by preconditioned stochastic-gradient Langevin dynamics.

$$V \leftarrow \beta V + (1 - \beta) (\nabla U(x) / N)^2, \qquad G = (\lambda + \sqrt V)^{-1},$$
$$x \leftarrow x - \tfrac\epsilon2 (G \nabla U(x) - T \Gamma) + \xi, \qquad \xi \sim N(0, \epsilon T G), \qquad
  \Gamma_i = \partial G_i / \partial x_i,$$

with the gradient of a batch of the N rows and no accept step. Reference: C. Li, C. Chen, D. Carlson and L. Carin,
Preconditioned stochastic gradient Langevin dynamics for deep neural networks, AAAI 2016, algorithm 1,
doi:10.1609/aaai.v30i1.10200.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, counters, length
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.sgmcmc.base import SAFE, Info, StochasticGradient
from bnnviz.samplers.sgmcmc.text import PreconditionedText

_MEMORIES = 5  # of the mean square that the tuning lasts
_LEAST = 1e-12  # mean square that a chain begins with


class Preconditioning(NamedTuple):
    """What was found: the size of a step, and whether the preconditioner is kept from here on."""

    step_size: float
    frozen: bool


class State(NamedTuple):
    """All chains between two moves."""

    x: Tensor  # (chains, dim)
    square: Tensor  # (chains, dim): Mean square V of the gradient for one row
    # (chains,): As of `bnnviz.samplers.discrete.State`
    count: Tensor
    alive: Tensor
    slope: Tensor  # (chains, dim): Derivative of the mean square along its own coordinate
    adaptation: Preconditioning


@REGISTRY.add
class PSGLD(StochasticGradient):
    """SGLD with RMSprop's preconditioner G = 1 / (floor + sqrt(V)): x - (eps / 2) (G grad U - T Gamma) + N(0, eps G T).

    V is a running mean of the squared gradient for one row, (grad U / N)^2, and Gamma = dG/dx. By default V is
    learned in the tuning and then kept: SGLD in other coordinates, right as eps goes to 0. With
    ``learn_preconditioner="always"``, as printed, V goes on moving with x, and what is sampled depends on
    ``gamma``. Without it, as the paper recommends, the density is that of exp(-U) (floor + sqrt(V(x))) as eps goes
    to 0: wider than the target where gradients are exact, and less so the more the batches' noise hides the
    gradient in V. The paper's Gamma is the derivative of the newest square alone, (1 - smoothing) times what V does
    when x moves slowly; ``running`` averages it as V is averaged. The second derivative that Gamma needs comes from
    one random sign a move (Hutchinson), and is charged as a gradient.
    Source: Li, Chen, Carlson and Carin 2016, algorithm 1.
    """

    registered = "psgld"
    title = "pSGLD"
    text = PreconditionedText
    width = 3

    smoothing = settings.Number(
        0.99, bounds=(0.0, 0.9999), step=0.01, live=True, doc="Share of the mean square that each move keeps."
    )
    floor = settings.Number(
        1e-5, bounds=(1e-10, 10.0), scale="log", live=True, doc="Added to the root of the mean square: bounds G."
    )
    learn_preconditioner = settings.Choice(
        "tuning",
        objects=["tuning", "always"],
        label="Adapt",
        doc="tuning: the mean square is learned in the tuning and then kept, which is right. always: it goes on, as in"
        " the paper.",
    )
    gamma = settings.Choice(
        "none",
        objects=["none", "paper", "running"],
        when={"learn_preconditioner": ["always"]},
        doc="Correction for a preconditioner that moves with x. none: left out, as the paper recommends. paper: of the"
        " newest square alone. running: averaged as the mean square is; right as the step size goes to 0.",
    )

    presets = [
        {
            "name": "paper",
            "title": "As in the paper",
            "doc": "The preconditioner goes on moving, without Gamma.",
            "settings": {"learn_preconditioner": "always", "gamma": "none"},
        },
    ]

    @property
    def _corrects(self) -> bool:
        return self.learn_preconditioner == "always" and self.gamma != "none"

    @property
    def gradients_per_step(self) -> int:
        """Gradients of single rows that a move is charged for; Gamma costs about a second one."""
        return self.source.examples * (2 if self._corrects else 1)

    @property
    def _rows(self) -> int:
        return self.target.data_rows or 1

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains at their starting points, the mean square as it is where the posterior has its mass.

        At a mode the gradient of all rows is zero, which would make the preconditioner endless. In the posterior the
        mean square of a gradient is the mean curvature.
        """
        curvature = self.target.curvature_diagonal(x0[0]).abs() + (self.target.prior_precision or 0.0)
        square = (curvature / self._rows**2).clamp_min(_LEAST).expand_as(x0).clone()
        found = Preconditioning(self._size_for(rng, x0, square[0]), False)
        return State(x0, square, *counters(x0), torch.zeros_like(x0), found)

    def _size_for(self, rng: RandomNumbers, x: Tensor, square: Tensor) -> float:
        """Return a fifth of one over the largest curvature in coordinates preconditioned by a mean square (dim,)."""
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
            # dG/dx, with the chain rule through the root; where the square is zero, so is its slope.
            drift = drift + self.temperature * shape.square() * slope / (2 * square.sqrt()).clamp_min(1e-30)
        half = 0.5 * size[:, None].to(g.dtype) * drift
        noise = (size[:, None].to(g.dtype) * shape * self.temperature).sqrt()
        noise = noise * rng.normal(g.shape, g.dtype)
        x = state.x - half + noise
        finite = torch.isfinite(potential) & torch.isfinite(x).all(-1)
        after, failed = self.moved(state._replace(slope=slope), finite, x=x, square=square)
        return after, Info(potential, size, length(half), length(noise), failed)

    def _remembered(self, state: State, g: Tensor, product: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the mean square and its slope after another gradient g, with the diagonal of H if that is known."""
        if state.adaptation.frozen:
            return state.square, state.slope
        keep, each = self.smoothing, g / self._rows
        square = keep * state.square + (1 - keep) * each.square()
        if product is None:
            return square, state.slope
        new = (1 - keep) * 2 * each * product / self._rows
        return square, new + keep * state.slope if self.gamma == "running" else new

    def is_tuned(self, state: State) -> bool:
        """Return whether the mean square has forgotten how it began."""
        return float(state.count.max()) * (1 - self.smoothing) >= _MEMORIES

    def freeze(self, rng: RandomNumbers, state: State) -> State:
        """Keep the preconditioner from here on, where it is learned in the tuning, and find the step size for it."""
        if state.adaptation.frozen or self.learn_preconditioner != "tuning":
            return state
        living = state.alive if bool(state.alive.any()) else ~state.alive
        size = self._size_for(rng, state.x, state.square[living].mean(0))
        return state._replace(adaptation=Preconditioning(size, True))

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the state of chains that set out anew from x (chains, dim), with what was learned."""
        return state._replace(x=x)
