"""Draw the path of one chain in a plane."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from math import isfinite
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz.samplers.observers import Projection
from bnnviz.samplers.pdmp.thinning import BOUNCE, REFRESH, REJECTED, VIOLATION

_MOST_EVALUATIONS, _MOST_PIECES = 200, 400

#: A straight piece of an envelope: two times, and its height at both.
Stretch = tuple[float, float, float, float]
#: A known rate: time, rate, slope (nan if unknown).
Knot = tuple[float, float, float]
SEGMENTS = 120
_CURVED_SEGMENTS = 60
_CURVE_POINTS = 8
_JUMP = 1e-6  # of a distance, above rounding errors


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of the watched chain's rate: its number, and the fields of `Info`."""

    step: int
    kind: int
    t: float
    rate: float
    height: float
    uniform: float
    violated: bool
    s0: float
    s1: float
    slope: float

    @property
    def event(self) -> bool:
        """Whether the segment ended with it."""
        return self.kind in (BOUNCE, REFRESH)

    @property
    def proposal(self) -> bool:
        """Whether it was a proposal, accepted or not."""
        return self.kind in (REJECTED, BOUNCE)

    @property
    def shown_kind(self) -> int:
        """The kind shown in views: violations are marked whether accepted or not."""
        return VIOLATION if self.violated else self.kind


@dataclass
class Segment:
    """The path between two events."""

    number: int  # events of the chain before the segment
    # (dim,): Position and velocity at its start
    x: Tensor
    v: Tensor
    source: Any  # of derivatives
    scaling: Any
    evaluations: list[Evaluation] = field(default_factory=list)
    pieces: list[Stretch] = field(default_factory=list)  # the envelope
    duration: float = 0.0  # time up to which the path is certain
    # Of the event at its end
    kind: int | None = None
    step: int = 0
    knots: list[Knot] = field(default_factory=list)

    def add(self, evaluation: Evaluation) -> None:
        """Add an evaluation; if a look-ahead passes many empty cells, discard the oldest."""
        # A refreshment is evaluated with the new velocity, so its rate belongs to the next segment.
        if evaluation.kind != REFRESH and isfinite(evaluation.rate):
            self.knots.append((evaluation.t, evaluation.rate, evaluation.slope))
        self.evaluations.append(evaluation)
        del self.evaluations[:-_MOST_EVALUATIONS], self.knots[:-_MOST_EVALUATIONS]

    def cover(self, t0: float, t1: float, slope: float, height: float) -> None:
        """Add the envelope max(0, slope t + height) over [t0, t1] as straight pieces."""
        self.pieces += clipped_line(t0, t1, slope, height)
        del self.pieces[:-_MOST_PIECES]


def clipped_line(t0: float, t1: float, slope: float, height: float) -> list[Stretch]:
    """Return max(0, slope t + height) over [t0, t1] as straight pieces (t0, t1, h0, h1)."""
    if not t1 > t0 or not isfinite(slope) or not isfinite(height):
        return []
    h0, h1 = slope * t0 + height, slope * t1 + height
    if h0 >= 0 and h1 >= 0 or h0 <= 0 and h1 <= 0:
        return [(t0, t1, max(h0, 0.0), max(h1, 0.0))]
    zero = -height / slope
    return [(t0, zero, max(h0, 0.0), 0.0), (zero, t1, 0.0, max(h1, 0.0))]


class PathPicture:
    """Draw the last segments of a path in a plane; each ended segment is projected once."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler
        self._drawn: tuple[tuple[str, int], _Trail] | None = None

    def part(self, past: Sequence[Segment], now: Segment, plane: Projection) -> dict[str, Any]:
        """Return the part ``path`` of a frame: the ended segments and the current one."""
        most = _CURVED_SEGMENTS if self.sampler.curved or plane.canonicalise else SEGMENTS
        ended, key = list(past)[-most:], (plane.kind, plane.basis)
        if self._drawn is None or self._drawn[0] != key:
            # In a phase plane the velocity jumps at an event.
            self._drawn = (key, _Trail(joined=plane.axes is not None))
        trail = self._drawn[1]
        new = trail.missing(ended)
        pieces, heading = self._project([*new, now], plane)
        trail.add(new, pieces[:-1], len(ended))
        points = trail.followed_by(pieces[-1:])
        return {
            "plane": {"kind": plane.kind},
            "x_label": plane.labels[0],
            "y_label": plane.labels[1],
            "basis": plane.basis,
            "x": points[:, 0],
            "y": points[:, 1],
            "age": np.arange(len(points))[::-1] / max(len(points) - 1, 1),
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

    def _project(self, segments: list[Segment], plane: Projection) -> tuple[Sequence[np.ndarray], tuple[float, float]]:
        """Return the points (1 + points each, 2) of segments, with nan where they are cut, and the last velocity."""
        # The warm-up may have changed the scaling between segments.
        alike = [list(group) for _, group in groupby(segments, key=lambda segment: id(segment.scaling))]
        projected = [self._project_alike(group, plane) for group in alike]
        return [piece for pieces, _ in projected for piece in pieces], projected[-1][1]

    def _project_alike(
        self, segments: list[Segment], plane: Projection
    ) -> tuple[Sequence[np.ndarray], tuple[float, float]]:
        """Return the same for segments with one scaling."""
        each = _CURVE_POINTS if self.sampler.curved or plane.canonicalise else 1
        t = np.array([s.duration for s in segments])[:, None] * (np.arange(each + 1) / each)
        both, scaling = torch.stack([s.x for s in segments] + [s.v for s in segments]), segments[-1].scaling
        if plane.canonicalise is not None:
            return self._canonical(both, t, plane, scaling)
        if plane.axes is None:
            # Position against velocity, which displaces the path.
            points = np.concatenate([part.reshape(*t.shape, 1) for part in self._moved(both, t, scaling)], -1)
            return points, (float(points[-1, -1, 1]), 0.0)
        project = _PointProjection(plane, both.device)
        # For few points NumPy on the CPU is many times faster than torch.
        flat = project.linear(both)[:, None]
        flow = self.sampler.planar_flow(project, scaling)
        points, velocity = flow(flat[: len(t)] - project.offset, flat[len(t) :], t[..., None])
        return points, (float(velocity[-1, -1, 0]), float(velocity[-1, -1, 1]))

    def _canonical(
        self, both: Tensor, t: np.ndarray, plane: Projection, scaling: Any
    ) -> tuple[list[np.ndarray], tuple[float, float]]:
        """Return the points of segments on a canonical path, cut at its jumps, and the last velocity."""
        x, v = self._moved(both, t, scaling)
        canonical = plane.canonicalise(x)
        # Canonicalising is the same on each side of a cut, so only points across a cut move apart.
        apart, before = (np.linalg.norm(np.diff(each, axis=0), axis=1) for each in (canonical, x))
        jumps = np.append(False, np.abs(apart - before) > _JUMP * (apart + before))
        points, pieces = (canonical - plane.centre) @ plane.axes, []
        for piece, cut in zip(np.split(points, len(t)), np.split(jumps, len(t)), strict=True):
            inner = np.flatnonzero(cut[1:]) + 1
            pieces.append(np.insert(piece, inner, np.nan, axis=0))
        across, up = plane.canonicalise(x[-1], vectors=v[-1]) @ plane.axes
        return pieces, (float(across), float(up))

    def _moved(self, both: Tensor, t: np.ndarray, scaling: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and velocities (times, dim) at times after the segments' starts, one after another."""
        x, v = (part.repeat_interleave(t.shape[1], 0) for part in both.split(len(t)))
        moved = self.sampler.flow(x, v, torch.from_numpy(t.ravel()).to(both.device), scaling)
        return tuple(part.double().cpu().numpy() for part in moved)


class _PointProjection:
    """Project points (n, dim) on the sampler's device to a plane: (n, 2) on the CPU, in float64."""

    def __init__(self, plane: Projection, device: torch.device) -> None:
        self._axes = torch.as_tensor(plane.axes, device=device)
        self.offset = plane.centre @ plane.axes

    def linear(self, vectors: Tensor) -> np.ndarray:
        """Project vectors, without an origin."""
        return (vectors.double() @ self._axes).cpu().numpy()

    def __call__(self, points: Tensor) -> np.ndarray:
        """Project points."""
        return self.linear(points) - self.offset


class _Trail:
    """Ended segments in one plane, each projected once; arrays are replaced, not modified, as frames may hold them."""

    def __init__(self, joined: bool) -> None:
        self.joined = joined
        self._forget()

    def _forget(self) -> None:
        self._last: Segment | None = None
        self._lengths: deque[int] = deque()
        self.points, self.corners = np.empty((0, 2)), np.empty((0, 2))
        self.kinds, self.steps = np.empty(0, dtype=np.int8), np.empty(0, dtype=np.int64)

    def missing(self, segments: list[Segment]) -> list[Segment]:
        """Return the segments to draw, in order, that are not drawn yet."""
        new = list(takewhile(lambda segment: segment is not self._last, reversed(segments)))[::-1]
        if len(new) == len(segments):
            self._forget()
        return new

    def add(self, segments: list[Segment], pieces: Sequence[np.ndarray], most: int) -> None:
        """Add the points of segments; keep only the last ``most``."""
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
        """Return its points, followed by those of further pieces."""
        if self.joined and not self._lengths:
            return np.concatenate([pieces[0], *(piece[1:] for piece in pieces[1:])])
        return np.concatenate([self.points, *(piece[1:] if self.joined else piece for piece in pieces)])
