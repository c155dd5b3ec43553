"""Stochastic-gradient functional Riemannian Langevin dynamics."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.discrete import length
from bnnviz.samplers.functional.base import Functional, FunctionalDrawCollector, MeanField
from bnnviz.samplers.sgmcmc.base import Info, StochasticGradient
from bnnviz.targets import Target

_LOOKS = 20  # gradients that the mean square begins with
_MEMORIES = 2  # of the mean square that the tuning lasts
_SAFE = 0.1  # step size, in units of one over the curvature
_LEAST_CURVATURE = 2.0  # that of the energy along log sd, at its best
_FLOOR = 1e-8


class State(NamedTuple):
    """All chains between two moves.

    Attributes
    ----------
    x : Tensor, shape (chains, dim)
        The functionals' means.
    v, square : Tensor, shape (chains, 2, dim)
        Running mean of the gradient, and of its square, free of what they began with (as Adam's).
    count, alive : Tensor, shape (chains,)
        As of `bnnviz.samplers.discrete.State`.
    c : Tensor, shape (chains, 2, dim)
        The coefficients (mu, rho), sd = softplus(rho).
    """

    x: Tensor
    v: Tensor
    count: Tensor
    alive: Tensor
    c: Tensor
    square: Tensor


@REGISTRY.add
class SGFuncRLD(Functional, StochasticGradient):
    """Langevin dynamics of mean-field Gaussians over the weights: c = (mu, rho), sd = softplus(rho).

    The energy is the mean of U less the entropy, that is E[nll] + KL(functional, prior); its gradient is that of one
    draw theta = mu + sd z, and of a batch. The density sampled is exp(-energy) with respect to d mu d rho.
    ``variant="corrected"``: c - eps P g + N(0, 2 eps P T) with P = G^(-1/2), G the running mean of g^2, kept after the
    tuning. ``variant="paper"``, Algorithm 1 as printed: c - eps G^(-1/2) m + N(0, 2 eps T / G), with a running mean m
    of the gradient and a G that moves on: noise and drift do not belong together, and where gradients are large it is
    far too cold, with rare wild moves where one was small. Draws are made of the mixture of functionals, which is wider
    than the target (twice its variance on a round Gaussian); the paper's eq. 5 lacks the 1/M.
    Source: the functional-BNN paper, Algorithm 1.
    """

    registered = "sgfuncrld"
    title = "SGFuncRLD"

    variant = settings.Choice(
        "corrected",
        objects=["corrected", "paper"],
        doc="corrected: noise that belongs to the drift, and a preconditioner that is kept after the tuning. paper: as"
        " printed, mostly far too cold.",
    )
    averaging = settings.Number(
        0.9,
        bounds=(0.0, 0.9999),
        step=0.01,
        when={"variant": ["paper"]},
        doc="Share of the mean gradient that each move keeps: beta 1.",
    )
    smoothing = settings.Number(
        0.999, bounds=(0.0, 0.9999), step=0.001, doc="Share of the mean square that each move keeps: beta 2."
    )

    presets = [
        {
            "name": "paper",
            "title": "Algorithm 1 as printed",
            "doc": "Its noise is far too small for its drift.",
            "settings": {"variant": "paper"},
        },
    ]

    @property
    def width(self) -> int:
        """Numbers that a state holds of each chain and coordinate."""
        return 7

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target; the preconditioner is learnt from the start on."""
        self.reading, self.frozen = MeanField("softplus"), False
        super().prepare(target, mode)

    def init(self, x0: Tensor, rng: torch.Generator) -> State:
        """Return the chains with their first functionals, the mean square as a few gradients have it."""
        self._square = torch.ones(2, self.target.dim, dtype=x0.dtype, device=x0.device)
        first = super().init(x0, rng)
        c = self.begun(x0)
        draws = [self._gradient(c, self.pre_draw(first))[1].square() for _ in range(_LOOKS)]
        square = torch.stack(draws).mean(0)
        self._learn_size(self.reading.centre(c), square)
        return State(self.reading.centre(c), torch.zeros_like(c), first.count, first.alive, c, square)

    def _learn_size(self, x: Tensor, square: Tensor) -> None:
        self._square = square.mean(0)
        self.found = self.first_size(x)

    def first_size(self, x: Tensor) -> float:
        """Return a tenth of one over the largest curvature in preconditioned coordinates, at means x (n, dim)."""
        shape = self._preconditioner(self._square)
        along_sd = _LEAST_CURVATURE * float(shape[1].max())
        return _SAFE / max(self.largest_curvature(x, shape[0].sqrt()), along_sd)

    def _preconditioner(self, square: Tensor) -> Tensor:
        return 1 / (_FLOOR + square.sqrt())

    def _gradient(self, c: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
        """Return U at a draw of each functional (chains,), and its energy's gradient (chains, 2, dim)."""
        z = self.rng.normal((len(c), 1, c.shape[2]), c.dtype)
        potential, g = self.source.of(batch).gradient(self.reading.at(c, z)[:, 0])
        along = self.reading.sd_slope(c) * (g[:, None] * z - self.temperature / self.reading.sd(c))
        return potential, torch.cat([g[:, None], along], 1)

    def kernel(self, state: State, pre_drawn: Any) -> tuple[State, Info]:
        """Move every chain's functional once."""
        potential, g = self._gradient(state.c, pre_drawn)
        mean, square = self._remembered(state, g)
        size = self.sizes(state.count)
        h, shape = size[:, None, None].to(g.dtype), self._preconditioner(square)
        if self.variant == "paper":
            drift, scale = h * shape * mean, shape
        else:
            drift, scale = h * shape * g, shape.sqrt()
        noise = (2 * h * self.temperature).sqrt() * scale * self.rng.normal(g.shape, g.dtype)
        c = state.c - drift + noise
        finite = torch.isfinite(potential) & torch.isfinite(c).all((1, 2))
        after, failed = self.moved(state, finite, x=self.reading.centre(c), v=mean, c=c, square=square)
        return after, Info(potential, size, length(drift.flatten(1)), length(noise.flatten(1)), failed)

    def _remembered(self, state: State, g: Tensor) -> tuple[Tensor, Tensor]:
        """Return the running means after another gradient; weights that shrink free them of their beginning."""
        moves = (state.count + 1)[:, None, None]
        mean = state.v + (_weight(self.averaging, moves) * (g - state.v)).to(g.dtype)
        if self.frozen:
            return mean, state.square
        if self.variant == "corrected":
            moves = moves + _LOOKS
        return mean, state.square + (_weight(self.smoothing, moves) * (g.square() - state.square)).to(g.dtype)

    def settled(self, state: State) -> bool:
        """Return whether the mean square has forgotten how it began."""
        return self.variant == "paper" or float(state.count.max()) * (1 - self.smoothing) >= _MEMORIES

    def draw_collector(self, state: State) -> FunctionalDrawCollector:
        """Keep the preconditioner from here on, but in the paper's variant, and find the step size for it."""
        if not self.frozen and self.variant == "corrected":
            self.frozen = True
            living = state.alive if bool(state.alive.any()) else ~state.alive
            self._learn_size(state.x[living], state.square[living])
        return super().draw_collector(state)

    def placed(self, state: State, x: Tensor) -> State:
        """Return the state of chains that set out anew from x (chains, dim), with what was learnt."""
        c = self.begun(x)
        return state._replace(x=self.reading.centre(c), c=c)

    def adopt(self, other: SGFuncRLD) -> None:
        """Take over what was learnt."""
        super().adopt(other)
        self.frozen, self._square = other.frozen, other._square

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


def _weight(keep: float, moves: Tensor) -> Tensor:
    """Return what a new value counts for in a running mean of so many values, of which each keeps a share."""
    return (1 - keep) / (1 - keep**moves)
