"""Follows one chain of a piecewise deterministic process, and says what it did."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, pairwise, takewhile
from math import isfinite, isnan
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz.errors import BnnvizError
from bnnviz.samplers.observers import LATELY, Projection, StepBatch
from bnnviz.samplers.pdmp.thinning import BOUNCE, HORIZON, PROBE, REFRESH, REJECTED, START, VIOLATION

_EVENTS = 150
_SEGMENTS = 120
_CURVED_SEGMENTS = 60
_CURVE_POINTS = 8
_RATE_POINTS = 48
_FEW_KNOTS = 2  # through which no curve is drawn
_QUICK_POINTS = 24  # where the rate has to be evaluated, and the picture is there for an instant
_MOST_WORK = 200_000  # rows x dimensions up to which the rate is computed at all these points for every frame
_JUMP = 1e-6  # of a distance: rounding alone changes less
_MOST_EVALUATIONS = 200
# Positions kept for drawing, in numbers: 32 MB.
_KEPT_NUMBERS = 8_000_000

_FIELDS = ("kind", "t", "rate", "height", "uniform", "violated", "s0", "s1", "slope")
_WORDS = {
    PROBE: "probe",
    REJECTED: "rejected",
    BOUNCE: "bounce",
    REFRESH: "refresh",
    HORIZON: "horizon",
    VIOLATION: "violation",
    START: "phase",
}


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of the watched chain's rate."""

    step: int
    kind: int
    t: float
    rate: float
    height: float
    uniform: float
    violated: bool

    @property
    def proposal(self) -> bool:
        """Whether it was a proposal, accepted or not."""
        return self.kind in (REJECTED, BOUNCE)

    @property
    def looked(self) -> bool:
        """Whether it was a look ahead that found a rate."""
        return self.kind in (PROBE, HORIZON, START) and isfinite(self.rate)

    @property
    def shown_kind(self) -> int:
        """The kind that views mark: a violation is one whether it was accepted or not."""
        return VIOLATION if self.violated else self.kind


@dataclass
class Segment:
    """The path between two events, and what was evaluated along it."""

    number: int
    x: Tensor
    v: Tensor
    source: Any  # of the derivatives along it
    evaluations: list[Evaluation] = field(default_factory=list)
    pieces: list[tuple[float, float, float, float]] = field(default_factory=list)
    duration: float = 0.0
    kind: int | None = None
    step: int = 0
    # Where the rate is known: time, rate, slope (nan if unknown).
    knots: list[tuple[float, float, float]] = field(default_factory=list)

    def note(self, evaluation: Evaluation) -> None:
        """Add an evaluation; a look ahead over many empty cells forgets the oldest."""
        self.evaluations.append(evaluation)
        del self.evaluations[:-_MOST_EVALUATIONS], self.knots[:-_MOST_EVALUATIONS]

    def cover(self, t0: float, t1: float, slope: float, height: float) -> None:
        """Add the envelope max(0, slope t + height) over [t0, t1] as straight pieces."""
        self.pieces += clipped_line(t0, t1, slope, height)
        del self.pieces[:-400]


def clipped_line(t0: float, t1: float, slope: float, height: float) -> list[tuple[float, float, float, float]]:
    """Return max(0, slope t + height) over [t0, t1] as straight pieces (t0, t1, h0, h1)."""
    if not t1 > t0 or not np.isfinite(slope) or not np.isfinite(height):
        return []
    h0, h1 = slope * t0 + height, slope * t1 + height
    if h0 >= 0 and h1 >= 0 or h0 <= 0 and h1 <= 0:
        return [(t0, t1, max(h0, 0.0), max(h1, 0.0))]
    zero = -height / slope
    return [(t0, zero, max(h0, 0.0), 0.0), (zero, t1, 0.0, max(h1, 0.0))]


class _Projection:
    """Onto a plane: points (n, dim) of the sampler's device to (n, 2) on the CPU, in float64."""

    def __init__(self, plane: Projection, device: torch.device) -> None:
        self._axes = torch.as_tensor(plane.axes, device=device)
        self.offset = plane.centre @ plane.axes

    def linear(self, vectors: Tensor) -> np.ndarray:
        """Project vectors, which have no origin."""
        return (vectors.double() @ self._axes).cpu().numpy()

    def __call__(self, points: Tensor) -> np.ndarray:
        """Project points."""
        return self.linear(points) - self.offset


class _Trail:
    """The segments that have ended, as they are drawn in one plane: each is projected once.

    Its arrays are replaced and never changed, so that frames may hold them.

    Parameters
    ----------
    joined : bool
        Whether a segment begins where the one before it ended, whose last point then is its first.
    """

    def __init__(self, joined: bool) -> None:
        self.joined = joined
        self._forget()

    def _forget(self) -> None:
        self._last: Segment | None = None
        self._lengths: deque[int] = deque()
        self.points, self.corners = np.empty((0, 2)), np.empty((0, 2))
        self.kinds, self.steps = np.empty(0, dtype=np.int8), np.empty(0, dtype=np.int64)

    def missing(self, segments: list[Segment]) -> list[Segment]:
        """Return those of the segments that are to be drawn, in order, which are not drawn yet."""
        new = list(takewhile(lambda segment: segment is not self._last, reversed(segments)))[::-1]
        if len(new) == len(segments):
            self._forget()
        return new

    def add(self, segments: list[Segment], pieces: Sequence[np.ndarray], most: int) -> None:
        """Add the points of segments; of all, as many stay as are to be drawn."""
        if segments:
            self._last = segments[-1]
            self.points = self.followed_by(pieces)
            self._lengths.extend(len(piece) - self.joined for piece in pieces)
            self.corners = np.concatenate([self.corners, [piece[-1] for piece in pieces]])
            self.kinds = np.append(self.kinds, np.array([s.kind for s in segments], dtype=np.int8))
            self.steps = np.append(self.steps, np.array([s.step for s in segments], dtype=np.int64))
        surplus = len(self._lengths) - most
        if surplus > 0:
            self.points = self.points[sum(self._lengths.popleft() for _ in range(surplus)) :]
            self.corners, self.kinds, self.steps = (each[surplus:] for each in (self.corners, self.kinds, self.steps))

    def followed_by(self, pieces: Sequence[np.ndarray]) -> np.ndarray:
        """Return its points and those of pieces after them."""
        if self.joined and not self._lengths:
            return np.concatenate([pieces[0], *(piece[1:] for piece in pieces[1:])])
        return np.concatenate([self.points, *(piece[1:] if self.joined else piece for piece in pieces)])


class PathTrace:
    """Follows one chain: its segments, its events, its evaluations, and the envelopes they were judged by."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler
        self.count = 0
        self._plane: tuple[tuple[str, int], _Projection] | None = None
        self._drawn: tuple[tuple[str, int], _Trail] | None = None
        self._seen = 0  # segments that had ended when somebody last looked
        self.now: Segment | None = None
        self.past: deque[Segment] | None = None
        self.state: Any = None
        self.last: Evaluation | None = None
        self.lately: deque[tuple[int, int]] = deque(maxlen=LATELY)

    def begin(self, state: Any, chain: int) -> None:
        """Stand where the watched chain is, before its first step."""
        self.now = self._segment(state, chain, [])
        self.past = deque(maxlen=max(2, min(_SEGMENTS, _KEPT_NUMBERS // (2 * len(state.x[chain])))))
        self.state = (state, chain)

    def record(self, step_batch: StepBatch, chain: int) -> None:
        """Note what the watched chain did in a block."""
        columns = [step_batch.column(name)[:, chain].tolist() for name in _FIELDS]
        pieces = [_columns(step_batch.before, chain, name) for name in ("piece", "skipped")]
        if self.now is None:
            self.begin(step_batch.before[0], chain)
        states = [*step_batch.before[1:], step_batch.after]
        for k, (kind, t, rate, height, uniform, violated, s0, s1, slope) in enumerate(zip(*columns, strict=True)):
            evaluation = Evaluation(step_batch.first_step + k, int(kind), t, rate, height, uniform, bool(violated))
            self._note(evaluation, slope, s0, s1, pieces[0][k], chain, states[k])
        self.state = (step_batch.after, chain)

    def _note(
        self,
        evaluation: Evaluation,
        slope: float,
        s0: float,
        s1: float,
        piece: tuple[float, float],
        chain: int,
        after: Any,
    ) -> None:
        segment, reached = self.now, min(s1, evaluation.t)
        # A refreshment is evaluated with the new velocity: what it says of the rate is the next segment's.
        if evaluation.kind != REFRESH and np.isfinite(evaluation.rate):
            segment.knots.append((evaluation.t, evaluation.rate, slope))
        segment.note(evaluation)
        segment.cover(s0, reached, *piece)
        segment.duration = s1
        self.last = evaluation
        if evaluation.kind in (BOUNCE, REFRESH):
            segment.kind, segment.step, segment.duration = (
                evaluation.shown_kind,
                evaluation.step,
                evaluation.t,
            )
            self.past.append(segment)
            self.lately.append((segment.step, segment.kind))
            self.count += 1
            first = (0.0, evaluation.rate, slope) if evaluation.kind == REFRESH else (0.0, -evaluation.rate, np.nan)
            # A chain that holds a batch has another one now, and evaluates its rate anew.
            self.now = self._segment(after, chain, [] if self.sampler.source.held else [first])
        elif s1 > reached:
            skipped = (float(after.skipped.slope[chain]), float(after.skipped.height[chain]))
            segment.cover(max(s0, reached), s1, *skipped)

    def _segment(self, state: Any, chain: int, knots: list[tuple[float, float, float]]) -> Segment:
        source = self.sampler.source.seen_by(state.batch, chain)
        return Segment(self.count, state.x[chain], state.v[chain], source, knots=knots)

    def part(self, name: str, plane: Projection, playing: bool) -> dict[str, Any]:
        """Return one part of a frame: events, envelope, path or caption."""
        if self.now is None:
            return {}
        if name == "envelope":
            return self._envelope(playing)
        return {"events": self._events, "caption": self._caption}[name]() if name != "path" else self._path(plane)

    def event(self, step: int) -> tuple[int, str, Tensor]:
        """Return step, a few words and the position (dim,) of an event that is still remembered.

        Raises
        ------
        BnnvizError
            If there is none at that step.
        """
        segment = next((s for s in self.past or () if s.step == step), None)
        if segment is None:
            raise BnnvizError("That event is no longer remembered; pick a newer one.", "event")
        return step, f"event {segment.number + 1:,}: {_WORDS[segment.kind]}", self._at_end(segment)[0]

    def _events(self) -> dict[str, np.ndarray]:
        recent = list(self.past)[-_EVENTS:]
        return {
            "step": np.array([segment.step for segment in recent], dtype=np.int64),
            "kind": np.array([segment.kind for segment in recent], dtype=np.int8),
        }

    def shown(self, playing: bool) -> Segment:
        """Return the segment of the last evaluation; at speed, one that has ended since the last look.

        Of several the newest is shown whose rate is known in so many places that it needs no gradient to be drawn.
        """
        ended = self.last is not None and self.last.kind in (BOUNCE, REFRESH)
        unseen = self.count - self._seen if playing else 0
        self._seen = self.count
        if not self.past or not (ended or unseen):
            return self.now
        return next((s for s in islice(reversed(self.past), unseen) if len(s.knots) > _FEW_KNOTS), self.past[-1])

    def _envelope(self, playing: bool) -> dict[str, Any]:
        segment = self.shown(playing)
        state, chain = self.state
        ongoing = segment is self.now
        seen = max([segment.duration, *(e.t for e in segment.evaluations if np.isfinite(e.t))], default=0.0)
        refresh = float(state.refresh[chain]) if ongoing else segment.duration if segment.kind == REFRESH else np.nan
        planned = float(state.t[chain]) if ongoing else 0.0
        t_max = 1.15 * max(seen, planned, 1e-6)
        now = self._current_piece(state, chain, t_max) if ongoing else []
        t, rate = self._rate_curve(segment, t_max, playing)
        proposals = np.array(
            [(e.t, max(e.rate, 0.0), e.height, e.uniform, e.shown_kind) for e in segment.evaluations if e.proposal]
        ).reshape(-1, 5)
        looks = np.array([(e.t, e.rate) for e in segment.evaluations if e.looked]).reshape(-1, 2)
        pieces = [height for piece in (*segment.pieces, *now) for height in piece[2:]]
        # A rate that stays below zero still needs an axis to be seen on.
        highest, lowest = (float(rate.max()), float(rate.min())) if rate.size else (0.0, 0.0)
        most = max(*proposals[:, 2].tolist(), *pieces, highest, 0.2 * max(highest, -lowest), 1e-3)
        return {
            "segment": segment.number,
            "t_max": t_max,
            "y_max": most,
            "rate_t": t,
            "rate": rate,
            **_lines("past", segment.pieces),
            **_lines("now", now),
            "proposal_t": proposals[:, 0],
            "proposal_rate": proposals[:, 1],
            "proposal_height": proposals[:, 2],
            "proposal_u": proposals[:, 3],
            "proposal_kind": proposals[:, 4].astype(np.int8),
            "probe_t": looks[:, 0],
            "probe_rate": looks[:, 1],
            "refresh_t": refresh if np.isfinite(refresh) and refresh <= 2 * t_max else np.nan,
            "unit": "1/time",
        }

    def _current_piece(self, state: Any, chain: int, t_max: float) -> list[tuple[float, float, float, float]]:
        end = min(float(state.piece.end[chain]), t_max)
        return clipped_line(
            float(state.s[chain]), end, float(state.piece.slope[chain]), float(state.piece.height[chain])
        )

    def _rate_curve(self, segment: Segment, t_max: float, quick: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the rate along a segment; at speed from what was evaluated there, which costs no gradient.

        Where every evaluation sees another batch it is the rate with all rows, unless that is dear at speed.
        """
        noisy = self.sampler.source.noisy
        if quick and len(segment.knots) > _FEW_KNOTS and not noisy:
            return _through(segment.knots)
        if quick and noisy and self.sampler.target.examples * segment.x.numel() > _MOST_WORK:
            return np.empty(0), np.empty(0)
        points = _QUICK_POINTS if quick else _RATE_POINTS
        t = torch.linspace(0, t_max, points, dtype=torch.float64, device=segment.x.device)
        x, v = self.sampler.flow(segment.x.expand(len(t), -1), segment.v.expand(len(t), -1), t)
        rate = self.sampler.rate(x, v, segment.source.gradient(x)[1])
        return t.cpu().numpy(), rate.double().cpu().numpy()

    def _path(self, plane: Projection) -> dict[str, Any]:
        most = _CURVED_SEGMENTS if self.sampler.curved or plane.canonicalise else _SEGMENTS
        ended, trail = list(self.past)[-most:], self._trail(plane)
        new = trail.missing(ended)
        pieces, heading = self._project([*new, self.now], plane)
        trail.add(new, pieces[:-1], len(ended))
        points = trail.followed_by(pieces[-1:])
        return {
            "plane": {"kind": plane.kind},
            "x_label": plane.labels[0],
            "y_label": plane.labels[1],
            "basis": plane.basis,
            "x": points[:, 0],
            "y": points[:, 1],
            "age": _age(len(points)),
            "event_x": trail.corners[:, 0],
            "event_y": trail.corners[:, 1],
            "event_kind": trail.kinds,
            "event_step": trail.steps,
            "now_x": float(points[-1, 0]),
            "now_y": float(points[-1, 1]),
            "now_dx": heading[0],
            "now_dy": heading[1],
            "contour": None,
        }

    def _trail(self, plane: Projection) -> _Trail:
        key = (plane.kind, plane.basis)
        if self._drawn is None or self._drawn[0] != key:
            # In a phase plane the velocity jumps at an event.
            self._drawn = (key, _Trail(joined=plane.axes is not None))
        return self._drawn[1]

    def _project(self, segments: list[Segment], plane: Projection) -> tuple[Sequence[np.ndarray], tuple[float, float]]:
        """Return the points (1 + points each, 2) of each segment in a plane, and the velocity at the last one's end.

        Where a fold cuts a segment, nan lies between its points.
        """
        each = _CURVE_POINTS if self.sampler.curved or plane.canonicalise else 1
        t = np.array([s.duration for s in segments])[:, None] * (np.arange(each + 1) / each)
        both = torch.stack([s.x for s in segments] + [s.v for s in segments])
        if plane.canonicalise is not None:
            return self._folded(both, t, plane)
        points, velocity = self._phase(both, t) if plane.axes is None else self._planar(both, t, plane)
        # A phase plane moves a path by its velocity.
        heading = (points[-1, -1, 1], 0.0) if plane.axes is None else velocity[-1, -1]
        return points, (float(heading[0]), float(heading[1]))

    def _folded(self, both: Tensor, t: np.ndarray, plane: Projection) -> tuple[list[np.ndarray], tuple[float, float]]:
        """Return the points of segments whose path is folded, cut where it jumps, and where the last one is going."""
        x, v = self._moved(both, t)
        folded = plane.canonicalise(x)
        # A fold moves points alike on each side of a cut, so that only across one they come to lie further apart.
        apart, before = (np.linalg.norm(np.diff(each, axis=0), axis=1) for each in (folded, x))
        jumps = np.append(False, np.abs(apart - before) > _JUMP * (apart + before))
        points, pieces = (folded - plane.centre) @ plane.axes, []
        for piece, cut in zip(np.split(points, len(t)), np.split(jumps, len(t)), strict=True):
            inner = np.flatnonzero(cut[1:]) + 1
            pieces.append(np.insert(piece, inner, np.nan, axis=0))
        across, up = plane.canonicalise(x[-1], vectors=v[-1]) @ plane.axes
        return pieces, (float(across), float(up))

    def _planar(self, both: Tensor, t: np.ndarray, plane: Projection) -> tuple[np.ndarray, np.ndarray]:
        """Return points and velocities (n, 1 + points each, 2) of segments in a plane."""
        project = self._projection(plane)
        # Few points of a plane: in NumPy, on the CPU, they cost a fraction of what as many calls of torch do.
        flat = project.linear(both)[:, None]
        return self.sampler.planar_flow(project)(flat[: len(t)] - project.offset, flat[len(t) :], t[..., None])

    def _projection(self, plane: Projection) -> _Projection:
        key = (plane.kind, plane.basis)
        if self._plane is None or self._plane[0] != key:
            self._plane = (key, _Projection(plane, self.now.x.device))
        return self._plane[1]

    def _phase(self, both: Tensor, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return position against velocity (n, 1 + points each, 2) of a one-dimensional path, and its velocities."""
        x, v = (part.reshape(*t.shape, 1) for part in self._moved(both, t))
        return np.concatenate([x, v], -1), v

    def _moved(self, both: Tensor, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and velocities (times, dim) at times after segments' beginnings, one after another."""
        x, v = (part.repeat_interleave(t.shape[1], 0) for part in both.split(len(t)))
        moved = self.sampler.flow(x, v, torch.from_numpy(t.ravel()).to(both.device))
        return tuple(part.double().cpu().numpy() for part in moved)

    def current_point(self) -> Tensor:
        """Return the watched chain's newest certain position (dim,)."""
        return self._at_end(self.now)[0]

    def _at_end(self, segment: Segment) -> tuple[Tensor, Tensor]:
        """Return position and velocity (dim,) at a segment's end, or as far as it has come."""
        duration = torch.tensor([segment.duration], dtype=torch.float64, device=segment.x.device)
        x, v = self.sampler.flow(segment.x[None], segment.v[None], duration)
        return x[0], v[0]

    def _nothing_ahead(self) -> bool:
        """Whether the envelope in use is zero up to its end."""
        state, chain = self.state
        pieces = self._current_piece(state, chain, float(state.piece.end[chain]))
        return bool(pieces) and max(max(piece[2:]) for piece in pieces) <= 0

    def _caption(self) -> dict[str, Any]:
        last = self.last
        if last is None:
            return {}
        ended = last.kind in (BOUNCE, REFRESH)
        segment = self.past[-1] if ended else self.now
        tried = [e for e in segment.evaluations if e.proposal]
        text = _SENTENCES[last.kind](last, len(tried), self.count)
        if last.kind == PROBE and self._nothing_ahead():
            text += " It is zero there: no event can happen before."
        broken = [(n, e) for n, e in enumerate(tried, 1) if e.violated]
        if broken:
            text += " " + _violation(*broken[-1], self.sampler.bound == "grid")
        return {"text": text, "kind": "violation" if broken else _WORDS[last.kind]}


def _through(knots: list[tuple[float, float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the cubic Hermite curve through known rates and slopes, equally many points between each two."""
    t, f, d = _in_order(knots)
    pieces = range(len(t) - 1)
    if not pieces:
        return np.array(t), np.array(f)
    time, cubics = _hermite(-(-_RATE_POINTS // len(pieces)))
    # In lists, since there are but a few: each call of NumPy costs as much as a piece.
    spans = np.array([(t[k], t[k + 1] - t[k]) for k in pieces])
    ends = np.array([(f[k], f[k + 1], (t[k + 1] - t[k]) * d[k], (t[k + 1] - t[k]) * d[k + 1]) for k in pieces])
    return (spans @ time).ravel(), (ends @ cubics).ravel()


@cache
def _hermite(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what makes times (2, points + 1) of a beginning and a length, and rates (4, ...) of values and slopes."""
    u = np.linspace(0, 1, points + 1)
    w = 1 - u
    cubics = np.stack([w * w * (1 + 2 * u), u * u * (3 - 2 * u), u * w * w, -u * u * w])
    return np.stack([np.ones_like(u), u]), cubics


def _in_order(knots: list[tuple[float, float, float]]) -> tuple[list[float], list[float], list[float]]:
    """Return times, rates and slopes in order, without doubles, and with what stands for unknown slopes."""
    ordered = sorted(knots)
    least = 1e-12 * (1 + ordered[-1][0])
    kept = ordered[:1] + [b for a, b in pairwise(ordered) if b[0] - a[0] > least]
    t, f, d = (list(column) for column in zip(*kept, strict=True))
    if len(t) > 2 and isnan(d[0]) and not isnan(d[1] + d[2]):
        d[0] = _first_slope(t, f, d[1])
    if len(t) > 1 and any(isnan(slope) for slope in d):
        d = [g if isnan(slope) else slope for slope, g in zip(d, np.gradient(f, t).tolist(), strict=True)]
    return t, f, d


def _first_slope(t: list[float], f: list[float], slope: float) -> float:
    """Return the slope at t0, which a bounce leaves unknown, of the cubic through f0, f1, f2 with the slope at t1."""
    # p = f1 + slope (t - t1) + q (t - t1)^2, q linear.
    q0, q2 = ((f[i] - f[1] - slope * (t[i] - t[1])) / (t[i] - t[1]) ** 2 for i in (0, 2))
    step = t[0] - t[1]
    return slope + 2 * step * q0 + step**2 * (q2 - q0) / (t[2] - t[0])


def _age(count: int) -> np.ndarray:
    return np.arange(count)[::-1] / max(count - 1, 1)


def _columns(states: list[Any], chain: int, name: str) -> list[tuple[float, float]]:
    pieces = [getattr(state, name) for state in states]
    slope = torch.stack([piece.slope for piece in pieces])[:, chain].tolist()
    height = torch.stack([piece.height for piece in pieces])[:, chain].tolist()
    return list(zip(slope, height, strict=True))


def _lines(name: str, pieces: list[tuple[float, float, float, float]]) -> dict[str, np.ndarray]:
    table = np.array(pieces, dtype=float).reshape(-1, 4)
    return {f"{name}_{key}": table[:, i] for i, key in enumerate(("t0", "t1", "h0", "h1"))}


def _ordinal(n: int) -> str:
    suffix = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"


def _bounce(e: Evaluation, tried: int, count: int) -> str:
    which = "The only proposal" if tried == 1 else f"The {_ordinal(tried)} proposal"
    return f"Event {count}, a bounce. {which} was accepted: rate {e.rate:.3g} of envelope {e.height:.3g}."


def _refresh(e: Evaluation, tried: int, count: int) -> str:
    return f"Event {count}, a refreshment. The refresh clock rang at time {e.t:.3g} and the velocity was drawn anew."


def _rejected(e: Evaluation, tried: int, count: int) -> str:
    if e.violated:
        return f"The {_ordinal(tried)} proposal is set aside."
    share = max(e.rate, 0.0) / e.height if e.height > 0 else 0.0
    return (
        f"The {_ordinal(tried)} proposal was rejected: its uniform draw {e.uniform:.2f} lies above"
        f" rate / envelope = {share:.2f}. The path goes straight through."
    )


def _probe(e: Evaluation, tried: int, count: int) -> str:
    if not np.isfinite(e.rate):
        return f"A look ahead went too far: at time {e.t:.3g} the potential is not finite. The next one is nearer."
    return (
        f"A look ahead: at time {e.t:.3g} the signed rate is {e.rate:.3g}, and the envelope up to there is now known."
    )


def _horizon(e: Evaluation, tried: int, count: int) -> str:
    return f"The horizon at time {e.t:.3g} was reached without a proposal; the envelope is extended from there."


def _start(e: Evaluation, tried: int, count: int) -> str:
    return "A chain sets out: its rate is evaluated where it stands."


_SENTENCES = {
    BOUNCE: _bounce,
    REFRESH: _refresh,
    REJECTED: _rejected,
    PROBE: _probe,
    HORIZON: _horizon,
    START: _start,
}


def _violation(number: int, e: Evaluation, redrawn: bool) -> str:
    over = f"by {100 * (e.rate / e.height - 1):.2g} %" if e.height > 0 else "of zero"
    remedy = "the bound was raised and the proposal drawn again" if redrawn else "events came later than they should"
    return f"The {_ordinal(number)} proposal violated the envelope {over}: {remedy}."
