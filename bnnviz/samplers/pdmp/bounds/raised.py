r"""Bound rates by a grid plus a reach, learned from the amounts by which proposals exceed the grid's line.

A rate may jump up and down between the ends of a cell if the gradient does, as for networks with ReLU; and with batches
every evaluation uses other rows. The grid's line g is therefore raised by a *reach* r per unit of speed,

$$h(t) = \max(0, g(t) + r\, |v|),$$

which is learned so that at most a thousandth of the proposals exceeds it; it is 0 while no proposal does. With batches
the event uses the rate of the proposal's batch, which is exact while the envelope bounds the rates of all batches.
Pakman, Gilboa, Carlson and Paninski 2017 (doi:10.48550/arXiv.1609.00770) instead raise a regression line of the noisy
rates by their predicted spread: `bnnviz.samplers.pdmp.bounds.regression`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers.pdmp.bounds.grid import Grid, GridState
from bnnviz.samplers.pdmp.thinning import BOUNCE, REJECTED, Bound, Draw, Plan, RatePoint

_SHARE = 1e-3  # target share of proposals above the bound
_FIRST = 3.0  # proposals allowed above it from the start
_GAIN = 0.2  # increase of the reach's logarithm per violation
_LEAP = 3.0  # maximum factor per step on the reach


class RaisedState(NamedTuple):
    """The grid's cell, the reach per unit of speed, the chain's speed, and proposals so far.

    Reach and proposals are shared by all chains.
    """

    grid: GridState
    reach: Tensor
    speed: Tensor
    num_proposals: Tensor


class RaisedGrid(Bound):
    """A grid bound plus a reach that covers rates above it.

    The reach grows with each rate above the bound and shrinks with each below. The event is accepted even so: drawing
    again from an earlier time would favour earlier events. ``speed`` returns the speed (chains,) of a path from
    position, velocity and scaling; rates are proportional to it.
    """

    needs_curvature = True
    retreats = True

    def __init__(self, grid: Grid, speed: Callable[[Tensor, Tensor, Any], Tensor]) -> None:
        self.grid, self.speed = grid, speed

    def start(self, at: RatePoint, previous: RaisedState | None, horizon: Tensor) -> RaisedState:
        """Start at t = 0; the reach is kept."""
        zero = torch.zeros_like(at.rate)
        inner, reach, seen = (None, zero, zero) if previous is None else (previous[0], previous[1], previous[3])
        speed = self.speed(at.x, at.v, at.scaling).double().clamp_min(1e-12)
        return RaisedState(self.grid.start(at, inner, horizon), reach, speed, seen)

    def learn(self, state: RaisedState, at: RatePoint, kind: Tensor) -> RaisedState:
        """Learn the reach from the proposals of all chains, and each chain's cells from its proposals."""
        proposed = (kind == REJECTED) | (kind == BOUNCE)
        # A stopped chain has an old reach.
        latest = state.num_proposals.argmax()[None]
        reach, seen = state.reach.gather(0, latest), state.num_proposals.gather(0, latest) + proposed.sum()
        excess = (at.rate - state.grid.line(at.t)) / state.speed
        excess = torch.where(proposed & torch.isfinite(at.rate), excess, 0.0)
        allowed = torch.clamp(_FIRST / seen.clamp_min(1), _SHARE, 0.5)
        most = excess.amax().clamp_min(0)
        surplus = (excess > reach).sum() - allowed * proposed.sum()
        steady = reach * torch.exp((_GAIN * surplus).clamp(-1, 1))
        # A reach that is far too small must grow fast; one outlier must not make it very large.
        jump = torch.where(most > reach, torch.minimum(most, _LEAP * reach), 0.0)
        reach = torch.where(reach > 0, torch.maximum(steady, jump), most)
        grid = self.grid.learn(state.grid, at, kind)
        return RaisedState(grid, reach.expand_as(at.rate), state.speed, seen.expand_as(at.rate))

    def last_rate(self, state: RaisedState) -> Tensor:
        """Return the rate at the start of the cell."""
        return self.grid.last_rate(state.grid)

    def plan(self, state: RaisedState, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[RaisedState, Plan]:
        """Propose within the cell under its raised bound, or continue to the next one and evaluate its end."""
        height = state.grid.height
        moved, plan = self.grid.plan(state.grid._replace(height=height + state.reach * state.speed), s, draw, horizon)
        return state._replace(grid=moved._replace(height=height)), plan
