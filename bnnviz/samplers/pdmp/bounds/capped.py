"""Cap the rejected proposals of a segment, as the authors' code of the PDMP paper does, which is biased.

After nine rejected proposals the tenth becomes a bounce at any rate. Events then occur where the rate does not justify
them, and the target is not invariant. A cap that refreshes the velocity instead is no better.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers.pdmp.bounds.interpolated import Interpolated, InterpolatedState
from bnnviz.samplers.pdmp.thinning import REJECTED, Bound, Draw, Plan, RatePoint


class CappedState(NamedTuple):
    """The current line, and the number of rejected proposals since the last event."""

    line: InterpolatedState
    rejected: Tensor


class Capped(Bound):
    """The line through two points, with a bounce at the last of at most ``most`` proposals of a segment."""

    def __init__(self, inner: Interpolated, most: int) -> None:
        self.inner, self.most, self.reject_above = inner, most, inner.reject_above

    def start(self, at: RatePoint, previous: CappedState | None, horizon: Tensor) -> CappedState:
        """Start at t = 0 without proposals."""
        line = self.inner.start(at, None if previous is None else previous.line, horizon)
        return CappedState(line, torch.zeros_like(at.rate))

    def learn(self, state: CappedState, at: RatePoint, kind: Tensor) -> CappedState:
        """Update the line and count rejections."""
        return CappedState(self.inner.learn(state.line, at, kind), state.rejected + (kind == REJECTED))

    def plan(self, state: CappedState, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[CappedState, Plan]:
        """Propose from the line."""
        line, plan = self.inner.plan(state.line, s, draw, horizon)
        return state._replace(line=line), plan

    def forced(self, state: CappedState) -> Tensor:
        """Return which chains bounce at their next proposal at any rate."""
        return state.rejected >= self.most - 1
