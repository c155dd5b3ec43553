"""Follow one chain of a piecewise deterministic process: its segments, events and envelopes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import islice, pairwise
from math import isfinite, isnan
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz.errors import BnnvizError
from bnnviz.samplers.observers import ChainTrace, Projection, StepBatch
from bnnviz.samplers.pdmp import text
from bnnviz.samplers.pdmp.thinning import HORIZON, PROBE, REFRESH, START
from bnnviz.samplers.pdmp.trace.path_picture import (
    SEGMENTS,
    Evaluation,
    Knot,
    PathPicture,
    Segment,
    Stretch,
    clipped_line,
)

_EVENTS = 150
_FEW_KNOTS = 2  # too few for a curve
_QUICK_POINTS = 24  # evaluations of the rate for a short-lived picture
_MOST_WORK = 200_000  # rows x dimensions up to which the rate is computed at all these points for every frame
# Positions stored for drawing, in numbers: 32 MB.
_KEPT_NUMBERS = 8_000_000

#: Look-aheads.
LOOKS = (PROBE, HORIZON, START)
_STRETCH = ("t0", "t1", "h0", "h1")
_FIELDS = ("kind", "t", "rate", "height", "uniform", "violated", "s0", "s1", "slope")


class PathTrace(ChainTrace):
    """Follow one chain: its segments, events, evaluations and envelopes."""

    def __init__(self, sampler: Any) -> None:
        super().__init__(sampler)
        self.picture = PathPicture(sampler)
        self._seen = 0  # segments that had ended at the last frame
        self.past: deque[Segment] | None = None
        self.state: Any = None
        self._scaling: tuple[Any, Any] = None, None  # of all chains, and of the watched one
        self.last: Evaluation | None = None

    def begin(self, state: Any, chain: int) -> None:
        """Start at the watched chain's state, before its first step."""
        self._scaling = None, None
        self.now = self._segment(state, chain, [])
        self.past = deque(maxlen=max(2, min(SEGMENTS, _KEPT_NUMBERS // (2 * len(state.x[chain])))))
        self.state = (state, chain)

    def record(self, step_batch: StepBatch, chain: int) -> None:
        """Record the watched chain's steps in a block."""
        rows = zip(*(step_batch.column(name)[:, chain].tolist() for name in _FIELDS), strict=True)
        pieces = zip(*(step_batch.history("piece", part)[:-1, chain].tolist() for part in (0, 1)), strict=True)
        before = step_batch.before[0]
        if self.now is None:
            self.begin(before, chain)
        elif before.adaptation.scaling is not self._scaling[0]:
            # The warm-up has learned another scaling and restarted the chain with it.
            self.now = self._segment(before, chain, [])
        for k, (row, piece) in enumerate(zip(rows, pieces, strict=True)):
            # Few states are needed, and those of compiled steps are built on demand.
            self._add(Evaluation(step_batch.first_step + k, *row), piece, chain, partial(step_batch.state_after, k))
        self.state = (step_batch.after, chain)

    def _add(self, last: Evaluation, piece: tuple[float, float], chain: int, after: Callable[[], Any]) -> None:
        segment, reached = self.now, min(last.s1, last.t)
        segment.add(last)
        segment.cover(last.s0, reached, *piece)
        segment.duration = last.s1
        self.last = last
        if last.event:
            segment.kind, segment.step, segment.duration = last.shown_kind, last.step, last.t
            self.past.append(segment)
            self.lately.append((segment.step, segment.kind))
            self.count += 1
            first = (0.0, last.rate, last.slope) if last.kind == REFRESH else (0.0, -last.rate, np.nan)
            # A chain with a held batch has a new one now and evaluates its rate again.
            self.now = self._segment(after(), chain, [] if self.sampler.source.held else [first])
        elif last.s1 > reached:
            piece = after().skipped
            skipped = (float(piece.slope[chain]), float(piece.height[chain]))
            segment.cover(max(last.s0, reached), last.s1, *skipped)

    def _segment(self, state: Any, chain: int, knots: list[Knot]) -> Segment:
        source = self.sampler.source.seen_by(state.batch, chain)
        scaling = state.adaptation.scaling
        if scaling is not self._scaling[0]:
            own = self.sampler.scaling_of(scaling, torch.tensor([chain], device=state.x.device))
            self._scaling = scaling, own
        return Segment(self.count, state.x[chain], state.v[chain], source, self._scaling[1], knots=knots)

    def part(self, name: str, plane: Projection, playing: bool) -> dict[str, Any]:
        """Return one part of a frame: events, envelope, path or caption."""
        if self.now is None:
            return {}
        if name == "envelope":
            return self._envelope(playing)
        if name == "path":
            return self.picture.part(self.past, self.now, plane)
        if name == "caption":
            return self._caption()
        recent = list(self.past)[-_EVENTS:]
        return {
            "step": np.array([segment.step for segment in recent], dtype=np.int64),
            "kind": np.array([segment.kind for segment in recent], dtype=np.int8),
        }

    def event(self, step: int) -> tuple[int, str, Tensor]:
        """Return step, description and position (dim,) of an event in memory."""
        segment = next((s for s in self.past or () if s.step == step), None)
        if segment is None:
            raise BnnvizError("That event is no longer in memory. Select a more recent event.", "event")
        return step, f"event {segment.number + 1:,}: {text.KINDS[segment.kind]}", self.end_of(segment)[0]

    def shown(self, playing: bool) -> Segment:
        """Return the segment of the last evaluation; at speed, the newest one that needs no gradients."""
        ended = self.last is not None and self.last.event
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
        now = self._current_piece(t_max) if ongoing else []
        t, rate = self._rate_curve(segment, t_max, playing)
        proposals = [
            (e.t, max(e.rate, 0.0), e.height, e.uniform, e.shown_kind) for e in segment.evaluations if e.proposal
        ]
        heights = [proposal[2] for proposal in proposals]
        heights += [height for piece in (*segment.pieces, *now) for height in piece[2:]]
        looks = [(e.t, e.rate) for e in segment.evaluations if e.kind in LOOKS and isfinite(e.rate)]
        # A rate that stays below zero still needs a visible axis.
        highest, lowest = (float(rate.max()), float(rate.min())) if rate.size else (0.0, 0.0)
        proposed = _columns("proposal", ("t", "rate", "height", "u", "kind"), proposals)
        return {
            "segment": segment.number,
            "t_max": t_max,
            "y_max": max(*heights, highest, 0.2 * max(highest, -lowest), 1e-3),
            "rate_t": t,
            "rate": rate,
            **_columns("past", _STRETCH, segment.pieces),
            **_columns("now", _STRETCH, now),
            **proposed,
            "proposal_kind": proposed["proposal_kind"].astype(np.int8),
            **_columns("probe", ("t", "rate"), looks),
            "refresh_t": refresh if np.isfinite(refresh) and refresh <= 2 * t_max else np.nan,
            "unit": "1/time",
        }

    def _current_piece(self, t_max: float = np.inf) -> list[Stretch]:
        """Return the envelope in use, at most up to a time."""
        state, chain = self.state
        slope, height, end = (float(part[chain]) for part in state.piece)
        return clipped_line(float(state.s[chain]), min(end, t_max), slope, height)

    def _rate_curve(self, segment: Segment, t_max: float, quick: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the rate along a segment, by all rows if batches change; at speed from stored evaluations, or none."""
        noisy = self.sampler.source.noisy
        if quick and len(segment.knots) > _FEW_KNOTS and not noisy:
            return hermite_curve(segment.knots)
        if quick and noisy and self.sampler.target.examples * segment.x.numel() > _MOST_WORK:
            return np.empty(0), np.empty(0)
        points = _QUICK_POINTS if quick else RATE_POINTS
        t = torch.linspace(0, t_max, points, dtype=torch.float64, device=segment.x.device)
        x, v = self.sampler.flow(segment.x.expand(len(t), -1), segment.v.expand(len(t), -1), t, segment.scaling)
        rate = self.sampler.rate(x, v, segment.source.gradient(x)[1], segment.scaling)
        return t.cpu().numpy(), rate.double().cpu().numpy()

    def current_point(self) -> Tensor:
        """Return the watched chain's newest certain position (dim,)."""
        return self.end_of(self.now)[0]

    def end_of(self, segment: Segment) -> tuple[Tensor, Tensor]:
        """Return position and velocity (dim,) at a segment's end, or at its current end."""
        duration = torch.tensor([segment.duration], dtype=torch.float64, device=segment.x.device)
        x, v = self.sampler.flow(segment.x[None], segment.v[None], duration, segment.scaling)
        return x[0], v[0]

    def _caption(self) -> dict[str, Any]:
        last = self.last
        if last is None:
            return {}
        segment = self.past[-1] if last.event else self.now
        tried = [e for e in segment.evaluations if e.proposal]
        ahead = self._current_piece()
        nothing_ahead = bool(ahead) and max(max(piece[2:]) for piece in ahead) <= 0
        sentence = text.caption(last, tried, self.count, nothing_ahead)
        violated = any(e.violated for e in tried)
        return {"text": sentence, "kind": "violation" if violated else text.KINDS[last.kind]}


def _columns(name: str, keys: Sequence[str], rows: Sequence[Sequence[float]]) -> dict[str, np.ndarray]:
    """Return the columns of a table by their keys, which start with its name."""
    table = np.array(rows, dtype=float).reshape(-1, len(keys))
    return {f"{name}_{key}": table[:, i] for i, key in enumerate(keys)}


RATE_POINTS = 48


def hermite_curve(knots: list[Knot]) -> tuple[np.ndarray, np.ndarray]:
    """Return times and rates of the curve through known rates and slopes, with equally many points in each piece."""
    t, f, d = _in_order(knots)
    pieces = range(len(t) - 1)
    if not pieces:
        return np.array(t), np.array(f)
    time, cubics = _hermite(-(-RATE_POINTS // len(pieces)))
    # Lists, since there are few knots: each NumPy call costs as much as a piece.
    spans = np.array([(t[k], t[k + 1] - t[k]) for k in pieces])
    ends = np.array([(f[k], f[k + 1], (t[k + 1] - t[k]) * d[k], (t[k + 1] - t[k]) * d[k + 1]) for k in pieces])
    return (spans @ time).ravel(), (ends @ cubics).ravel()


@cache
def _hermite(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the basis of times (2, points + 1) from start and length, and of rates (4, ...) from values and slopes."""
    u = np.linspace(0, 1, points + 1)
    w = 1 - u
    cubics = np.stack([w * w * (1 + 2 * u), u * u * (3 - 2 * u), u * w * w, -u * u * w])
    return np.stack([np.ones_like(u), u]), cubics


def _in_order(knots: list[Knot]) -> tuple[list[float], list[float], list[float]]:
    """Return times, rates and slopes in order, without duplicates, and with estimates of unknown slopes."""
    ordered = sorted(knots)
    least = 1e-12 * (1 + ordered[-1][0])
    kept = ordered[:1] + [b for a, b in pairwise(ordered) if b[0] - a[0] > least]
    t, f, d = (list(column) for column in zip(*kept, strict=True))
    if len(t) > 2 and isnan(d[0]) and not isnan(d[1] + d[2]):
        # Unknown after a bounce: that of the cubic p through f0, f1, f2 with the slope d1 at t1,
        # p = f1 + d1 (t - t1) + q (t - t1)^2, q linear.
        q0, q2 = ((f[i] - f[1] - d[1] * (t[i] - t[1])) / (t[i] - t[1]) ** 2 for i in (0, 2))
        back = t[0] - t[1]
        d[0] = d[1] + 2 * back * q0 + back**2 * (q2 - q0) / (t[2] - t[0])
    if len(t) > 1 and any(isnan(slope) for slope in d):
        d = [g if isnan(slope) else slope for slope, g in zip(d, np.gradient(f, t).tolist(), strict=True)]
    return t, f, d
