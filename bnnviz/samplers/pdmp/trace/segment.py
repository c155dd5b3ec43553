"""Store the path of one chain between two events, and the evaluations along it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from torch import Tensor

from bnnviz.samplers.pdmp.thinning import BOUNCE, REFRESH, REJECTED, VIOLATION

_MOST_EVALUATIONS, _MOST_PIECES = 200, 400

#: A straight piece of an envelope: two times, and its height at both.
Stretch = tuple[float, float, float, float]
#: A known rate: time, rate, slope (nan if unknown).
Knot = tuple[float, float, float]


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
