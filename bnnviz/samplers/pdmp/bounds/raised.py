r"""Bound rates by a grid and a reach, learned from the proposals, by which rates lie above the grid's line.

Between the ends of a cell a rate may jump up and down again, where a gradient does, as of a network with ReLU; and
with batches every evaluation sees it through other rows. So the grid's line g is raised by a *reach* r for one unit of
speed,

$$h(t) = \max(0, g(t) + r\, |v|),$$

which is learned so that at most a thousandth of the proposals lies above; it is 0 while none does. With batches the
event is taken at the rate of the batch that the proposal has drawn, and that is exact while the envelope bounds the
rates of all batches. Pakman, Gilboa, Carlson and Paninski 2017 (doi:10.48550/arXiv.1609.00770) raise a regression line
of the noisy rates by their predicted spread instead: `bnnviz.samplers.pdmp.bounds.regression`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers.pdmp.bounds.grid import Grid, GridState
from bnnviz.samplers.pdmp.thinning import BOUNCE, REJECTED, Bound, Draw, Plan, RatePoint

_SHARE = 1e-3  # of the proposals may lie above the bound in the end
_FIRST = 3.0  # proposals that may, however few there were
_GAIN = 0.2  # of the reach's logarithm, by a violation
_LEAP = 3.0  # the most that the reach is multiplied by in one step


class RaisedState(NamedTuple):
    """The grid's cell, what is added to its bound for one unit of speed, the chain's speed, and proposals so far.

    Reach and proposals are those of all chains together.
    """

    grid: GridState
    reach: Tensor
    speed: Tensor
    num_proposals: Tensor


class RaisedGrid(Bound):
    """A grid bound plus a reach that covers how far rates lie above it.

    The reach grows with each rate above the bound and shrinks with each below. The event is taken then all the same:
    to draw again from an earlier time would favour events before the one that is thrown away.

    Parameters
    ----------
    grid : Grid
    speed : callable
        Gives the speed (chains,) of a path from position, velocity and scaling: a rate is in proportion to it.
    """

    needs_curvature = True
    retreats = True

    def __init__(self, grid: Grid, speed: Callable[[Tensor, Tensor, Any], Tensor]) -> None:
        self.grid, self.speed = grid, speed

    def start(self, at: RatePoint, previous: RaisedState | None, horizon: Tensor) -> RaisedState:
        """Begin at t = 0; what was learned stays."""
        zero = torch.zeros_like(at.rate)
        inner, reach, seen = (None, zero, zero) if previous is None else (previous[0], previous[1], previous[3])
        speed = self.speed(at.x, at.v, at.scaling).double().clamp_min(1e-12)
        return RaisedState(self.grid.start(at, inner, horizon), reach, speed, seen)

    def learn(self, state: RaisedState, at: RatePoint, kind: Tensor) -> RaisedState:
        """Learn the reach from the proposals of all chains, and the cells from each one's own."""
        proposed = (kind == REJECTED) | (kind == BOUNCE)
        # A chain that has stopped has an old reach.
        latest = state.num_proposals.argmax()[None]
        reach, seen = state.reach.gather(0, latest), state.num_proposals.gather(0, latest) + proposed.sum()
        excess = (at.rate - state.grid.line(at.t)) / state.speed
        excess = torch.where(proposed & torch.isfinite(at.rate), excess, 0.0)
        allowed = torch.clamp(_FIRST / seen.clamp_min(1), _SHARE, 0.5)
        most = excess.amax().clamp_min(0)
        surplus = (excess > reach).sum() - allowed * proposed.sum()
        steady = reach * torch.exp((_GAIN * surplus).clamp(-1, 1))
        # One that is far too small has not long to grow; one outlier must not make it very large.
        jump = torch.where(most > reach, torch.minimum(most, _LEAP * reach), 0.0)
        reach = torch.where(reach > 0, torch.maximum(steady, jump), most)
        grid = self.grid.learn(state.grid, at, kind)
        return RaisedState(grid, reach.expand_as(at.rate), state.speed, seen.expand_as(at.rate))

    def last_rate(self, state: RaisedState) -> Tensor:
        """Return the rate where the cell begins."""
        return self.grid.last_rate(state.grid)

    def plan(self, state: RaisedState, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[RaisedState, Plan]:
        """Propose within the cell under its raised bound, or pass on to the next one and look at its end."""
        height = state.grid.height
        moved, plan = self.grid.plan(state.grid._replace(height=height + state.reach * state.speed), s, draw, horizon)
        return state._replace(grid=moved._replace(height=height)), plan
