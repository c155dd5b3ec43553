r"""Run the event loop of a PDMP in lock-step: one step is one evaluation of the rate for every chain.

Event times are found by thinning (`bnnviz.samplers.pdmp.thinning`). Algorithm 2 of Goan, Perrin, Mengersen and Fookes
2023 (doi:10.48550/arXiv.2302.08724) loops until an event. Here each chain has one of a few states between two
evaluations, so that the chains of a tensor can be at different points of the loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers.minibatch import MiniBatch
from bnnviz.samplers.pdmp.dynamics import Adaptation, Info, State
from bnnviz.samplers.pdmp.thinning import (
    BOUNCE,
    HORIZON,
    PROBE,
    PROPOSAL,
    REFRESH,
    ROUNDING,
    START,
    Bound,
    Plan,
    RatePoint,
)
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import choose

_NEAREST = 1e-3  # mean times between events: up to this distance ahead the rate must be finite
_VANISHES = 0.05  # minimum power of the distance with which a density vanishes at an edge
# Evaluations further apart than this share of the mean time between events widen the posterior.
_HORIZON_SHARE = 0.3
# Maximum look-ahead of the other bounds, in mean times between events.
_SHARES = {"grid": 0.5, "regression": 0.5, "exact": 20.0}


class ThinningOutcome(NamedTuple):
    """Outcome of the proposals; all fields have shape (chains,)."""

    kind: Tensor  # Kind of the evaluation: an accepted proposal is a BOUNCE
    # Envelope, uniform draw, and positive rate / envelope
    height: Tensor
    uniform: Tensor
    ratio: Tensor
    # bool: The ratio is above 1; the proposal is a bounce; a bounce or a refreshment
    violated: Tensor
    accepted: Tensor
    event: Tensor


class EventLoop:
    """The kernel of a PDMP, a mixin that is combined with `Dynamics` and the settings of `PDMP`."""

    envelope: Bound
    source: MiniBatch  # of derivatives
    host_sync: bool  # whether a step may read tensor values on the host (CPU only)
    bound: str
    horizon: float | None
    refresh_rate: float
    refresh_share: float | None

    def pre_draw(self, rng: RandomNumbers, state: State) -> tuple[Tensor | None, Any]:
        """Draw the inputs that only some chains need: the velocities of refreshed chains, and the batch."""
        if not self.host_sync:
            velocity = self.draw_velocity(rng, state.v, state.adaptation.scaling)
        elif len(chains := (state.kind == REFRESH).nonzero()[:, 0]):
            scaling = self.scaling_of(state.adaptation.scaling, chains)
            fresh = self.draw_velocity(rng, state.v[chains], scaling)
            velocity = torch.zeros_like(state.v).index_copy(0, chains, fresh)
        else:
            velocity = None
        return velocity, self.source.draw(state.batch, len(state.x), rng)

    def kernel(self, rng: RandomNumbers, state: State, velocity: Tensor | None, batch: Any) -> tuple[State, Info]:
        r"""Evaluate the rate of every chain once, at its planned time, and plan the next evaluation.

        The states of a chain are the kinds of its planned evaluation::

                        START
                          |
                          v
            .---------> plan <--------------------------------.
            |             |                                   |
            |      .------+-------.-----------.---------.     |
            |      v              v           v         v     |
            |   REFRESH       PROPOSAL      PROBE    HORIZON  |
            |      |          |      |        |         |     |
            |      |      accepted rejected   |         |     |
            |      v          v      |        |         |     |
            |   draw v     reflect v '--------+---------+-----'
            |      |       (BOUNCE)         the envelope learns
            |      v          v
            '------+----------'
              t = 0, a new envelope

        START evaluates the rate at a chain's position. A PROPOSAL is the first arrival under the envelope, a PROBE a
        look-ahead along the path that defines the envelope, and the HORIZON the maximum time without an evaluation.
        Events are BOUNCE and REFRESH. The time of a REFRESH is drawn at the last one and precedes later plans.
        """
        at, potential, g = self._evaluate(state, velocity, batch)
        finite = torch.isfinite(potential) & torch.isfinite(at.rate) & torch.isfinite(at.slope)
        at, survives = at._replace(rate=torch.where(finite, at.rate, torch.nan)), self._survives(state, finite)
        outcome = self._thin(rng, state, at.rate)
        failed, alive = state.alive & ~survives, state.alive & survives
        new = self._after(rng, state, at, g, outcome, alive)
        end = torch.where(alive, torch.where(outcome.event, state.t, new.s), state.s)
        slope = at.slope if self.envelope.needs_curvature else torch.full_like(at.rate, torch.nan)
        kind, height, uniform, ratio, violated = outcome[:5]
        info = Info(kind, state.t, at.rate, height, uniform, ratio, violated, state.s, end, slope, potential, failed)
        return new, info

    def _evaluate(self, state: State, velocity: Tensor | None, batch: Any) -> tuple[RatePoint, Tensor, Tensor]:
        """Follow the flow to the planned time; return the rate there, U and its gradient."""
        scaling = state.adaptation.scaling
        x, v = self.flow(state.x, state.v, state.t, scaling)
        if velocity is not None:
            v = torch.where((state.kind == REFRESH)[:, None], velocity, v)
        source = self.source.of(batch)
        if not self.envelope.needs_curvature:
            potential, g = source.gradient(x)
            rate = slope = self.rate(x, v, g, scaling).double()
        else:
            potential, g, curvature = self.derivatives(source, x, v)
            rate = self.rate(x, v, g, scaling).double()
            slope = self.rate_slope(x, v, g, curvature, scaling).double()
        return RatePoint(x, v, state.t, rate, slope, scaling), potential, g

    def _survives(self, state: State, finite: Tensor) -> Tensor:
        """Return which chains can continue: a look-ahead may meet values that the path avoids.

        Before an edge where the density vanishes as the power a of the distance, distance times rate is at least a.
        Where the density does not vanish, it tends to 0 as the path approaches.
        """
        if not self.envelope.retreats:
            return finite
        ahead = state.t - state.s
        soft = ahead * self.envelope.last_rate(state.bound) > _VANISHES
        far = ahead > _NEAREST * state.adaptation.mean_event_time
        return finite | ((state.kind == PROBE) & (far | soft))

    def _thin(self, rng: RandomNumbers, state: State, rate: Tensor) -> ThinningOutcome:
        """Accept or reject the proposals: u <= max(0, rate) / envelope."""
        proposal = state.kind == PROPOSAL
        height = state.piece.at(state.t)
        uniform = rng.uniform(rate.shape, rate.dtype)
        certain = self.envelope.certain
        ratio = proposal.to(rate.dtype) if certain else torch.where(proposal & (rate > 0), rate / height, 0.0)
        violated = proposal & (ratio > 1 + ROUNDING)
        accepted = proposal & (uniform <= ratio) & (ratio <= self.envelope.reject_above)
        forced = self.envelope.forced(state.bound)
        if forced is not None:
            accepted = accepted | (proposal & forced)
        kind = torch.where(accepted, torch.full_like(state.kind, BOUNCE), state.kind)
        return ThinningOutcome(kind, height, uniform, ratio, violated, accepted, accepted | (state.kind == REFRESH))

    def _after(
        self, rng: RandomNumbers, state: State, at: RatePoint, g: Tensor, outcome: ThinningOutcome, alive: Tensor
    ) -> State:
        """Return the state after the outcome, with the next evaluation planned."""
        accepted, event = outcome.accepted, outcome.event
        horizon = self._horizon(state.adaptation.mean_event_time)
        v = torch.where(accepted[:, None], self.reflect(rng, at.x, at.v, g, at.scaling), at.v)
        bound, fresh = self._envelope_after(state, at, v, g, outcome, horizon)
        refresh = torch.where(event, state.refresh - state.t, state.refresh)
        fresh_times = self._refresh_times(rng, refresh, state.adaptation)
        refresh = torch.where(state.kind == REFRESH, fresh_times, refresh)
        # The path is certain up to the evaluation, or up to a new start.
        certain = torch.where((state.kind == PROPOSAL) | (state.kind == HORIZON), state.t, state.s)
        certain = torch.where(fresh, torch.zeros_like(certain), certain)
        bound, plan = self._planned(rng, bound, certain, refresh, horizon)
        moved = State(
            x=torch.where(event[:, None], at.x, state.x),
            v=torch.where(event[:, None], v, state.v),
            clock=torch.where(event, state.clock + state.t, state.clock),
            s=plan.s,
            refresh=refresh,
            t=plan.t,
            kind=plan.kind,
            piece=plan.piece,
            skipped=plan.skipped,
            bound=bound,
            alive=alive,
            batch=state.batch,
            adaptation=state.adaptation,
        )
        if self.source.held:
            moved = self._rebatched(rng, moved, event)
        # Nearly always all chains are alive.
        if self.host_sync and bool(alive.all()):
            return moved
        return choose(alive, moved, state._replace(alive=alive))

    def _envelope_after(
        self, state: State, at: RatePoint, v: Tensor, g: Tensor, outcome: ThinningOutcome, horizon: Tensor
    ) -> tuple[Any, Tensor]:
        """Return the bound's state, restarted with velocity v after events, and its state before."""
        accepted = outcome.accepted
        rate = torch.where(accepted, self.rate_after(at.x, v, g, at.rate, at.scaling), at.rate)
        # The slope of the rate belongs to the velocity before a bounce.
        turned = at._replace(v=v, rate=rate, slope=torch.where(accepted, torch.nan, at.slope))
        learned = self.envelope.learn(state.bound, at, outcome.kind)
        fresh = outcome.event | (state.kind == START)
        return choose(fresh, self.envelope.start(turned, learned, horizon), learned), fresh

    def _planned(self, rng: RandomNumbers, bound: Any, s: Tensor, refresh: Tensor, horizon: Tensor) -> tuple[Any, Plan]:
        """Return the bound's state and the next evaluation of chains that are certain up to s."""
        bound, plan = self.envelope.plan(bound, s, lambda like: rng.exponential(like.shape, like.dtype), horizon)
        # A refreshment precedes a later planned evaluation, and ends a path that passes beyond it.
        early = (refresh < plan.s) | ((plan.kind != PROBE) & (refresh <= plan.t))
        return bound, plan._replace(
            t=torch.where(early, refresh, plan.t),
            kind=torch.where(early, REFRESH, plan.kind).to(torch.int8),
            s=torch.where(early, torch.minimum(plan.s, refresh), plan.s),
        )

    def _rebatched(self, rng: RandomNumbers, state: State, event: Tensor) -> State:
        """Give chains with an event a new batch; their rate is evaluated again with it."""
        zero = torch.zeros_like(state.t)
        return state._replace(
            batch=choose(event, self.source.hold(len(event), rng), state.batch),
            t=torch.where(event, zero, state.t),
            s=torch.where(event, zero, state.s),
            kind=torch.where(event, torch.full_like(state.kind, START), state.kind),
        )

    def _horizon(self, mean_event_time: Tensor) -> Tensor:
        """Return the maximum time (chains,) between two evaluations."""
        if self.bound in _SHARES:
            return mean_event_time * _SHARES[self.bound]
        if self.horizon is not None:
            return torch.full_like(mean_event_time, self.horizon)
        return mean_event_time * _HORIZON_SHARE

    def refreshments(self, adaptation: Adaptation) -> float | Tensor:
        """Return the refreshments per unit of path time: as set, or tuned to a target share of events."""
        return self.refresh_rate if self.refresh_share is None else adaptation.refreshment.rate

    def _refresh_times(self, rng: RandomNumbers, like: Tensor, adaptation: Adaptation) -> Tensor:
        """Draw times until the next refreshment, infinite without any."""
        if self.refresh_share is None and self.refresh_rate == 0:
            return torch.full_like(like, torch.inf)
        return rng.exponential(like.shape, like.dtype) / self.refreshments(adaptation)
