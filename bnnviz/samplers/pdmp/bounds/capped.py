"""Cap how many proposals of a segment are rejected, as the authors' code of the PDMP paper does: a bias, to be seen.

After nine rejected proposals the tenth becomes a bounce, whatever its rate is. So events come where the rate would not
have them, and the law of positions is not kept. A cap that refreshes the velocity instead is no better.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers.pdmp.bounds.interpolated import Interpolated, InterpolatedState
from bnnviz.samplers.pdmp.thinning import REJECTED, Bound, Draw, Plan, RatePoint


class CappedState(NamedTuple):
    """The line in use, and how many proposals were rejected since the last event."""

    line: InterpolatedState
    rejected: Tensor


class Capped(Bound):
    """The line through two points, with a bounce at the last of so many proposals.

    Parameters
    ----------
    inner : Interpolated
    most : int
        Proposals of a segment.
    """

    def __init__(self, inner: Interpolated, most: int) -> None:
        self.inner, self.most, self.reject_above = inner, most, inner.reject_above

    def start(self, at: RatePoint, previous: CappedState | None, horizon: Tensor) -> CappedState:
        """Begin at t = 0, with no proposal yet."""
        line = self.inner.start(at, None if previous is None else previous.line, horizon)
        return CappedState(line, torch.zeros_like(at.rate))

    def learn(self, state: CappedState, at: RatePoint, kind: Tensor) -> CappedState:
        """Draw the next line, and count what was rejected."""
        return CappedState(self.inner.learn(state.line, at, kind), state.rejected + (kind == REJECTED))

    def plan(self, state: CappedState, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[CappedState, Plan]:
        """Propose from the line."""
        line, plan = self.inner.plan(state.line, s, draw, horizon)
        return state._replace(line=line), plan

    def forced(self, state: CappedState) -> Tensor:
        """Return which chains bounce at their next proposal, whatever the rate is."""
        return state.rejected >= self.most - 1
