r"""Find exact event times if the gradient of U is linear: a Gaussian target.

The rate equals, or is bounded by, a sum of clipped lines,

$$\lambda(t) \le \sum_k \max(0, a_k t + b_k),$$

and the first event of a sum of rates is the earliest event of its terms, each with an independent exponential draw
(superposition). The Zig-Zag's events are therefore drawn coordinate by coordinate, and a BPS's by inversion
(Bouchard-Cote, Vollmer and Doucet 2018, section 2.3, doi:10.1080/01621459.2017.1294075).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers.pdmp.thinning import HORIZON, PROPOSAL, Bound, Draw, Piece, Plan, RatePoint, first_arrival

#: Height b and slope a of the terms, each of shape (chains, terms), from position, velocity and scaling.
Terms = Callable[[Tensor, Tensor, Any], tuple[Tensor, Tensor]]


class ExactState(NamedTuple):
    """Height and slope of every term of the rate, counted from the last event."""

    height: Tensor
    slope: Tensor


class Exact(Bound):
    """Event times from ``terms`` of position, velocity and scaling, which equal the rate (``certain``) or bound it."""

    def __init__(self, terms: Terms, certain: bool) -> None:
        self.terms, self.certain = terms, certain

    def start(self, at: RatePoint, previous: ExactState | None, horizon: Tensor) -> ExactState:
        """Start at t = 0 at (x, v)."""
        return ExactState(*(part.double() for part in self.terms(at.x, at.v, at.scaling)))

    def learn(self, state: ExactState, at: RatePoint, kind: Tensor) -> ExactState:
        """Return the state unchanged."""
        return state

    def plan(self, state: ExactState, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[ExactState, Plan]:
        """Propose the earliest event of all terms, or continue to the horizon if that comes first."""
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
        """Return the chord of the sum of the terms, which is convex and thus below it."""
        if state.height.shape[1] == 1:
            return Piece(state.slope[:, 0], state.height[:, 0], end)
        first, last = ((state.slope * t[:, None] + state.height).clamp_min(0).sum(-1) for t in (s, end))
        slope = (last - first) / (end - s).clamp_min(1e-12)
        return Piece(slope, first - slope * s, end)
