"""Preconditioned stochastic-gradient Langevin dynamics."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.discrete_draws import MoveDrawCollector
from bnnviz.samplers.sgmcmc.base import SAFE, Info, Move, StochasticGradient
from bnnviz.targets import Target

_MEMORIES = 5  # of the mean square that the tuning lasts
_LEAST = 1e-12  # mean square that a chain begins with


class State(NamedTuple):
    """All chains between two moves.

    Attributes
    ----------
    x : Tensor, shape (chains, dim)
    v : Tensor, shape (chains, dim)
        Mean square of the gradient for one row: not a velocity, but what the move remembers.
    count, alive : Tensor, shape (chains,)
        As of `bnnviz.samplers.discrete.State`.
    slope : Tensor, shape (chains, dim)
        Derivative of v along its own coordinate.
    """

    x: Tensor
    v: Tensor
    count: Tensor
    alive: Tensor
    slope: Tensor


@REGISTRY.add
class PSGLD(StochasticGradient):
    """SGLD with RMSprop's preconditioner G = 1 / (floor + sqrt(V)): x - (eps / 2) (G grad U - T Gamma) + N(0, eps G T).

    V is a running mean of the squared gradient for one row, (grad U / N)^2, and Gamma = dG/dx. By default V is learnt
    in the tuning and then kept: SGLD in other coordinates, right as eps goes to 0. With ``adapt="always"``, as printed,
    V goes on moving with x, and what is sampled depends on ``gamma``. Without it, as the paper recommends, the density
    is that of exp(-U) (floor + sqrt(V(x))) as eps goes to 0: wider than the target where gradients are exact, and less
    so the more the batches' noise hides the gradient in V. The paper's Gamma is the derivative of the newest square
    alone, (1 - smoothing) times what V does when x moves slowly; ``running`` averages it as V is averaged. The second
    derivative that Gamma needs comes from one random sign a move (Hutchinson), and is charged as a gradient.
    Source: Li, Chen, Carlson and Carin 2016, algorithm 1.
    """

    registered = "psgld"
    title = "pSGLD"

    smoothing = settings.Number(
        0.99, bounds=(0.0, 0.9999), step=0.01, live=True, doc="Share of the mean square that each move keeps."
    )
    floor = settings.Number(
        1e-5, bounds=(1e-10, 10.0), scale="log", live=True, doc="Added to the root of the mean square: bounds G."
    )
    adapt = settings.Choice(
        "tuning",
        objects=["tuning", "always"],
        doc="tuning: the mean square is learnt in the tuning and then kept, which is right. always: it goes on, as in"
        " the paper.",
    )
    gamma = settings.Choice(
        "none",
        objects=["none", "paper", "running"],
        when={"adapt": ["always"]},
        doc="Correction for a preconditioner that moves with x. none: left out, as the paper recommends. paper: of the"
        " newest square alone. running: averaged as the mean square is; right as the step size goes to 0.",
    )

    presets = [
        {
            "name": "paper",
            "title": "As in the paper",
            "doc": "The preconditioner goes on moving, without Gamma.",
            "settings": {"adapt": "always", "gamma": "none"},
        },
    ]

    @property
    def _corrects(self) -> bool:
        return self.adapt == "always" and self.gamma != "none"

    @property
    def examples_per_step(self) -> int:
        """Gradients of single rows that a move is charged for; Gamma costs about a second one."""
        return self.source.examples * (2 if self._corrects else 1)

    @property
    def width(self) -> int:
        """Numbers that a state holds of each chain and coordinate."""
        return 3

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target; the preconditioner is learnt from the start on."""
        super().prepare(target, mode)
        self._rows, self.frozen = target.data_rows or 1, False

    def init(self, x0: Tensor, rng: torch.Generator) -> State:
        """Return the chains at their starting points, the mean square as it is where the posterior has its mass.

        At a mode the gradient of all rows is zero, which would make the preconditioner endless. In the posterior the
        mean square of a gradient is the mean curvature.
        """
        curvature = self.target.curvature_diagonal(x0[0]).abs() + (self.target.prior_precision or 0.0)
        square = (curvature / self._rows**2).clamp_min(_LEAST).expand_as(x0).clone()
        self._square = square[0]
        first = super().init(x0, rng)
        return State(x0, square, first.count, first.alive, torch.zeros_like(x0))

    def first_size(self, x: Tensor) -> float:
        """Return a fifth of one over the largest curvature in preconditioned coordinates."""
        return SAFE / self.largest_curvature(x, self._preconditioner(self._square).sqrt())

    def _preconditioner(self, square: Tensor) -> Tensor:
        return 1 / (self.floor + square.sqrt())

    def kernel(self, state: State, pre_drawn: Any) -> tuple[State, Info]:
        """Move every chain once."""
        source, product = self.source.of(pre_drawn), None
        if self._corrects:
            sign = torch.where(self.rng.uniform(state.x.shape, state.x.dtype) < 0.5, -1.0, 1.0).to(state.x.dtype)
            potential, g, product = source.gradient_and_product(state.x, sign)
            product = sign * product
        else:
            potential, g = source.gradient(state.x)
        square, slope = self._remembered(state, g, product)
        size = self.sizes(state.count)
        shape = self._preconditioner(square)
        drift = shape * g
        if self._corrects:
            # dG/dx, with the chain rule through the root; where the square is zero, so is its slope.
            drift = drift + self.temperature * shape.square() * slope / (2 * square.sqrt()).clamp_min(1e-30)
        half = 0.5 * size[:, None].to(g.dtype) * drift
        noise = (size[:, None].to(g.dtype) * shape * self.temperature).sqrt()
        noise = noise * self.rng.normal(g.shape, g.dtype)
        state = state._replace(slope=slope)
        return self.arrived(state, potential, size, Move(state.x - half + noise, square, half, noise))

    def _remembered(self, state: State, g: Tensor, product: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the mean square and its slope after another gradient g, with the diagonal of H if that is known."""
        if self.frozen:
            return state.v, state.slope
        keep, each = self.smoothing, g / self._rows
        square = keep * state.v + (1 - keep) * each.square()
        if product is None:
            return square, state.slope
        new = (1 - keep) * 2 * each * product / self._rows
        return square, new + keep * state.slope if self.gamma == "running" else new

    def settled(self, state: State) -> bool:
        """Return whether the mean square has forgotten how it began."""
        return float(state.count.max()) * (1 - self.smoothing) >= _MEMORIES

    def draw_collector(self, state: State) -> MoveDrawCollector:
        """Keep the preconditioner from here on, where it is learnt in the tuning, and find the step size for it."""
        if not self.frozen and self.adapt == "tuning":
            self.frozen = True
            self._square = state.v[state.alive].mean(0) if bool(state.alive.any()) else state.v.mean(0)
            self.found = self.first_size(state.x)
        return super().draw_collector(state)

    def placed(self, state: State, x: Tensor) -> State:
        """Return the state of chains that set out anew from x (chains, dim), with what was learnt."""
        return state._replace(x=x)

    def rows(self, state: State) -> list[list[str]]:
        """Return the step size, and how far the preconditioner's entries lie apart."""
        shape = self._preconditioner(state.v[state.alive])
        if not shape.numel():
            return []
        return [*super().rows(state), ["Preconditioner", f"{float(shape.min()):.2g} to {float(shape.max()):.2g}", ""]]

    def adopt(self, other: PSGLD) -> None:
        """Take over what was learnt."""
        super().adopt(other)
        self.frozen, self._square = other.frozen and self.adapt == "tuning", other._square

    def save(self, state: State) -> dict[str, Any]:
        """Return what was learnt, too."""
        return super().save(state) | {"frozen": self.frozen, "square": self._square}

    def load(self, saved: dict[str, Any], rng: torch.Generator) -> State:
        """Return the saved state."""
        self.frozen, self._square = saved["frozen"], saved["square"].to(self.target.device)
        return super().load(saved, rng)

    def rebuilt(self, parts: list[Tensor]) -> State:
        """Return the state made of its tensors."""
        return State(*parts)
