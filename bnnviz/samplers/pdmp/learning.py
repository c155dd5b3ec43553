r"""Start a run of a PDMP and adapt it in the warm-up: scaling, refresh rate, mean time between events, arrival.

A scaling is learned in rounds, each with more events than the previous one, from the path or from positions and
gradients along it. Meanwhile bounces are counted. With ``refresh_share`` s the refresh rate is

$$\lambda_r = \frac{s}{1 - s} \times \text{bounces per unit of path time},$$

so that refreshments are a share s of all events. Then the chains continue until U has settled
(`bnnviz.samplers.pdmp.warmup`). Adaptation ends with the warm-up.

Source of the share: Bierkens, Kamatani and Roberts 2022, doi:10.48550/arXiv.1807.11358, whose efficient share for the
Bouncy Particle on a high-dimensional Gaussian is .78.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bnnviz.samplers.mcmc.metric import WindowSums
from bnnviz.samplers.pdmp.dynamics import Adaptation, Info, Scaling, State
from bnnviz.samplers.pdmp.scaling.preconditioner import Preconditioner
from bnnviz.samplers.pdmp.thinning import BOUNCE, PROBE, START, Piece, RatePoint, is_event
from bnnviz.samplers.pdmp.warmup import Energies, PathSums, RefreshCounts
from bnnviz.samplers.random import RandomNumbers
from bnnviz.targets import Target

_ENOUGH_EVENTS = 40  # per chain, on average, for a mean time between them
_EVENTS_OF_A_ROUND = 10  # minimum per chain, on average
_MOST_EVENTS = 50  # maximum count in that mean
_POOLED_EVENTS = 10  # weight of the pooled mean time between events, in events
_ROUNDS = 4  # of learning a scaling from points
_POINTS_EVERY = 4  # steps between gradients for a preconditioner


class PathLearner:
    """Initialisation, changes and warm-up: a mixin that is combined with `EventLoop` and `Dynamics`."""

    target: Target
    learns_from_points: bool = False  # the scaling is learned from positions and the gradients there
    first_events: int  # of the first round, over all chains
    refresh_share: float | None

    # ---- initialisation and changes

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the state at path time zero, with velocities from their invariant law."""
        zero = torch.zeros(len(x0), dtype=torch.float64, device=x0.device)
        scaling = self.first_scaling()
        v = self.draw_velocity(rng, x0, scaling)
        adaptation = Adaptation(
            zero, zero, scaling, self.rounds, None, None, RefreshCounts.begun(self.refresh_rate, zero), Energies(zero)
        )
        refresh = self._refresh_times(rng, zero, adaptation)
        adaptation = adaptation._replace(mean_event_time=self._guessed_event_time(x0, v, adaptation))
        alive = torch.ones_like(zero, dtype=torch.bool)
        return self._started(rng, x0, v, zero, refresh, alive, adaptation)

    def _started(
        self,
        rng: RandomNumbers,
        x: Tensor,
        v: Tensor,
        clock: Tensor,
        refresh: Tensor,
        alive: Tensor,
        adaptation: Adaptation,
    ) -> State:
        """Return a state whose next evaluation is at its current point, with an empty envelope."""
        zero = torch.zeros_like(clock)
        here = RatePoint(x, v, zero, zero, torch.full_like(zero, torch.nan), adaptation.scaling)
        return State(
            x=x,
            v=v,
            clock=clock,
            s=zero,
            refresh=refresh,
            t=zero,
            kind=torch.full_like(zero, START, dtype=torch.int8),
            piece=Piece(zero, zero, zero),
            skipped=Piece(zero, zero, zero),
            bound=self.envelope.start(here, None, self._horizon(adaptation.mean_event_time)),
            alive=alive,
            batch=self.source.hold(len(x), rng),
            adaptation=adaptation,
        )

    def resume(self, rng: RandomNumbers, state: State, moved: bool = False) -> State:
        """Return the state with a reset envelope; fresh velocities if the target ``moved``, as their law may differ."""
        scaling = self.scaling_after(state.adaptation, moved)
        return self._restarted(rng, state, state.adaptation._replace(scaling=scaling), moved)

    def _restarted(self, rng: RandomNumbers, state: State, adaptation: Adaptation, moved: bool) -> State:
        """Continue from the end of the certain path, with fresh velocities if ``moved``."""
        x, v = self.flow(state.x, state.v, state.s, adaptation.scaling)
        v = self.draw_velocity(rng, v, adaptation.scaling) if moved else v
        refresh = self._refresh_times(rng, state.clock, adaptation)
        return self._started(rng, x, v, state.clock + state.s, refresh, state.alive, adaptation)

    def positions(self, state: State) -> Tensor:
        """Return the ends of the certain paths (chains, dim)."""
        return self.flow(state.x, state.v, state.s, state.adaptation.scaling)[0]

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the state of chains restarted at x (chains, dim), with fresh velocities."""
        state = state._replace(x=x, s=torch.zeros_like(state.s))
        return self._restarted(rng, state, state.adaptation, moved=True)

    # ---- adaptation of subclasses

    @property
    def scales_are_unknown(self) -> bool:
        """Whether location and scales of the target are unknown (`Target.located`)."""
        return "target" in vars(self) and not self.target.located

    def first_scaling(self) -> Scaling:
        """Return the initial scaling of the dynamics."""
        return ()

    def scaling_after(self, adaptation: Adaptation, moved: bool) -> Scaling:
        """Return the scaling after settings, or with ``moved`` the target, have changed."""
        return adaptation.scaling

    @property
    def rounds(self) -> int:
        """Rounds of the warm-up in which a scaling is learned."""
        return _ROUNDS if self.learns_from_points else 0

    def round_events(self, rounds_left: int) -> int:
        """Return the events of a round, over all chains: twice those of the previous one."""
        return self.first_events * 2 ** (_ROUNDS - rounds_left)

    def learned_scaling(self, sums: PathSums, points: WindowSums | None, before: Any) -> Scaling:
        """Return the scaling learned from the path of a round or points on it; ``before`` is the current scaling."""
        raise NotImplementedError

    def preconditioner(self, scaling: Any, chains: int) -> Preconditioner:
        """Return the map of a scaling that is learned from points; requires `learns_from_points`."""
        raise NotImplementedError

    # ---- the warm-up

    def adapt(self, rng: RandomNumbers, before: State, state: State, info: Info) -> State:
        """Add the step's events to the mean time between them, and its piece of path to the sums."""
        learned, event = before.adaptation, is_event(info.kind)
        count = torch.where(event, (learned.num_events + 1).clamp_max(_MOST_EVENTS), learned.num_events)
        mean = learned.mean_event_time
        new = torch.where(event, mean + (info.t - mean) / count.clamp_min(1), mean)
        # If the first event came at once, the chain would barely move: the time since the last one is a lower bound.
        new = torch.where(event, new, torch.maximum(new, info.s0 / 2))
        learned = learned._replace(
            mean_event_time=torch.where(state.alive, new, mean),
            num_events=torch.where(state.alive, count, learned.num_events),
            refreshment=learned.refreshment.added(info.kind == BOUNCE, info.s1 - info.s0),
            energies=learned.energies.added(info.potential, info.kind != PROBE),
        )
        if learned.rounds_left:
            integrals = self.integrals(before.x, before.v, info.s0, info.s1, learned.scaling)
            sums = learned.sums or PathSums.begun(before.x)
            learned = learned._replace(sums=sums.added(info.s1 - info.s0, integrals, event.sum()))
            if self.learns_from_points and learned.energies.steps % _POINTS_EVERY == 0:
                x = self.positions(state)
                gradient = self.target.gradient(x)[1]
                if bool(torch.isfinite(gradient).all()):
                    preconditioner = self.preconditioner(learned.scaling, len(x))
                    learned = learned._replace(points=preconditioner.added(learned.points, x, gradient, state.alive))
        return state._replace(adaptation=learned)

    def end_window(self, rng: RandomNumbers, state: State, last: bool) -> State:
        """End a round after enough events; after the last round, pool the chains' mean times between events."""
        learned = state.adaptation
        learned = learned._replace(energies=learned.energies.window_ended())
        state = state._replace(adaptation=learned)
        if learned.rounds_left and learned.sums is not None:
            required = self.round_events(learned.rounds_left)
            if last or (learned.sums.complete(required) and bool(learned.num_events.mean() >= _EVENTS_OF_A_ROUND)):
                rounds_left = 0 if last else learned.rounds_left - 1
                scaling = self.learned_scaling(learned.sums, learned.points, learned.scaling)
                return self.rescaled(rng, state, scaling, rounds_left)
            sums = learned.sums.without_half(required)
            points = learned.points if sums is learned.sums else None
            return self._refreshed_otherwise(rng, state, learned._replace(sums=sums, points=points))
        state = self._refreshed_otherwise(rng, state, learned)
        if not (last or _has_event_times(learned)) or not bool(learned.num_events.any()):
            return state
        count, total = learned.num_events, learned.num_events * learned.mean_event_time
        mean = (total + _POOLED_EVENTS * (total.sum() / count.sum())) / (count + _POOLED_EVENTS)
        return state._replace(adaptation=state.adaptation._replace(mean_event_time=mean))

    def _refreshed_otherwise(self, rng: RandomNumbers, state: State, learned: Adaptation) -> State:
        """Return the state with the adaptation, and the refresh rate that gives the target share."""
        if self.refresh_share is None or not learned.refreshment.is_off(self.refresh_share):
            return state._replace(adaptation=learned)
        refreshment = learned.refreshment.tuned(self.refresh_share)
        return self._restarted(rng, state, learned._replace(refreshment=refreshment), moved=False)

    def rescaled(self, rng: RandomNumbers, state: State, scaling: Any, rounds_left: int = 0) -> State:
        """Return the state with another scaling, which changes the mean time between events."""
        x, v = self.flow(state.x, state.v, state.s, state.adaptation.scaling)
        state = state._replace(x=x, v=v, clock=state.clock + state.s, s=torch.zeros_like(state.s))
        learned = state.adaptation._replace(scaling=scaling, rounds_left=rounds_left, sums=None, points=None)
        learned = learned._replace(refreshment=learned.refreshment.restarted())
        state = self._restarted(rng, state, learned, moved=True)
        event_time = self._guessed_event_time(state.x, state.v, learned)
        learned = learned._replace(mean_event_time=event_time, num_events=torch.zeros_like(learned.num_events))
        return self._restarted(rng, state, learned, moved=False)

    def _guessed_event_time(self, x: Tensor, v: Tensor, learned: Adaptation) -> Tensor:
        """Return a time (chains,) with about one expected event at the current rate or, at a mode, a nearby rate."""
        _, g, curvature = self.target.gradient_and_curvature(x, v)
        near, far = self.rate(x, v, g, learned.scaling).double().abs().mean(), curvature.double().abs().mean().sqrt()
        return (1 / (self.refreshments(learned) + near + far + 1e-3)).expand(len(x))

    def is_tuned(self, state: State) -> bool:
        """Return whether the scaling is learned, enough events have been seen, and U has settled."""
        learned = state.adaptation
        if learned.rounds_left or not _has_event_times(learned):
            return False
        # A path that is still approaching the target gives a wrong scaling; without a scaling there is no need to wait.
        return not self.learns_from_points or learned.energies.arrived(state.alive)

    def awaited(self, state: State) -> str:
        """Return the condition that the warm-up waits for: events, or U."""
        if state.adaptation.rounds_left or not _has_event_times(state.adaptation):
            return "the sampler had seen enough events"
        return "U had settled, so the chains may not have arrived yet"

    def freeze(self, rng: RandomNumbers, state: State) -> State:
        """Return the state without the variables of the warm-up."""
        energies = Energies(torch.zeros_like(state.clock))
        return state._replace(adaptation=state.adaptation._replace(energies=energies))


def _has_event_times(learned: Adaptation) -> bool:
    return bool(learned.num_events.mean() >= _ENOUGH_EVENTS)
