"""Draw the events of a run on a strip, what is known of its future too, and the way back to each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bnnviz.views.base import Columns, columns, separated
from bnnviz.views.chain.timeline import HEAD, HEIGHTS, SHOWN, TimelineView
from bnnviz.views.palette import EVENTS, KINDS, Kind, legend, mark_html
from bnnviz.views.pointer import Pointer

MOVE = Kind("move", "dash", "blue", False)
_MOVE = 6  # its code
_HEIGHTS = {**HEIGHTS, _MOVE: 0.5}
_AHEAD = 0.3  # of the strip is there for what is known of the future


class JourneyView(TimelineView):
    """Draw a tick for each event up to now and, after somebody went back, beyond it; a click on one goes there."""

    needs = ("timeline",)

    def __init__(self, scene: dict | None = None, dark: bool = False) -> None:
        self.whole = False
        self._right, self._length = 0.0, 1.0
        super().__init__(scene, dark)

    def _build(self) -> None:
        super()._build()
        canvas = self.canvas
        self._coloured(canvas.line(self.source, "tick_x", f"tick{_MOVE}", width=1.4), role="blue")
        self._coloured(canvas.line(self.source, "tick_x", "ahead", width=1.4), role="axis")
        self._coloured(canvas.line(self.source, "fork_x", "fork", width=2, dash=(4, 3)), role="purple")
        self.pointer = Pointer(self.root, cells=True, keyed=False)

    def listen_back(self, on_step: Callable[[int], None]) -> None:
        """Hear which step is to be gone back to; needs a Bokeh server."""

        def hear(message: dict[str, Any]) -> None:
            step = self.nearest(message["x"]) if message["do"] == "cell" else None
            if step is not None:
                on_step(step)

        self.pointer.listen(hear)

    def nearest(self, x: float) -> int | None:
        """Return the step of the event that lies nearest to a place on the strip; None if there is none."""
        if not self._steps.size:
            return None
        return int(self._steps[np.argmin(np.abs(self._steps - (self._right + x * self._length)))])

    def _no_events(self) -> Columns:
        self._steps = self._kinds = np.empty(0, dtype=np.int64)
        return self._columns(0, None)

    def legend_html(self) -> str:
        """Give the legend: the kinds of event."""
        return legend(*(mark_html(KINDS[code], self.palette) for code in EVENTS), mark_html(MOVE, self.palette))

    def _show(self, part: dict) -> bool:
        prefix = "whole_" if self.whole else ""
        self._steps, self._kinds = np.asarray(part[f"{prefix}step"]), np.asarray(part[f"{prefix}kind"])
        now, last = part["now"], part["last"]
        if self.whole:
            self._right, self._length = float(last), float(max(last, 1))
        else:
            past = self._steps[self._steps <= now][-SHOWN:]
            self._choose_span(float(now - past[0]) if past.size else 0.0)
            self._length = float(self._span)
            # What is known of the future has some room at the right, what lies behind is shifted for it.
            self._right = min(float(last), now + _AHEAD * self._span)
        return self._push(self.source, self._columns(now, part["fork"]))

    def _columns(self, now: int, fork: int | None) -> Columns:
        x = (self._steps - self._right) / self._length
        seen = (x >= -1) & (x <= 0)
        x, kind, known = x[seen], self._kinds[seen], self._steps[seen] <= now
        heights = {code: np.where(known & (kind == code), height, np.nan) for code, height in _HEIGHTS.items()}
        zero, here = np.zeros(x.size), (now - self._right) / self._length
        parted = [] if fork is None else [(fork - self._right) / self._length] * 2
        return columns(
            x=x,
            tick_x=separated(x, x),
            **{f"tick{code}": separated(zero, height) for code, height in heights.items()},
            ahead=separated(zero, np.where(known, np.nan, 0.5)),
            height=np.where(known, [_HEIGHTS[int(code)] for code in kind] if x.size else zero, np.nan),
            kind=kind,
            head_x=[here + HEAD * (here > -HEAD)] * 2,
            head=[0.0, 1.0],
            fork_x=parted,
            fork=[0.0, 1.0] if parted else [],
        )
