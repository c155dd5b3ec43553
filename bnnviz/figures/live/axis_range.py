"""Move the range of an axis: it grows in round steps, and shrinks after being much too wide for some time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Sequence

import numpy as np
from bokeh.models import Range1d

from bnnviz.figures.marks import Axis

_SLOW = 2  # frames on one segment: no longer at a speed where every frame shows another
_ROOM = 0.08  # of a range, between its ends and a large mark
_NOISE = 16 * float(np.finfo(np.float32).eps)  # of a number: hides the rounding of drawn values


class AxisRange:
    """Grow the range of an axis in round steps; otherwise it stays."""

    def __init__(self, range_: Range1d) -> None:
        self.range = range_
        # Reading a property of Bokeh takes longer than a frame has time for; a reader may drag a range, too.
        self.ends = (float(range_.start), float(range_.end))
        for name in ("start", "end"):
            range_.on_change(name, self._receive)
        self._recent: deque[tuple[float, float]] = deque()
        self.slack = 1.0  # width of the range relative to its content
        self._follow = True
        self._fresh = True
        self._need = self.ends
        self._key: Hashable = None
        self._frames = 0  # with this key

    def show(self, axis: Axis, paused: bool) -> None:
        """Show the ends of an axis."""
        need = axis.ends
        if self._recent.maxlen != axis.memory:
            self._recent = deque(maxlen=axis.memory)
        if axis.key != self._key:
            # Segments that are seen for a moment each share the axis.
            if axis.follow != "segment" or paused or self._frames >= _SLOW:
                self.restart()
            self._key, self._frames = axis.key, 0
        self._frames += 1
        if need is None:
            return
        if axis.follow == "exact":
            self._need = need
            if self._follow and self.ends != need:
                self.start_at(*need)
            return
        if axis.follow == "scroll" and self._follow and not self._fresh:
            # Where old points leave, the axis moves by half a window rather than at every draw.
            first, last = need
            if first > self.ends[0] and last > self.ends[1]:
                self.start_at(first, first + max(1.5 * (last - first), 1.0))
                return
        if axis.follow in ("settle", "segment"):
            # The range shrinks if it has been much too wide for some time.
            self._recent.append(need)
            if self._follow and len(self._recent) == self._recent.maxlen:
                lows, highs = zip(*self._recent, strict=True)
                if _quantile([high - low for low, high in self._recent], 0.75) < 0.5 * self.width:
                    self._set(_quantile(lows, 0.15), _quantile(highs, 0.85))
        self._need = need
        if not self._follow:
            return
        if self._fresh:
            self._set(*need)
        elif need[0] < self.ends[0] or need[1] > self.ends[1]:
            self._grow(*need)
        at, room = axis.room_at, _ROOM * (self.ends[1] - self.ends[0])  # a large mark must not be cut
        if np.isfinite(at) and (at - room < self.ends[0] or at + room > self.ends[1]):
            self._grow(at - room, at + room)

    @property
    def follow(self) -> bool:
        """Whether the range moves by itself."""
        return self._follow

    @follow.setter
    def follow(self, value: bool) -> None:
        self._follow = value
        if value:
            self._set(*self._need)

    def start_at(self, low: float, high: float) -> None:
        """Take exactly these ends, as a new beginning."""
        self._need = (float(low), float(high))
        self._fresh, self.slack = False, 1.0
        self._recent.clear()
        self._put(float(low), float(high))

    def restart(self) -> None:
        """Fit to the next values instead of growing to them."""
        self._fresh = True

    @property
    def width(self) -> float:
        """The width of the range without the additions of `widen`."""
        return (self.ends[1] - self.ends[0]) / self.slack

    def widen(self, width: float, tolerance: float) -> None:
        """Widen the range symmetrically, so that another axis has the same scale."""
        now = self.ends[1] - self.ends[0]
        if abs(now / width - 1) > tolerance:
            middle, self.slack = (self.ends[0] + self.ends[1]) / 2, width / self.width
            self._put(middle - width / 2, middle + width / 2)

    def _put(self, start: float, end: float) -> None:
        if (start, end) != self.ends:
            self.range.update(start=start, end=end)
            self.ends = (start, end)

    def _receive(self, attr: str, old: float, new: float) -> None:
        self.ends = (float(self.range.start), float(self.range.end))

    def _grow(self, low: float, high: float) -> None:
        start, end = min(low, self.ends[0]), max(high, self.ends[1])
        spare = 0.08 * (end - start)
        self._set(start - spare * (low < self.ends[0]), end + spare * (high > self.ends[1]))

    def _set(self, low: float, high: float) -> None:
        self._fresh, self.slack = False, 1.0
        self._recent.clear()
        if high <= low:
            low, high = low - 0.5, high + 0.5
        short = _NOISE * max(abs(low), abs(high)) - (high - low)
        if short > 0:
            low, high = low - short / 2, high + short / 2
        least = (high - low) / 20
        power = 10.0 ** np.floor(np.log10(least))
        step = power * next(m for m in (1, 2, 2.5, 5, 10) if m * power >= least * (1 - 1e-9))
        # Rounding outwards must not add a step for float noise beyond the edge.
        start, end = np.floor(low / step + 1e-6) * step, np.ceil(high / step - 1e-6) * step
        self._put(float(start), float(end))


def _quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of a few numbers, between two as NumPy has it, in a tenth of its time."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = ordered[int(place)]
    return float(below + (ordered[math.ceil(place)] - below) * (place % 1))
