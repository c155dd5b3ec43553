r"""Bound the rate as the papers do: by a line through its last two evaluated points (Algorithm 2).

From the signed rates $f_0, f_1$ at $t_0, t_1$ it is

$$h(t) = \max(0, a t + b), \quad a = \alpha \frac{f_1 - f_0}{t_1 - t_0}, \quad b = \alpha f_1 - a t_1$$

(equation 12). It is not a strict bound: a rate above the line is a violation, which delays events.

The authors' code also accepts the tenth proposal of a segment at any rate. Events then occur where the rate does not
justify them, and the target is not invariant. A cap that refreshes the velocity instead is no better.

Source: Goan, Perrin, Mengersen and Fookes 2023, Algorithm 2, doi:10.48550/arXiv.2302.08724.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers.pdmp.thinning import (
    HORIZON,
    PROBE,
    PROPOSAL,
    REJECTED,
    Bound,
    Draw,
    Piece,
    Plan,
    RatePoint,
    first_arrival,
)


class InterpolatedState(NamedTuple):
    """The line in use and the last evaluated point."""

    slope: Tensor
    height: Tensor
    last_t: Tensor
    last_rate: Tensor
    probing: Tensor
    rejected: Tensor | None  # Rejected proposals since the last event; None without a cap


class Interpolated(Bound):
    """The line through the last two evaluated points of the signed rate, clipped at zero."""

    def __init__(self, alpha: float, t_init: float, reject_above: float, clip: bool, most: int | None = None) -> None:
        self.alpha, self.t_init, self.reject_above, self.clip, self.most = alpha, t_init, reject_above, clip, most

    def start(self, at: RatePoint, previous: Any, horizon: Tensor) -> InterpolatedState:
        """Begin at t = 0; the first line needs the point at t_init."""
        zero = torch.zeros_like(at.rate)
        rejected = None if self.most is None else zero
        return InterpolatedState(zero, zero, zero, at.rate, torch.ones_like(zero, dtype=torch.bool), rejected)

    def learn(self, state: InterpolatedState, at: RatePoint, kind: Tensor) -> InterpolatedState:
        """Update the line with the new point."""
        old, new = (rate.clamp_min(0) if self.clip else rate for rate in (state.last_rate, at.rate))
        slope = self.alpha * (new - old) / (at.t - state.last_t).clamp_min(1e-12)
        # Algorithm 2 discards the point at t_init: the second line runs through t = 0 again.
        probe = kind == PROBE
        return InterpolatedState(
            slope,
            self.alpha * new - slope * at.t,
            torch.where(probe, state.last_t, at.t),
            torch.where(probe, state.last_rate, at.rate),
            torch.zeros_like(state.probing),
            None if self.most is None else state.rejected + (kind == REJECTED),
        )

    def forced(self, state: InterpolatedState) -> Tensor | None:
        """Return which chains bounce at their next proposal at any rate."""
        return None if self.most is None else state.rejected >= self.most - 1

    def plan(self, state: InterpolatedState, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[InterpolatedState, Plan]:
        """Propose from the line, or evaluate at the horizon if that comes first."""
        piece = Piece(state.slope, state.height, s + horizon)
        t = first_arrival(s, state.slope, state.height, draw(s))
        beyond = t > piece.end
        kind = torch.where(beyond, HORIZON, PROPOSAL)
        t = torch.where(beyond, piece.end, t)
        t = torch.where(state.probing, torch.clamp(horizon, max=self.t_init), t)
        kind = torch.where(state.probing, PROBE, kind)
        return state, Plan(t, kind, s, piece.hidden(state.probing), piece)
