"""The grid bound for rates that every evaluation sees through another batch of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers.pdmp.thinning import BOUNCE, REJECTED, Draw, Grid, GridState, Plan

_SHARE = 1e-3  # of the proposals may lie above the bound in the end
_FIRST = 3.0  # proposals that may, however few there were
_GAIN = 0.2  # of the reach's logarithm, by a violation
_LEAP = 3.0  # the most that the reach is multiplied by in one step


class NoisyState(NamedTuple):
    """The grid's cell, what is added to its bound for one unit of speed, the chain's speed, and proposals so far.

    Reach and proposals are those of all chains together.
    """

    grid: GridState
    reach: Tensor
    speed: Tensor
    seen: Tensor


class NoisyGrid:
    """A grid bound plus a *reach* that covers how far the rates of other batches lie above it.

    The reach is learnt from the proposals of all chains, for one unit of speed: it grows with each rate above the
    bound and shrinks with each below, so that a thousandth of them lies above. The event is taken then all the same,
    since drawing again would throw away just the batches that pull hardest.

    Parameters
    ----------
    grid : Grid
    speed : callable
        Gives the speed (chains,) of a path from (x, v): what a rate is in proportion to.
    """

    needs_curvature = True
    redraws = False
    certain = False
    retreats = True
    reject_above = float("inf")

    def __init__(self, grid: Grid, speed: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.grid, self.speed = grid, speed

    def start(
        self,
        x: Tensor,
        v: Tensor,
        f: Tensor,
        curvature: Tensor,
        known: Tensor,
        previous: NoisyState | None,
        horizon: Tensor,
    ) -> NoisyState:
        """Begin at t = 0 with rate f; what was learnt stays."""
        inner, zero = None if previous is None else previous.grid, torch.zeros_like(f)
        reach, seen = (zero, zero) if previous is None else (previous.reach, previous.seen)
        begun = self.grid.start(x, v, f, curvature, known, inner, horizon)
        return NoisyState(begun, reach, self.speed(x, v).double().clamp_min(1e-12), seen)

    def learn(
        self, state: NoisyState, kind: Tensor, t: Tensor, f: Tensor, curvature: Tensor, violated: Tensor
    ) -> NoisyState:
        """Learn the reach from the proposals of all chains, and the cells from each one's own."""
        proposed = (kind == REJECTED) | (kind == BOUNCE)
        # A chain that has stopped has an old reach.
        latest = state.seen.argmax()[None]
        reach, seen = state.reach.gather(0, latest), state.seen.gather(0, latest) + proposed.sum()
        excess = torch.where(proposed & torch.isfinite(f), (f - state.grid.line(t)) / state.speed, 0.0)
        allowed = torch.clamp(_FIRST / seen.clamp_min(1), _SHARE, 0.5)
        most = excess.amax().clamp_min(0)
        surplus = (excess > reach).sum() - allowed * proposed.sum()
        steady = reach * torch.exp((_GAIN * surplus).clamp(-1, 1))
        # One that is far too small has not long to grow; one outlier must not make it very large.
        jump = torch.where(most > reach, torch.minimum(most, _LEAP * reach), 0.0)
        reach = torch.where(reach > 0, torch.maximum(steady, jump), most)
        learnt = self.grid.learn(state.grid, kind, t, f, curvature, torch.zeros_like(proposed))
        return NoisyState(learnt, reach.expand_as(f), state.speed, seen.expand_as(f))

    def plan(self, state: NoisyState, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[NoisyState, Plan]:
        """Propose within the cell under its raised bound, or pass on to the next one and look at its end."""
        height = state.grid.height
        moved, plan = self.grid.plan(state.grid._replace(height=height + state.reach * state.speed), s, draw, horizon)
        return state._replace(grid=moved._replace(height=height)), plan
