r"""Bound the rate by lines over the cells of a grid, from rates and their derivatives.

Over a cell $[t_0, t_1]$ of width w the rate is approximated by the cubic with its values $f_0, f_1$ and slopes
$d_0, d_1$ at the ends. With the chord's slope $c = (f_1 - f_0) / w$, the cubic exceeds its chord by at most

$$\tfrac{4}{27}\, w\, \bigl((d_0 - c)^+ + (c - d_1)^+\bigr),$$

since $\max_{u \in [0, 1]} u (1 - u)^2 = 4/27$. A concave rate, however curved, is below its tangents at the ends,
which intersect $w\, p q / (p + q)$ above the chord, $p = (d_0 - c)^+$ and $q = (c - d_1)^+$. The line is the chord
raised by the larger of both, plus a margin.

A jump of the gradient of U makes the rate jump by

$$J = w \bigl(c - \tfrac{1}{2} (d_0 + d_1)\bigr)$$

if it is straight before and after. The jump may be anywhere in the cell: the rate is below the maximum of both
tangents. So the line's end before a jump up (after a jump down) is raised by $|J|$, which meets that maximum.

Where U diverges, as at the edge of a Gamma density, the rate is so convex that the line is far above it. A look-ahead
whose line would cause more than four rejected proposals is repeated nearer, as is one that found no finite rate. The
part of the path up to there is known and determines no events.

The grid of rates along the path is that of Corbella, Spencer and Roberts 2022, doi:10.1007/s11222-022-10142-x, and of
Andral and Kamatani 2024, doi:10.48550/arXiv.2408.03682.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers.pdmp.thinning import (
    BOUNCE,
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

_CUBIC = 4 / 27
# Tolerance relative to the rates at the ends: the rate is computed in single precision.
_ROUNDING = 1e-3
_SHORTEST = 1 / 4  # of the longest cell, at the start of a path
_RETREAT = 0.25  # of the distance, after a look-ahead that went too far
_MOST_WASTED = 4.0  # expected rejected proposals per cell, above which a nearer look-ahead is cheaper
_WIDER = 1.08
_AFTER_REJECTION = 0.8999999761581421  # 0.9 in single precision, for reproducibility of recorded runs
_SHARE = 1e-3  # target share of proposals above the bound
_FIRST = 3.0  # proposals allowed above it from the start
_GAIN = 0.2  # increase of the reach's logarithm per violation
_LEAP = 3.0  # maximum factor per step on the reach


class GridState(NamedTuple):
    """A cell [t0, t1] with rate and derivative at both ends, and the line that bounds the rate."""

    t0: Tensor
    f0: Tensor
    d0: Tensor
    t1: Tensor
    f1: Tensor
    d1: Tensor
    slope: Tensor
    height: Tensor
    width: Tensor
    probing: Tensor

    def line(self, t: Tensor) -> Tensor:
        """Return the line at time t."""
        return self.slope * t + self.height


class Grid(Bound):
    """Lines over cells whose ends have been evaluated, of a width that each chain adapts, up to ``widest``."""

    needs_curvature = True
    retreats = True

    def __init__(self, margin: float, widest: float, noisy: bool = False) -> None:
        self.margin, self.widest, self.noisy = margin, widest, noisy

    def start(self, at: RatePoint, previous: GridState | None, horizon: Tensor) -> GridState:
        """Start at t = 0; the slope is known after a refreshment, but not after a bounce."""
        zero = torch.zeros_like(at.rate)
        most = horizon.clamp_max(self.widest)
        # A width shortened by an edge where U diverges does not apply on the way back.
        width = most if previous is None else torch.maximum(previous.width, _SHORTEST * most)
        probing = torch.ones_like(zero, dtype=torch.bool)
        return GridState(zero, at.rate, at.slope, width, zero, zero, zero, zero, width, probing)

    def learn(self, state: GridState, at: RatePoint, kind: Tensor) -> GridState:
        """Close the cell after a look-ahead, unless that is repeated nearer; split the cell after a rejection."""
        t, f, d = at.t, at.rate, at.slope
        probe = kind == PROBE
        f1, d1 = torch.where(probe, f, state.f1), torch.where(probe, d, state.d1)
        # The whole cell and its right part at once: the cost of small tensors is per call.
        slopes, heights = self._line(
            torch.stack([state.t0, t]),
            torch.stack([state.f0, f]),
            torch.stack([state.d0, d]),
            torch.stack([state.t1, state.t1]),
            torch.stack([f1, f1]),
            torch.stack([d1, d1]),
        )
        # The approximate number of rejected proposals under the line over the cell.
        begin, end = slopes[0] * state.t0 + heights[0], slopes[0] * t + heights[0]
        ends = begin.clamp_min(0) - state.f0.clamp_min(0) + end.clamp_min(0) - f.clamp_min(0)
        wasted = (t - state.t0) * ends / 2
        too_far = probe & ~(torch.isfinite(f) & (self.noisy | (wasted <= _MOST_WASTED)))
        split = kind == REJECTED
        # Two Python numbers would give the default type.
        factor = torch.where(split, t.new_full((), _AFTER_REJECTION), 1.0)
        return GridState(
            torch.where(split, t, state.t0),
            torch.where(split, f, state.f0),
            torch.where(split, d, state.d0),
            torch.where(too_far, state.t0 + _RETREAT * (t - state.t0), state.t1),
            f1,
            d1,
            torch.where(probe, slopes[0], slopes[1]),
            torch.where(probe, heights[0], heights[1]),
            state.width * torch.where(too_far, _RETREAT, factor),
            too_far,
        )

    def last_rate(self, state: GridState) -> Tensor:
        """Return the rate at the start of the cell."""
        return state.f0

    def _line(self, t0: Tensor, f0: Tensor, d0: Tensor, t1: Tensor, f1: Tensor, d1: Tensor) -> tuple[Tensor, Tensor]:
        """Return slope and height of the line over a cell."""
        width = (t1 - t0).clamp_min(1e-12)
        # If the slope at t0 is unknown, the tangent at t1, extended to t0, bounds a concave rate and one that has
        # jumped up.
        unknown = torch.isnan(d0)
        first = torch.where(unknown, torch.maximum(f0, f1 - d1 * width), f0)
        chord = (f1 - first) / width
        before = torch.where(unknown, (first - f0) / width, d0 - chord)
        after = chord - d1
        falling, rising = torch.where(unknown, 0.0, before.clamp_min(0)), after.clamp_min(0)
        both = falling + rising
        above = _CUBIC * both
        if not self.noisy:
            above = torch.maximum(above, falling * rising / both.clamp_min(1e-300))
        lift = width * (above + self.margin * (before.abs() + after.abs()))
        lift = lift + _ROUNDING * (f0.abs() + f1.abs())
        if self.noisy:
            # Ends with different batches show no jumps: such lines would be high in some cells and low in others.
            return chord, first + lift - chord * t0
        # The jump of the rate in the cell, from its slopes at the ends and the chord's.
        jump = (1 - _CUBIC) * torch.where(unknown, 0.0, width * (after - before) / 2)
        left, right = lift + jump.clamp_min(0), lift - jump.clamp_max(0)
        slope = chord + (right - left) / width
        return slope, first + left - slope * t0

    def plan(self, state: GridState, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[GridState, Plan]:
        """Propose within the cell, or continue to the next one and evaluate its end."""
        t = first_arrival(s, state.slope, state.height, draw(s))
        passed = ~state.probing & (t > state.t1)
        most = horizon.clamp_max(self.widest)
        width = torch.where(passed, torch.minimum(state.width * _WIDER, most), state.width)
        end = torch.where(passed, state.t1 + width, state.t1)
        after = torch.where(passed, state.t1, s)
        probing = state.probing | passed
        new = state._replace(
            t0=torch.where(passed, state.t1, state.t0),
            f0=torch.where(passed, state.f1, state.f0),
            d0=torch.where(passed, state.d1, state.d0),
            t1=end,
            width=width,
            probing=probing,
        )
        piece = Piece(state.slope, state.height, state.t1)
        kind = torch.where(probing, PROBE, PROPOSAL)
        return new, Plan(torch.where(probing, end, t), kind, after, piece.hidden(probing), piece)


class RaisedState(NamedTuple):
    """The grid's cell, the chain's speed, and reach per unit of speed and proposals so far, shared by all chains."""

    grid: GridState
    reach: Tensor
    speed: Tensor
    num_proposals: Tensor


class RaisedGrid(Bound):
    r"""A grid bound plus a reach that covers rates above it.

    A rate may jump up and down between the ends of a cell if the gradient does, as for networks with ReLU; and with
    batches every evaluation uses other rows. The grid's line g is therefore raised by a *reach* r per unit of speed,

    $$h(t) = \max(0, g(t) + r\, |v|),$$

    which is learned so that at most a thousandth of the proposals exceeds it; it is 0 while no proposal does. With
    batches the event uses the rate of the proposal's batch, which is exact while the envelope bounds the rates of all
    batches. Pakman, Gilboa, Carlson and Paninski 2017 (doi:10.48550/arXiv.1609.00770) instead raise a regression line
    of the noisy rates by their predicted spread: `bnnviz.samplers.pdmp.bounds.regression`.

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
