"""Piecewise deterministic Markov processes in lock-step: one step is one evaluation for every chain.

A subclass gives the dynamics: how a chain moves between events, its signed rate, how a bounce and a
refreshment change the velocity. Event times come from a bound (`bnnviz.samplers.pdmp.thinning`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.samplers.base import Sampler
from bnnviz.samplers.minibatch import FullData, MiniBatch, refuse_without_rows
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.pdmp import thinning
from bnnviz.samplers.pdmp.chain_trace import PathTrace
from bnnviz.samplers.pdmp.draw_collector import EventDrawCollector, PathDrawCollector, RatioStats
from bnnviz.samplers.pdmp.exact_bound import Exact, Lines
from bnnviz.samplers.pdmp.noisy_bound import NoisyGrid
from bnnviz.samplers.pdmp.path_moments import PathSums
from bnnviz.samplers.pdmp.thinning import BOUNCE, HORIZON, PROBE, PROPOSAL, REFRESH, START, Piece
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.text import Text
from bnnviz.targets import Target

PlanarFlow = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]

_GRID = {"bound": ["grid"]}
_INTERPOLATED = {"bound": ["interpolated"]}
_BATCHES = {"batch_size": {"least": 1}}
# Evaluations further apart than this share of the mean time between events widen the posterior.
_HORIZON_SHARE = 0.3
# How far the other bounds look ahead at most, in mean times between events.
_SHARES = {"grid": 0.5, "exact": 20.0}
_TUNING_EVENTS = 40
_PATH_NUMBERS = 4096  # chains x dimensions up to which the path is integrated: beyond, it would cost a tenth of a step
_NEAREST = 1e-3  # mean times between events: so near ahead the rate has to be finite
_ROWS = 512  # gradients at once, where as many are wanted as there are draws
_POOLED_GAPS = 10  # so much the other chains' paces count beside a chain's own
# Below this mean excess the variances of SCIENCE's table are within some percent of the truth.
_SMALL_EXCESS = 0.03


class State(NamedTuple):
    """All chains of a process; times are counted from the last event unless said otherwise.

    Attributes
    ----------
    x, v : Tensor, shape (chains, dim)
        Position and velocity at the last event.
    clock : Tensor, shape (chains,), float64
        Path time of the last event since the start.
    s : Tensor
        Time up to which the path is certain.
    refresh : Tensor
        Time of the next refreshment.
    pace : Tensor
        Running mean of the time between events.
    gaps : Tensor
        Number of events in that mean; it stops growing when the tuning ends.
    t, kind, piece, skipped
        The planned evaluation (`thinning.Plan`).
    bound
        The bound's own state.
    alive : Tensor, bool
        False for a chain that met a value that is not finite.
    batch : Tensor (chains, size) or ()
        The rows that a chain holds from one event to the next; empty where it holds none.
    """

    x: Tensor
    v: Tensor
    clock: Tensor
    s: Tensor
    refresh: Tensor
    pace: Tensor
    gaps: Tensor
    t: Tensor
    kind: Tensor
    piece: Piece
    skipped: Piece
    bound: Any
    alive: Tensor
    batch: Any = ()


class Info(NamedTuple):
    """What one step did, for every chain, shape (chains,).

    Attributes
    ----------
    kind : Tensor
        PROBE, REJECTED, BOUNCE, REFRESH, HORIZON or START (`bnnviz.samplers.pdmp.thinning`).
    t, rate, height, uniform, ratio
        Time of the evaluation, signed rate, envelope, the uniform draw, positive rate / envelope.
    violated : Tensor, bool
        A proposal whose rate exceeded the envelope.
    s0, s1 : Tensor
        The path became certain from s0 to s1, on the segment that the step began on.
    slope : Tensor
        Time derivative of the rate; nan where the bound does not ask for it.
    potential : Tensor
        U at the evaluated point.
    failed : Tensor, bool
        The chain met a value that is not finite in this step.
    """

    kind: Tensor
    t: Tensor
    rate: Tensor
    height: Tensor
    uniform: Tensor
    ratio: Tensor
    violated: Tensor
    s0: Tensor
    s1: Tensor
    slope: Tensor
    potential: Tensor
    failed: Tensor


class _PreDrawn(NamedTuple):
    """What is drawn before a step: fresh velocities (chains, dim), None where nobody is refreshed, and the batch."""

    velocity: Tensor | None
    batch: Any


class _Text(Text):
    def rows(self, state: Any) -> list[list[str]]:
        return self.sampler.rows(state)

    def warning(self, figures: dict[str, float]) -> tuple[str, list[dict[str, Any]]]:
        return self.sampler.warning(figures)


class PDMP(Sampler):
    """Base of the piecewise deterministic samplers: settings of event times, and the lock-step.

    Attributes
    ----------
    curved : bool
        Whether the path between two events is a curve.
    widest_cell : float
        Longest cell of the grid bound, in path time.
    late_events : str
        What events that come too late do to the posterior, as the end of a sentence.
    """

    emits = frozenset({"events", "envelope", "path", "ratios"})
    text = _Text
    curved: ClassVar[bool] = False
    # A process that meets no rate at all would double its cells for ever.
    widest_cell: ClassVar[float] = 1e3
    late_events: ClassVar[str] = "the posterior comes out too wide"

    refresh_rate = settings.Number(
        1.0,
        bounds=(0.0, 20.0),
        step=0.05,
        unit="1/time",
        live=True,
        doc="Refreshments of the velocity per unit of path time; without them a chain can stay on an orbit for ever.",
    )
    bound = settings.Choice(
        "grid",
        objects=["grid", "interpolated", "exact"],
        live=True,
        doc="The envelope that event times are thinned under. grid: lines from rates and derivatives, raised when they"
        " fail, right to within Monte Carlo error. interpolated: the papers' line through the last two"
        " points, cheaper, no bound in the strict sense. exact: without an approximation, on a Gaussian target only.",
    )
    alpha = settings.Number(
        1.2,
        bounds=(0.5, 5.0),
        step=0.05,
        live=True,
        when=_INTERPOLATED,
        doc="Factor on the envelope (the papers: 1).",
    )
    horizon = settings.Number(
        None,
        bounds=(1e-4, 1000.0),
        scale="log",
        unit="time",
        live=True,
        when=_INTERPOLATED,
        allow_None=True,
        doc="Longest time between two evaluations of the rate; empty: 0.3 of the mean time between events.",
    )
    t_init = settings.Number(
        1.0,
        bounds=(1e-4, 100.0),
        scale="log",
        unit="time",
        live=True,
        when=_INTERPOLATED,
        doc="Second point of the first line after an event; never beyond the horizon.",
    )
    reject_above = settings.Number(
        None,
        bounds=(1.0, 100.0),
        live=True,
        when=_INTERPOLATED,
        allow_None=True,
        label="Reject above (R)",
        empty="none",
        doc="Reject proposals whose rate exceeds the envelope by more than this factor (the paper: 2), which throws the"
        " worst violations away and hides them; empty: accept them.",
    )
    clip_points = settings.Boolean(
        False,
        live=True,
        when=_INTERPOLATED,
        doc="Clip the points at zero before drawing the line, as eq. 12 reads literally, instead of the line.",
    )
    margin = settings.Number(
        0.1,
        bounds=(0.0, 5.0),
        step=0.05,
        live=True,
        when=_GRID,
        doc="Share of the rate's departure from a straight line within a cell that is added to its bound.",
    )
    batch_size = settings.Integer(
        None,
        bounds=(1, 1_000_000),
        scale="log",
        live=True,
        allow_None=True,
        label="Mini-batch",
        unit="rows",
        empty="all rows",
        doc="Data rows that an evaluation of the rate reads, drawn at random, weighted to stand for all of them; empty:"
        " all rows.",
    )
    batch = settings.Choice(
        "proposal",
        objects=["proposal", "event"],
        live=True,
        when=_BATCHES,
        label="New batch at every",
        doc="proposal: a fresh batch for every evaluation, which is right under an envelope that bounds the rates of"
        " all batches; rates above it are counted. event: one batch is held from an event to the next, as in the paper:"
        " it becomes part of the state, and the posterior comes out too wide.",
    )
    control_variates = settings.Boolean(
        False,
        when=_BATCHES,
        doc="Take from each batch what it says at the mode, and add what all rows say there: the gradients vary less"
        " near the mode, and more far from it; a gradient costs two.",
    )
    samples = settings.Choice(
        "path",
        objects=["path", "events"],
        live=True,
        doc="Where draws are taken. path: uniformly in time along the exact path. events: at bounces and refreshments"
        " (the papers), which favours places where events are frequent, and is biased.",
    )
    spacing = settings.Number(
        None,
        bounds=(1e-4, 1000.0),
        scale="log",
        unit="time",
        allow_None=True,
        doc="Path time between two draws; empty: twice the mean time between events, found in the warm-up.",
    )
    start = settings.Choice(
        "auto",
        objects=["auto", "mode", "random"],
        doc="Where chains start. mode: each at the end of its own descent by Adam. auto: mode for networks, random"
        " points for densities.",
    )
    mode_steps = settings.Integer(3000, bounds=(1, 100_000), doc="Steps of Adam on the way to a mode.")

    presets = [
        {
            "name": "exact",
            "title": "Right (grid bound)",
            "doc": "The default.",
            "settings": {"bound": "grid"},
        },
        {
            "name": "paper",
            "title": "As in the paper",
            "doc": "Algorithm 2 with alpha 1 and R 2, the line through signed rates, no horizon, draws at events.",
            "settings": {
                "bound": "interpolated",
                "alpha": 1.0,
                "reject_above": 2.0,
                "horizon": 1000.0,
                "clip_points": False,
                "samples": "events",
            },
        },
        {
            "name": "literal",
            "title": "As eq. 12 reads literally",
            "doc": "Points clipped at zero before the line is drawn: after a bounce the envelope is zero for a long"
            " stretch, and the posterior comes out many times too wide.",
            "settings": {
                "bound": "interpolated",
                "alpha": 1.0,
                "reject_above": 2.0,
                "horizon": 1000.0,
                "clip_points": True,
                "samples": "events",
            },
        },
    ]

    @property
    def needs_mode(self) -> bool:
        """Whether a mode has to be found before the chains set out."""
        return self.control_variates

    def speed(self, x: Tensor, v: Tensor) -> Tensor:
        """Return the speed (chains,) of the path from (x, v), which the spread of rates is in proportion to."""
        return torch.linalg.vector_norm(v, dim=-1)

    def flow(self, x: Tensor, v: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """Return position and velocity a time t (chains,) after (x, v)."""
        raise NotImplementedError

    def integrals(self, x: Tensor, v: Tensor, s0: Tensor, s1: Tensor) -> tuple[Tensor, Tensor]:
        """Return the integrals (n, dim) of the position and of its square, from s0 to s1 (n,) after (x, v)."""
        return integrals_of_line(x, v, s0, s1)

    def integrates(self, chains: int, dim: int) -> bool:
        """Return whether the path is integrated: where that does not slow the sampler down."""
        return chains * dim <= _PATH_NUMBERS

    def planar_flow(self, project: Callable[[Tensor], np.ndarray]) -> PlanarFlow:
        """Return the flow of what ``project`` (points to a plane, affine) has projected: straight, by default.

        Drawing a path needs no more than this, whatever the dimension. It is of arrays that fit together: positions
        and velocities (..., 2), times (..., 1).
        """
        return lambda x, v, t: (x + v * t, v)

    def rate(self, x: Tensor, v: Tensor, g: Tensor) -> Tensor:
        """Return the signed rate (chains,) at (x, v) from the gradient of U."""
        raise NotImplementedError

    def rate_slope(self, x: Tensor, v: Tensor, g: Tensor, curvature: Tensor) -> Tensor:
        """Return the time derivative of the signed rate from the gradient of U and v' H v."""
        raise NotImplementedError

    def reflect(self, rng: RandomNumbers, x: Tensor, v: Tensor, g: Tensor) -> Tensor:
        """Return the velocity after a bounce."""
        raise NotImplementedError

    def rate_after(self, x: Tensor, v: Tensor, g: Tensor, f: Tensor) -> Tensor:
        """Return the signed rate right after a bounce to v, from the rate f before it."""
        return -f

    def exact_lines(self, centre: Tensor, precision: Tensor) -> tuple[Lines, bool]:
        """Return the terms of the rate on a Gaussian target, and whether their sum is the rate (`exact_bound`)."""
        raise NotImplementedError

    def mean_rate(self, x: Tensor, g: Tensor) -> Tensor:
        """Return the rate (n,) at x, averaged over the velocity's law, from the gradient of U."""
        raise NotImplementedError

    @property
    def weighs(self) -> bool:
        """Whether draws are taken at events of a rate that is known: with batches it is not."""
        return self.samples == "events" and self.batch_size is None

    def event_weights(self, x: Tensor, draw_collector: Any = None) -> Tensor:
        """Return weights (n,), of sum 1, that undo the bias of draws x (n, dim) at events.

        Bounces and refreshments together follow pi(x) (refresh rate + mean rate at x), so that the reciprocal restores
        pi; with the full data and no violations (SCIENCE, "where samples are taken").
        """
        g = torch.cat([self.target.gradient(part)[1] for part in torch.split(x, _ROWS)])
        # Without refreshments there are no events where the gradient is zero, but rounding may put a draw there.
        weights = 1 / (self.refresh_rate + self.mean_rate(x, g)).double().clamp_min(1e-12)
        return weights / weights.sum()

    def draw_velocity(self, rng: RandomNumbers, like: Tensor) -> Tensor:
        """Draw fresh velocities shaped like ``like`` from their invariant law."""
        raise NotImplementedError

    def check(self, target: Target) -> None:
        """Raise where the bound or the batches do not fit the target."""
        if self.bound == "exact" and target.quadratic() is None:
            raise BnnvizError(
                'bound = "exact" needs a Gaussian target, whose event times have a closed form; use "grid".', "bound"
            )
        refuse_without_rows(target, self.batch_size)
        if self.batch_size is not None and self.bound == "exact":
            raise BnnvizError('bound = "exact" is exact with all rows alone; use "grid" with batches.', "bound")

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target and build the bound."""
        self.tuning = True
        self._sums: PathSums | None = None
        super().prepare(target, mode)

    def set_mode(self, anchor: Tensor | None) -> None:
        """Take control variates, where they are wanted, at a point (dim,), and build what depends on the batches."""
        self._anchor = anchor if self.control_variates else None
        self.source = FullData(self.target)
        if self.batch_size is not None:
            self.source = MiniBatch(self.target, self.batch_size, self.batch == "event", self._anchor)
        self._thinner = self._make_bound()

    def _make_bound(self) -> thinning.Interpolated | thinning.Grid | NoisyGrid | Exact:
        if self.bound == "grid":
            grid = thinning.Grid(self.margin, self.widest_cell)
            return NoisyGrid(grid, self.speed) if self.source.noisy else grid
        if self.bound == "exact":
            return Exact(*self.exact_lines(*self.target.quadratic()))
        reject_above = float("inf") if self.reject_above is None else self.reject_above
        return thinning.Interpolated(self.alpha, self.t_init, reject_above, self.clip_points)

    @property
    def gradients_per_step(self) -> int:
        """Gradients of single rows that a step is charged for; the derivative of the rate costs about a second one."""
        second = min(self.batch_size or self.target.examples, self.target.examples)
        return self.source.examples + (second if self._thinner.needs_curvature else 0)

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the state at path time zero, velocities drawn from their invariant law."""
        chains = x0.shape[0]
        zero = torch.zeros(chains, dtype=torch.float64, device=x0.device)
        v = self.draw_velocity(rng, x0)
        refresh = self._refresh_times(rng, zero)
        pace = self._guessed_pace(x0, v)
        alive = torch.ones(chains, dtype=torch.bool, device=x0.device)
        return self._restarted(rng, x0, v, zero, refresh, pace, zero, alive)

    def _guessed_pace(self, x: Tensor, v: Tensor) -> Tensor:
        """Return a time (chains,) in which about one event is due, at the rate met here or, at a mode, not far away."""
        _, g, curvature = self.target.gradient_and_curvature(x, v)
        near, far = self.rate(x, v, g).double().abs().mean(), curvature.double().abs().mean().sqrt()
        return (1 / (self.refresh_rate + near + far + 1e-3)).expand(len(x))

    def _restarted(
        self,
        rng: RandomNumbers,
        x: Tensor,
        v: Tensor,
        clock: Tensor,
        refresh: Tensor,
        pace: Tensor,
        gaps: Tensor,
        alive: Tensor,
    ) -> State:
        """Return a state whose next evaluation is at its own point: the envelope knows nothing yet."""
        zero = torch.zeros_like(clock)
        nowhere = Piece(zero, zero, zero)
        horizon = self._horizon(pace)
        bound = self._thinner.start(x, v, zero, zero, alive & False, None, horizon)
        kind = torch.full_like(zero, START, dtype=torch.int8)
        batch = self.source.hold(len(x), rng)
        return State(x, v, clock, zero, refresh, pace, gaps, zero, kind, nowhere, nowhere, bound, alive, batch)

    def resume(self, rng: RandomNumbers, state: State, moved: bool = False) -> State:
        """Return the state with its envelope forgotten, for settings that changed while it ran.

        With ``moved`` the law of the velocities may be another one too, so they are drawn anew.
        """
        x, v = self.flow(state.x, state.v, state.s)
        v = self.draw_velocity(rng, v) if moved else v
        refresh = self._refresh_times(rng, state.clock)
        clock = state.clock + state.s
        return self._restarted(rng, x, v, clock, refresh, state.pace, state.gaps, state.alive)

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the state of chains that set out anew from x (chains, dim), with fresh velocities."""
        return self.resume(rng, state._replace(x=x, s=torch.zeros_like(state.s)), moved=True)

    def adopt(self, other: PDMP) -> None:
        """Take over what another instance of the class has learnt and bound; the settings stay one's own."""
        self.prepare(other.target, None)
        PDMP.set_mode(self, other._anchor)
        self.tuning, self._sums = other.tuning, other._sums

    def save(self, state: State) -> dict[str, Any]:
        """Return the state as nested lists of tensors, whether the tuning goes on, and what it learns from."""
        sums = None if self._sums is None else self._sums.save()
        return {"state": _pack(state), "tuning": self.tuning, "sums": sums, "anchor": self._anchor}

    def load(self, saved: dict[str, Any], rng: RandomNumbers) -> State:
        """Return the saved state."""
        self.tuning = saved["tuning"]
        if saved["anchor"] is not None:
            PDMP.set_mode(self, saved["anchor"].to(self.target.device))
        self._sums = None if saved["sums"] is None else PathSums.restored(saved["sums"], self.target.device)
        flat = saved["state"]
        x, clock = flat[0].to(self.target.device), flat[2].to(self.target.device)
        return _unpack(self._restarted(rng, x, x, clock, clock, clock, clock, clock > 0), flat)

    def _horizon(self, pace: Tensor) -> Tensor:
        if self.bound in _SHARES:
            return pace * _SHARES[self.bound]
        return pace * _HORIZON_SHARE if self.horizon is None else torch.full_like(pace, self.horizon)

    def _refresh_times(self, rng: RandomNumbers, like: Tensor) -> Tensor:
        if self.refresh_rate == 0:
            return torch.full_like(like, torch.inf)
        return rng.exponential(like.shape, like.dtype) / self.refresh_rate

    def pre_draw(self, rng: RandomNumbers, state: State) -> _PreDrawn:
        """Draw what depends on which chains need it: the velocities of those that are refreshed, and the batch."""
        return _PreDrawn(self._fresh_velocities(rng, state), self.source.draw(state.batch, len(state.x), rng))

    def kernel(self, rng: RandomNumbers, state: State, pre_drawn: _PreDrawn) -> tuple[State, Info]:
        """Evaluate the rate of every chain once, at its planned time, and plan the next evaluation."""
        x, v = self.flow(state.x, state.v, state.t)
        if pre_drawn.velocity is not None:
            v = torch.where((state.kind == REFRESH)[:, None], pre_drawn.velocity, v)
        potential, g, curvature = self._evaluate(self.source.of(pre_drawn.batch), x, v)
        f = self.rate(x, v, g).double()
        slope = f if curvature is None else self.rate_slope(x, v, g, curvature).double()
        finite = torch.isfinite(potential) & torch.isfinite(f) & torch.isfinite(slope)
        f, finite = torch.where(finite, f, torch.nan), self._bearable(state, finite)
        verdict = self._judge(rng, state, f)
        failed = state.alive & ~finite
        alive = state.alive & finite
        new = self._move(rng, state, x, v, g, f, slope, verdict, alive)
        end = torch.where(verdict.event, state.t, new.s)
        end = torch.where(alive, end, state.s)
        info = Info(
            verdict.kind,
            state.t,
            f,
            verdict.height,
            verdict.uniform,
            verdict.ratio,
            verdict.violated,
            state.s,
            end,
            torch.full_like(f, torch.nan) if curvature is None else slope,
            potential,
            failed,
        )
        if self.tuning:
            self._observe(state, info)
        return new, info

    def _bearable(self, state: State, finite: Tensor) -> Tensor:
        """Return where a chain can go on: a look ahead may meet what the path itself need not."""
        if not self._thinner.retreats:
            return finite
        return finite | ((state.kind == PROBE) & (state.t - state.s > _NEAREST * state.pace))

    def _fresh_velocities(self, rng: RandomNumbers, state: State) -> Tensor | None:
        """Return new velocities (chains, dim) for the chains that are refreshed, or None where there are none."""
        if not self.host_sync:
            return self.draw_velocity(rng, state.v)
        chains = (state.kind == REFRESH).nonzero()[:, 0]
        if not len(chains):
            return None
        return torch.zeros_like(state.v).index_copy(0, chains, self.draw_velocity(rng, state.v[chains]))

    def _evaluate(self, source: Any, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        if self._thinner.needs_curvature:
            return source.gradient_and_curvature(x, v)
        return *source.gradient(x), None

    def _judge(self, rng: RandomNumbers, state: State, f: Tensor) -> _Verdict:
        """Accept or reject the proposals."""
        proposal = state.kind == PROPOSAL
        height = state.piece.at(state.t)
        uniform = rng.uniform(f.shape, f.dtype)
        ratio = proposal.to(f.dtype) if self._thinner.certain else torch.where(proposal & (f > 0), f / height, 0.0)
        violated = proposal & (ratio > 1)
        accepted = proposal & (uniform <= ratio) & (ratio <= self._thinner.reject_above)
        if self._thinner.redraws:
            accepted = accepted & ~violated
        kind = torch.where(accepted, torch.full_like(state.kind, BOUNCE), state.kind)
        event = accepted | (state.kind == REFRESH)
        return _Verdict(kind, height, uniform, ratio, violated, accepted, event)

    def _move(
        self,
        rng: RandomNumbers,
        state: State,
        x: Tensor,
        v: Tensor,
        g: Tensor,
        f: Tensor,
        slope: Tensor,
        verdict: _Verdict,
        alive: Tensor,
    ) -> State:
        """Return the state after the verdict, with the next evaluation planned."""
        accepted, event = verdict.accepted, verdict.event
        bounced = torch.where(accepted[:, None], self.reflect(rng, x, v, g), v)
        fresh = event | (state.kind == START)
        f_new = torch.where(accepted, self.rate_after(x, bounced, g, f), f)
        horizon = self._horizon(state.pace)
        learnt = self._thinner.learn(state.bound, verdict.kind, state.t, f, slope, verdict.violated)
        begun = self._thinner.start(x, bounced, f_new, slope, ~accepted, learnt, horizon)
        bound = _choose(fresh, begun, learnt)
        s = self._certain(state, verdict, fresh)
        refresh = torch.where(event, state.refresh - state.t, state.refresh)
        refresh = torch.where(state.kind == REFRESH, self._refresh_times(rng, refresh), refresh)
        bound, plan = self._thinner.plan(bound, s, lambda like: rng.exponential(like.shape, like.dtype), horizon)
        # A refreshment cuts in before the planned evaluation, or before the path passes beyond it.
        early = (refresh < plan.s) | ((plan.kind != PROBE) & (refresh <= plan.t))
        pace, gaps = self._paced(state, event)
        moved = State(
            torch.where(event[:, None], x, state.x),
            torch.where(event[:, None], bounced, state.v),
            torch.where(event, state.clock + state.t, state.clock),
            torch.where(early, torch.minimum(plan.s, refresh), plan.s),
            refresh,
            pace,
            gaps,
            torch.where(early, refresh, plan.t),
            torch.where(early, REFRESH, plan.kind).to(torch.int8),
            plan.piece,
            plan.skipped,
            bound,
            alive,
            state.batch,
        )
        if self.source.held:
            moved = self._rebatched(rng, moved, event)
        # Nearly always all chains are alive.
        if self.host_sync and bool(alive.all()):
            return moved
        return _choose(alive, moved, state._replace(alive=alive))

    def _rebatched(self, rng: RandomNumbers, state: State, event: Tensor) -> State:
        """Give a new batch to chains that have just had an event; their rate is evaluated anew with it."""
        zero = torch.zeros_like(state.t)
        return state._replace(
            batch=_choose(event, self.source.hold(len(event), rng), state.batch),
            t=torch.where(event, zero, state.t),
            s=torch.where(event, zero, state.s),
            kind=torch.where(event, torch.full_like(state.kind, START), state.kind),
        )

    def _certain(self, state: State, verdict: _Verdict, fresh: Tensor) -> Tensor:
        """Return the time up to which the path is certain after the verdict, before the next plan."""
        passed = (state.kind == PROPOSAL) | (state.kind == HORIZON)
        if self._thinner.redraws:
            passed = passed & ~verdict.violated
        s = torch.where(passed, state.t, state.s)
        return torch.where(fresh, torch.zeros_like(s), s)

    def _paced(self, state: State, event: Tensor) -> tuple[Tensor, Tensor]:
        if not self.tuning:
            return state.pace, state.gaps
        gaps = torch.where(event, (state.gaps + 1).clamp_max(50), state.gaps)
        pace = torch.where(event, state.pace + (state.t - state.pace) / gaps.clamp_min(1), state.pace)
        # After a first gap near zero a chain would creep: a gap that is still open is a gap of at least its length.
        pace = torch.where(event, pace, torch.maximum(pace, state.s / 2))
        return pace, gaps

    @property
    def learning(self) -> bool:
        """Whether the tuning has still something to learn from the path, before the pace of events."""
        return False

    def _observe(self, before: State, info: Info) -> None:
        """Add the stretch of path that became certain to what is learnt from."""
        if not self.learning:
            return
        if self._sums is None:
            self._sums = PathSums(before.x)
        self._sums.add(self.integrals, before, info)

    def settled(self, state: State) -> bool:
        """Return whether the chains have seen enough events for a pace."""
        return bool(state.gaps.mean() >= _TUNING_EVENTS)

    def is_tuned(self, state: State) -> bool:
        """Return whether the tuning has seen enough."""
        return not self.learning and self.settled(state)

    def end_window(self, rng: RandomNumbers, state: State, last: bool) -> State:
        """End the tuning once the chains have a pace; one that has seen little takes that of the others."""
        if not (self.settled(state) or last) or not bool(state.gaps.any()):
            return state
        pooled = (state.gaps * state.pace).sum() / state.gaps.sum()
        pace = (state.gaps * state.pace + _POOLED_GAPS * pooled) / (state.gaps + _POOLED_GAPS)
        return state._replace(pace=pace)

    def freeze(self, rng: RandomNumbers, state: State) -> State:
        """End the tuning."""
        self.tuning = False
        return state

    def draw_collector(self, rng: RandomNumbers, state: State) -> PathDrawCollector | EventDrawCollector:
        """Draw from this state on."""
        if self.samples == "events":
            return EventDrawCollector(self, state)
        spacing = 2 * float(state.pace[state.alive].mean()) if self.spacing is None else self.spacing
        return PathDrawCollector(self, state, spacing)

    def sampler_stats(self) -> RatioStats:
        """Return counters at zero."""
        return RatioStats()

    def events_in(self, step_batch: StepBatch) -> Tensor:
        """Return how many bounces and refreshments each chain had in a block (chains,)."""
        kind = step_batch.column("kind")
        return ((kind == BOUNCE) | (kind == REFRESH)).sum(0)

    def chain_trace(self) -> PathTrace:
        """Return a trace that has seen nothing."""
        return PathTrace(self)

    def rows(self, state: State) -> list[list[str]]:
        """Return figures of its own on the chains."""
        return []

    def warning(self, figures: dict[str, float]) -> tuple[str, list[dict[str, Any]]]:
        """Say in a sentence what is known to be wrong with these settings, and how to mend it."""
        remedies, sentences = [], []
        if figures["proposals"] > 200 and figures["excess"] > 0.002 and self.bound == "interpolated":
            sentences.append(
                f"{100 * figures['violation_share']:.0f} % of the proposals violate the envelope (mean excess"
                f" {figures['excess']:.3f}): {self._lateness(figures['excess'])}."
            )
            remedies.append({"label": "Use the grid bound", "settings": {"bound": "grid"}})
            if self.horizon is not None and figures["excess"] >= _SMALL_EXCESS:
                shorter = {"horizon": None, "clip_points": False}
                remedies.append({"label": "Shorten the horizon", "settings": shorter})
        if self.source.held:
            sentences.append(
                "A batch that is held from one event to the next becomes part of the state: the posterior comes out too"
                " wide."
            )
            remedies.append({"label": "A fresh batch at every proposal", "settings": {"batch": "proposal"}})
        if self.samples == "events":
            sentences.append("Draws at events favour places where events are frequent: they are biased.")
            remedies.append({"label": "Draw along the path", "settings": {"samples": "path"}})
        return " ".join(sentences), remedies

    def _lateness(self, excess: float) -> str:
        if excess < _SMALL_EXCESS:
            return "by so little that the bias is small"
        return f"events come too late, and {self.late_events}"


def integrals_of_line(x: Tensor, v: Tensor, s0: Tensor, s1: Tensor) -> tuple[Tensor, Tensor]:
    """Return the integrals of x + v s and of its square from s0 to s1 (n,), both (n, dim) in float64."""
    x, v, span = x.double(), v.double(), (s1 - s0)[:, None]
    a, b = x + v * s0[:, None], x + v * s1[:, None]
    return span * (a + b) / 2, span * (a * a + a * b + b * b) / 3


class _Verdict(NamedTuple):
    kind: Tensor
    height: Tensor
    uniform: Tensor
    ratio: Tensor
    violated: Tensor
    accepted: Tensor
    event: Tensor


def _pack(value: Any) -> Any:
    return value if isinstance(value, Tensor) else [_pack(part) for part in value]


def _unpack(template: Any, packed: Any) -> Any:
    if isinstance(template, Tensor):
        return packed.to(template.device)
    return type(template)(*(_unpack(a, b) for a, b in zip(template, packed, strict=True)))


def _choose(mask: Tensor, yes: Any, no: Any) -> Any:
    """Choose between two tuples of tensors chain by chain."""
    if isinstance(yes, Tensor):
        return torch.where(mask if yes.ndim == 1 else mask[:, None], yes, no)
    return type(yes)(*(_choose(mask, a, b) for a, b in zip(yes, no, strict=True)))


def refuse_without_prior(target: Target) -> None:
    """Raise for a target whose potential has no prior of its own to be replaced."""
    if target.prior_precision is None:
        raise BnnvizError(
            'reference="prior" puts the reference in the place of the prior, and this target has none;'
            ' use reference="exact".',
            "reference",
        )
