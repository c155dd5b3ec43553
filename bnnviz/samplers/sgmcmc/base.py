"""Samplers that move by the gradient of a batch and by noise, without an accept step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.discrete import Discrete, State, length
from bnnviz.samplers.minibatch import FullData, MiniBatch, refuse_without_rows
from bnnviz.targets import Target

SAFE = 0.2  # step size, in units of one over the curvature
_BATCHES = {"batch_size": {"least": 1}}


class Info(NamedTuple):
    """What one move did, for every chain, shape (chains,).

    Attributes
    ----------
    potential : Tensor
        U before the move, as the batch has it.
    size : Tensor
        Step size.
    drift, noise : Tensor
        How far the gradient, and how far chance, moved the chain.
    failed : Tensor, bool
        The chain met a value that is not finite.
    """

    potential: Tensor
    size: Tensor
    drift: Tensor
    noise: Tensor
    failed: Tensor


class Move(NamedTuple):
    """Where a move leads: position and velocity (chains, dim), and the parts of gradient and chance in it."""

    x: Tensor
    v: Tensor
    drift: Tensor
    noise: Tensor


class StochasticGradient(Discrete):
    """Base of the stochastic-gradient samplers: batches, the size of a step and its schedule."""

    exact = False
    told = ("drift", "noise")

    step_size = settings.Number(
        None,
        bounds=(1e-9, 100.0),
        scale="log",
        allow_None=True,
        live=True,
        empty="found",
        doc="Step size; empty: a fifth of one over the largest curvature of U at the start.",
    )
    decay = settings.Number(
        0.0,
        bounds=(0.0, 1.0),
        step=0.05,
        live=True,
        doc="Exponent of the decay: the step size of move t is (1 + t / decay_after)^-decay of the first; 0: constant.",
    )
    decay_after = settings.Number(
        1000.0, bounds=(1.0, 1e7), scale="log", unit="moves", live=True, doc="Moves after which the decay sets in."
    )
    batch_size = settings.Integer(
        None,
        bounds=(1, 1_000_000),
        scale="log",
        live=True,
        allow_None=True,
        label="Mini-batch",
        unit="rows",
        empty="all rows",
        doc="Data rows that a gradient reads, drawn afresh for each move, weighted to stand for all of them; empty: all"
        " rows.",
    )
    control_variates = settings.Boolean(
        False,
        when=_BATCHES,
        doc="Take from each batch what it says at the mode, and add what all rows say there; a gradient costs two.",
    )

    @property
    def needs_mode(self) -> bool:
        """Whether a mode has to be found before the chains set out."""
        return self.control_variates

    def recursion(self, size: float, precision: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Return A (k, k) and B (k, k) of a move on a Gaussian of one coordinate, at temperature 1 and all rows.

        The chain is then a linear recursion: what is remembered, the position first, goes to A times itself plus noise
        of covariance B, which says what law is stationary and up to which size there is one. None where it is not.
        """
        return None

    def move(self, x: Tensor, v: Tensor, g: Tensor, size: Tensor) -> Move:
        """Return where the chains at (x, v) with gradient g (chains, dim) move by steps of a size (chains, 1)."""
        raise NotImplementedError

    def check(self, target: Target) -> None:
        """Raise where batches do not fit the target."""
        refuse_without_rows(target, self.batch_size)

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target and its batches."""
        super().prepare(target, mode)
        self.recentre(mode)

    def recentre(self, mode: Tensor | None) -> None:
        """Take control variates, where they are wanted, at a point (dim,)."""
        self._anchor = mode if self.control_variates else None
        self.source = FullData(self.target)
        if self.batch_size is not None:
            self.source = MiniBatch(self.target, self.batch_size, False, self._anchor)

    @property
    def examples_per_step(self) -> int:
        """Gradients of single rows that a move is charged for."""
        return self.source.examples

    def first_size(self, x: Tensor) -> float:
        """Return a fifth of one over the largest curvature: along it SGLD's variance comes out 5 % too large."""
        return SAFE / self.largest_curvature(x)

    def first(self) -> float:
        """Return the step size of the first move."""
        return self.found if self.step_size is None else self.step_size

    def sizes(self, count: Tensor) -> Tensor:
        """Return the step sizes (chains,) of chains after so many moves."""
        if self.decay == 0:
            return torch.full_like(count, self.first())
        return self.first() * (1 + count / self.decay_after) ** -self.decay

    def pre_draw(self, state: State) -> Any:
        """Draw the batch."""
        return self.source.draw((), len(state.x), self.rng)

    def kernel(self, state: State, pre_drawn: Any) -> tuple[State, Info]:
        """Move every chain once."""
        potential, g = self.source.of(pre_drawn).gradient(state.x)
        size = self.sizes(state.count)
        move = self.move(state.x, state.v, g, size[:, None].to(g.dtype))
        return self.arrived(state, potential, size, move)

    def arrived(self, state: Any, potential: Tensor, size: Tensor, move: Move) -> tuple[Any, Info]:
        """Return the state after a move, and what happened."""
        finite = torch.isfinite(potential) & torch.isfinite(move.x).all(-1)
        after, failed = self.moved(state, finite, x=move.x, v=move.v)
        return after, Info(potential, size, length(move.drift), length(move.noise), failed)

    def caption(self, info: Info, chain: int) -> str:
        """Say how far gradient and chance moved a chain."""
        potential, drift, noise = (float(part[chain]) for part in (info.potential, info.drift, info.noise))
        return f"U was {potential:.4g}; the gradient moves the chain by {drift:.3g}, chance by {noise:.3g}."

    def told_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return how far gradient and chance move a chain."""
        return [["A move: by gradient, by chance", f"{means['drift']:.3g}, {means['noise']:.3g}", ""]]

    def told_words(self, means: dict[str, float]) -> str:
        """Return how far gradient and chance move a chain."""
        return f"on average {means['drift']:.3g} by the gradient and {means['noise']:.3g} by chance"

    def adopt(self, other: StochasticGradient) -> None:
        """Take over the point of the control variates too."""
        super().adopt(other)
        self.recentre(other._anchor)

    def save(self, state: State) -> dict[str, Any]:
        """Return the point of the control variates too."""
        return super().save(state) | {"anchor": self._anchor}

    def load(self, saved: dict[str, Any], rng: torch.Generator) -> State:
        """Return the saved state."""
        if saved["anchor"] is not None:
            self.recentre(saved["anchor"].to(self.target.device))
        return super().load(saved, rng)

    def rows(self, state: State) -> list[list[str]]:
        """Return the step size."""
        sizes = self.sizes(state.count)[state.alive]
        return [["Step size", f"{float(sizes.mean()):.3g}", ""]] if len(sizes) else []
