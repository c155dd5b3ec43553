"""Draw the last steps of the watched chain as a strip of ticks, the newest at the right."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Axis, Drawing, Line, Mark, Points, Segments, whiskers
from bnnviz.figures.palette import BOUNCE, EVENTS, KINDS, REFRESH, VIOLATION, Kind

SHOWN = 50  # entries, about
SPANS = tuple(m * 10**power for power in range(2, 10) for m in (1, 1.5, 2, 3, 5, 7.5))  # steps on the strip
HEAD = 0.012  # of the strip's length after the newest step
#: Heights of the ticks: events are taller than the steps between them.
HEIGHTS = {0: 0.2, 1: 0.32, BOUNCE: 0.6, REFRESH: 0.82, 4: 0.2, VIOLATION: 0.82}
MOVE = Kind("move", "dash", "blue", False)
_MOVE = 6  # its code
_AHEAD = 0.3  # share of the strip for recorded future steps


class Timeline(Figure):
    """Draw a tick for each step; events carry their mark."""

    name, title = "timeline", "Events"
    needs = ("events",)
    place = 11
    bare = True
    kinds = KINDS
    x = Axis("", (-1.0, 0.016), "exact")
    _span = SPANS[0]

    def blank(self) -> Drawing:
        """Return an empty strip."""
        self._span = SPANS[0]
        return self._strip(np.empty(0), np.empty(0), 0.0)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw steps ``step`` of kinds ``kind``."""
        step, kind = np.asarray(part["step"], dtype=np.int64), np.asarray(part["kind"])
        self._choose_span(float(np.ptp(step[-SHOWN:])) if step.size else 0.0)
        # Steps are counted back from the newest: float32 cannot hold the number of a long run's step.
        x = (step - step[-1]) / self._span if step.size else np.empty(0)
        return self._strip(x[x >= -1], kind[x >= -1], HEAD, words=_words(kind))

    def _strip(self, x: np.ndarray, kind: np.ndarray, head: float, *more: Mark, words: str = "") -> Drawing:
        marks: list[Mark] = [Line([head, head], [0.0, 1.0], 3.0), *more]
        for code, of in self.kinds.items():
            own, height = x[kind == code], HEIGHTS.get(code, 0.5)
            marks.append(_ticks(own, height, 1.6, colour=of.role))
            if code in EVENTS or code == _MOVE:
                at = own if code in EVENTS else own[:0]
                marks.append(Points(at, np.full(len(at), height), of, 6.5, 1.5, label=of.label))
        return self.drawing(marks, words=words)

    def _choose_span(self, needed: float) -> None:
        """Change the strip's length rarely: it is read by the distance of ticks."""
        if not 0.6 * self._span <= needed <= self._span:
            self._span = next((span for span in SPANS if span >= needed), SPANS[-1])


class Journey(Timeline):
    """Draw a tick for each event, including later events after going back; a click on a tick jumps to it."""

    name = "journey"
    needs = ("timeline",)
    place = 99
    touch = {"cells": True, "keyed": False}
    kinds = {**KINDS, _MOVE: MOVE}

    def __init__(self) -> None:
        super().__init__()
        self.whole = False
        self._right, self._length = 0.0, 1.0
        self._steps = np.empty(0, dtype=np.int64)

    def nearest(self, x: float) -> int | None:
        """Return the step of the event nearest to a position on the strip, or None without events."""
        if not self._steps.size:
            return None
        return int(self._steps[np.argmin(np.abs(self._steps - (self._right + x * self._length)))])

    def blank(self) -> Drawing:
        """Return an empty strip."""
        self._steps = np.empty(0, dtype=np.int64)
        return super().blank()

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw events up to ``now``, those known up to ``last``, and the step of a ``fork``."""
        prefix = "whole_" if self.whole else ""
        self._steps, kinds = np.asarray(part[f"{prefix}step"]), np.asarray(part[f"{prefix}kind"])
        now, last, fork = part["now"], part["last"], part["fork"]
        if self.whole:
            self._right, self._length = float(last), float(max(last, 1))
        else:
            past = self._steps[self._steps <= now][-SHOWN:]
            self._choose_span(float(now - past[0]) if past.size else 0.0)
            self._length = float(self._span)
            # Recorded future steps take some room on the right; past steps shift left.
            self._right = min(float(last), now + _AHEAD * self._span)
        x = (self._steps - self._right) / self._length
        seen = (x >= -1) & (x <= 0)
        x, kind, known = x[seen], kinds[seen], self._steps[seen] <= now
        here, ahead = (now - self._right) / self._length, x[~known]
        parted = np.array([] if fork is None else [(fork - self._right) / self._length])
        more = _ticks(ahead, 0.5, 1.4, colour="axis"), _ticks(parted, 1.0, 2.0, dash=(4, 3), colour="purple")
        return self._strip(x[known], kind[known], here + HEAD * (here > -HEAD), *more, words=_words(kinds))


def _ticks(at: np.ndarray, height: float, width: float, **look: Any) -> Segments:
    return whiskers(at, np.zeros(len(at)), np.full(len(at), height), width, **look)


def _words(kinds: np.ndarray) -> str:
    counts = (f"{KINDS[code].label} {np.sum(kinds == code)}" for code in EVENTS)
    return f"the last {kinds.size} steps, {', '.join(counts)}"
