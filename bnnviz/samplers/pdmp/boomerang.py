"""The Boomerang sampler."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.pdmp.base import PDMP, PlanarFlow, State, refuse_without_prior
from bnnviz.samplers.pdmp.exact_bound import Lines
from bnnviz.samplers.random import RandomNumbers
from bnnviz.targets import Target

_ROUNDS = 3  # in which a reference is learnt
_LEAST_SHARE = 1e-8  # of the largest variance of a reference that is learnt
_ROUNDING = 1e-5  # of the exact bound: in single precision a rate may lie a hair above it


@REGISTRY.add
class Boomerang(PDMP):
    """Boomerang sampler: ellipses around a Gaussian reference N(w*, S), bounced at rate max(0, v . grad E).

    ``reference="exact"`` takes E(w) = U(w) - (w - w*)' S^-1 (w - w*) / 2, so that the reference
    cancels and the target is exp(-U). ``reference="prior"`` is the paper's reading and its code's:
    E is the negative log likelihood alone, so that the reference stands in for the prior and the
    target is likelihood x N(w*, S). w* is a mode. S^-1 is the Gauss-Newton diagonal of the negative
    log likelihood there (for a density, its Hessian's diagonal) plus the prior's precision with
    "exact"; with "prior" it is at least the prior's precision, or S explodes on weights that the
    data say nothing of. Source: Bierkens et al. 2020; for networks, the PDMP paper.
    """

    registered = "boomerang"
    title = "Boomerang"
    needs_mode = True
    curved = True
    # On a quadratic E the rate is a wave of period pi: a cell must not jump over its crest.
    widest_cell = 0.5
    late_events = "the posterior is drawn towards the reference N(w*, S)"

    reference = settings.Choice(
        "exact",
        objects=["exact", "prior"],
        doc="exact: the target is the posterior. prior: the reference stands in for the prior, as in the paper.",
    )
    curvature = settings.Choice(
        "fisher",
        objects=["fisher", "hessian", "paper"],
        doc="What S^-1 is made of at the mode. fisher: the Gauss-Newton diagonal of a network (for a density, its"
        " Hessian's diagonal), never negative. hessian: the true diagonal, exact for small targets, by Hutchinson's"
        " estimate for large ones. paper: the Hessian's row sums, as the reference code has them.",
    )
    gamma = settings.Number(
        1.0,
        bounds=(1e-3, 1000.0),
        scale="log",
        doc="Factor on the reference's covariance S (the paper: 500 on the toys, 0.001 on CIFAR-10).",
    )

    learn_reference = settings.Boolean(
        False,
        label="Learn the reference",
        doc="Learn centre and spread of the reference from the path, in a warm-up of three rounds, each with twice the"
        " events of the one before. It begins with the reference of the mode; gamma counts there alone.",
    )
    adapt_events = settings.Integer(
        1000,
        bounds=(100, 1_000_000),
        when={"learn_reference": [True]},
        doc="Events of the first round, over all chains.",
    )

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Fix w* at the mode and S by the curvature there."""
        self.rounds_left = _ROUNDS if self.learn_reference else 0
        if self.reference == "prior":
            refuse_without_prior(target)
        super().prepare(target, mode)

    def set_mode(self, mode: Tensor | None) -> None:
        """Fix w* there and S by the curvature there; a spread that was learnt is kept."""
        super().set_mode(mode)
        if mode is None:
            return
        self.centre = mode
        if not self.learn_reference or self.rounds_left:
            self.precision, self.floored = self._reference_precision(mode)

    def _reference_precision(self, mode: Tensor) -> tuple[Tensor, int]:
        prior = self.target.prior_precision or 0.0
        diagonal = self._diagonal(mode)
        if not torch.isfinite(diagonal).all():
            raise BnnvizError("The curvature at the mode is not finite; try another start or precision.", "start")
        precision = diagonal + prior if self.reference == "exact" else diagonal
        floor = prior if prior else 1e-3 * float(diagonal.abs().max().clamp_min(1e-6))
        floored = int((precision < floor).sum())
        return precision.clamp_min(floor) / self.gamma, floored

    def _diagonal(self, mode: Tensor) -> Tensor:
        if self.curvature == "hessian":
            return self.target.hessian_diagonal(mode)
        return self.target.hessian_row_sums(mode) if self.curvature == "paper" else self.target.curvature_diagonal(mode)

    @property
    def learning(self) -> bool:
        """Whether the reference is still learnt."""
        return self.rounds_left > 0

    def end_window(self, rng: RandomNumbers, state: State, last: bool) -> State:
        """Learn the reference in rounds first, then the pace of events with the last one."""
        if not self.learning or self._sums is None:
            return super().end_window(rng, state, last)
        events = self.adapt_events * 2 ** (_ROUNDS - self.rounds_left)
        if last or (self.settled(state) and self._sums.ready(events)):
            return self._learnt(rng, state, last)
        self._sums.forget_half(events)
        return state

    def _learnt(self, rng: RandomNumbers, state: State, last: bool) -> State:
        """Take mean and spread of the path so far for the reference; return the state to go on from."""
        mean, variance = self._sums.moments()
        self.rounds_left, self._sums = 0 if last else self.rounds_left - 1, None
        floor = (self.target.prior_precision or 0.0) if self.reference == "exact" else 0.0
        # A coordinate that has hardly moved yet must not be held for ever.
        least = variance.max().clamp_min(1e-12) * _LEAST_SHARE
        precision = (1 / variance.clamp_min(float(least))).to(self.precision.dtype)
        x, v = self.flow(state.x, state.v, state.s)
        self.centre, self.precision = mean.to(self.centre.dtype), precision.clamp_min(floor)
        state = self.resume(
            rng, state._replace(x=x, v=v, clock=state.clock + state.s, s=torch.zeros_like(state.s)), True
        )
        pace = self._guessed_pace(state.x, state.v)
        return self.resume(rng, state._replace(pace=pace, gaps=torch.zeros_like(state.gaps)))

    def remarks(self) -> list[str]:
        """Say how much of the reference could not be used as it was found."""
        if not self.floored:
            return []
        return [
            f"{self.floored} of {len(self.precision)} entries of the reference's precision were too small or negative,"
            " and were raised to their floor."
        ]

    def adopt(self, other: Boomerang) -> None:
        """Keep the reference that was found at the start."""
        super().adopt(other)
        self.centre, self.precision, self.floored = other.centre, other.precision, other.floored
        self.rounds_left = other.rounds_left

    def save(self, state: State) -> dict[str, Any]:
        """Return the state and the reference."""
        reference = {"centre": self.centre, "precision": self.precision, "floored": self.floored}
        return super().save(state) | {"reference": reference, "rounds_left": self.rounds_left}

    def load(self, saved: dict[str, Any], rng: RandomNumbers) -> State:
        """Take the reference over and return the saved state."""
        reference = saved["reference"]
        self.centre = reference["centre"].to(self.target.device)
        self.precision = reference["precision"].to(self.target.device)
        self.floored, self.rounds_left = reference["floored"], saved["rounds_left"]
        return super().load(saved, rng)

    def rows(self, state: State) -> list[list[str]]:
        """Return how far from w* the chains are, where 1 is the distance of a draw of the reference."""
        square = (self.precision * (state.x - self.centre).square())[state.alive]
        return [["Distance from w* / reference's", f"{float(square.mean().sqrt()):.2f}", ""]]

    def speed(self, x: Tensor, v: Tensor) -> Tensor:
        """Return the root of |x - w*|^2 + |v|^2, which bounds |v| along the ellipse and does not change on it."""
        return (torch.linalg.vector_norm(v, dim=-1).square() + (x - self.centre).square().sum(-1)).sqrt()

    def flow(self, x: Tensor, v: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """Move along the ellipse around w*."""
        return _ellipse(x, v, t, self.centre)

    def integrals(self, x: Tensor, v: Tensor, s0: Tensor, s1: Tensor) -> tuple[Tensor, Tensor]:
        """Return the integrals of the position and of its square along the ellipse."""
        centre = self.centre.double()
        d, v, span = x.double() - centre, v.double(), (s1 - s0)[:, None]
        middle, half = (s0 + s1)[:, None] / 2, span / 2
        # Sums and differences at the ends, written as products: for short spans these lose no digits.
        sin, cos = 2 * torch.cos(middle) * torch.sin(half), 2 * torch.sin(middle) * torch.sin(half)
        wave = torch.cos(2 * middle) * torch.sin(span) / 2
        first = d * sin + v * cos
        second = d * d * (span / 2 + wave) + v * v * (span / 2 - wave)
        second = second + d * v * torch.sin(2 * middle) * torch.sin(span)
        return centre * span + first, centre * centre * span + 2 * centre * first + second

    def planar_flow(self, project: Callable[[Tensor], np.ndarray]) -> PlanarFlow:
        """Return the flow in a plane: an ellipse around the projected w*."""
        centre = project(self.centre[None])

        def flow(x: np.ndarray, v: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            cos, sin, d = np.cos(t), np.sin(t), x - centre
            return centre + d * cos + v * sin, v * cos - d * sin

        return flow

    def tempered_target(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U and its gradient, with the reference in the place of the prior where that is wanted."""
        potential, g = super().tempered_target(x)
        if self.reference == "exact":
            return potential, g
        d, prior = x - self.centre, self.target.prior_precision
        pull = self.precision * d
        return potential + ((d * pull).sum(-1) - prior * x.square().sum(-1)) / 2, g + pull - prior * x

    def _energy_gradient(self, x: Tensor, g: Tensor) -> Tensor:
        if self.reference == "exact":
            return g - self.precision * (x - self.centre)
        return g - self.target.prior_precision * x

    def rate(self, x: Tensor, v: Tensor, g: Tensor) -> Tensor:
        """Return v . grad E."""
        return (v * self._energy_gradient(x, g)).sum(-1)

    def rate_slope(self, x: Tensor, v: Tensor, g: Tensor, curvature: Tensor) -> Tensor:
        """Return v' Hess E v - (x - w*) . grad E, since the acceleration is -(x - w*)."""
        taken = self.precision if self.reference == "exact" else self.target.prior_precision
        pull = ((x - self.centre) * self._energy_gradient(x, g)).sum(-1)
        return curvature - (taken * v * v).sum(-1) - pull

    def reflect(self, rng: RandomNumbers, x: Tensor, v: Tensor, g: Tensor) -> Tensor:
        """Return v - 2 (g . v) / (g' S g) S g with g = grad E, which keeps v' S^-1 v."""
        g = self._energy_gradient(x, g)
        scaled = g / self.precision
        along = (g * v).sum(-1, keepdim=True) / (g * scaled).sum(-1, keepdim=True).clamp_min(1e-30)
        return v - 2 * along * scaled

    def mean_rate(self, x: Tensor, g: Tensor) -> Tensor:
        """Return sqrt(g' S g) / sqrt(2 pi) with g = grad E."""
        g = self._energy_gradient(x, g)
        return (g * g / self.precision).sum(-1).sqrt() / math.sqrt(2 * math.pi)

    def exact_lines(self, centre: Tensor, precision: Tensor) -> tuple[Lines, bool]:
        """Return the constant r^2 |S^(1/2) M S^(1/2)| / 2 + r |S^(1/2) grad E(w*)|, M = P - S^-1, above the rate.

        r^2 = (x - w*)' S^-1 (x - w*) + v' S^-1 v changes at refreshments alone.
        """
        known: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}

        def constants() -> tuple[Tensor, Tensor]:
            # The reference is fixed after the bound is made, and may be fixed anew.
            key = id(self.centre), id(self.precision)
            if key not in known:
                root = self.precision.double().rsqrt()
                m = precision.double() - torch.diag(self.precision.double())
                push = root * (precision.double() @ (self.centre - centre).double())
                known.clear()
                known[key] = torch.linalg.matrix_norm(root[:, None] * m * root, 2), push.norm()
            return known[key]

        def lines(x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            curved, push = constants()
            d = x - self.centre
            r2 = (self.precision * (d * d + v * v)).sum(-1, keepdim=True).double()
            height = (1 + _ROUNDING) * (r2 * curved / 2 + r2.sqrt() * push)
            return height, torch.zeros_like(height)

        return lines, False

    def draw_velocity(self, rng: RandomNumbers, like: Tensor) -> Tensor:
        """Draw from N(0, S)."""
        return rng.normal(like.shape, like.dtype) * self.precision.rsqrt()


def _ellipse(x: Tensor, v: Tensor, t: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
    cos, sin = torch.cos(t)[:, None].to(x.dtype), torch.sin(t)[:, None].to(x.dtype)
    d = x - centre
    return centre + d * cos + v * sin, v * cos - d * sin
