"""Event times without an approximation, where the gradient of U is linear: a Gaussian target."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers.pdmp.thinning import HORIZON, PROPOSAL, Draw, Piece, Plan, first_arrival

#: Height and slope, each of shape (chains, terms): the rate along a path is bounded by the sum of
#: max(0, slope t + height) over the terms.
Lines = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class ExactState(NamedTuple):
    """Height and slope of every term of the rate, counted from the last event."""

    height: Tensor
    slope: Tensor


class Exact:
    """Event times from lines that are the rate itself, or from a constant that it cannot exceed.

    The first event of a sum of rates is the earliest of the events of its terms, each with an
    exponential of its own (superposition): so the Zig-Zag's is drawn coordinate by coordinate.

    Parameters
    ----------
    lines : callable
        Gives the terms from position and velocity (chains, dim).
    certain : bool
        The terms' sum is the rate, and what is proposed is an event. If not, it is thinned.
    """

    needs_curvature = False
    redraws = False
    certain: bool
    retreats = False
    reject_above = float("inf")

    def __init__(self, lines: Lines, certain: bool) -> None:
        self.lines, self.certain = lines, certain

    def start(
        self,
        x: Tensor,
        v: Tensor,
        f: Tensor,
        curvature: Tensor,
        known: Tensor,
        previous: ExactState | None,
        horizon: Tensor,
    ) -> ExactState:
        """Begin at t = 0 at (x, v)."""
        return ExactState(*(part.double() for part in self.lines(x, v)))

    def learn(
        self, state: ExactState, kind: Tensor, t: Tensor, f: Tensor, curvature: Tensor, violated: Tensor
    ) -> ExactState:
        """Learn nothing: all is known."""
        return state

    def plan(self, state: ExactState, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[ExactState, Plan]:
        """Propose the earliest event of all terms, or go on to the horizon if that comes first."""
        from_here = s[:, None].expand_as(state.height)
        t = first_arrival(from_here, state.slope, state.height, draw(state.height)).amin(-1)
        end = s + horizon
        beyond = t > end
        t = torch.where(beyond, end, t)
        kind = torch.where(beyond, HORIZON, PROPOSAL)
        piece = self._chord(state, s, t)
        return state, Plan(t, kind, s, piece, piece)

    @staticmethod
    def _chord(state: ExactState, s: Tensor, end: Tensor) -> Piece:
        """Return a line that meets the sum of the terms at both ends, and that it, being convex, stays under."""
        if state.height.shape[1] == 1:
            return Piece(state.slope[:, 0], state.height[:, 0], end)
        first, last = ((state.slope * t[:, None] + state.height).clamp_min(0).sum(-1) for t in (s, end))
        slope = (last - first) / (end - s).clamp_min(1e-12)
        return Piece(slope, first - slope * s, end)
