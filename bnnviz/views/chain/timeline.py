"""Draw the last steps of the watched chain as a strip of ticks, the newest at the right."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import Columns, View, columns, separated
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import BOUNCE, EVENTS, KINDS, REFRESH, VIOLATION, legend, mark_html

SHOWN = 50  # entries, about
SPANS = tuple(m * 10**power for power in range(2, 10) for m in (1, 1.5, 2, 3, 5, 7.5))  # steps on the strip
HEAD = 0.012  # of the strip's length after the newest step
# How far a tick reaches up: events stand out, what only led to them stays low.
HEIGHTS = {0: 0.2, 1: 0.32, BOUNCE: 0.6, REFRESH: 0.82, 4: 0.2, VIOLATION: 0.82}


class TimelineView(View):
    """Draw a tick for each step; events carry their mark."""

    name = "timeline"
    title = "Events"
    needs = ("events",)

    def _build(self) -> None:
        fig = self._figure(
            "",
            "",
            (-1.0, 0.016),
            (0.0, 1.0),
            sizing_mode="stretch_width",
            height=36,
            min_height=28,
            min_border=0,
            min_border_left=0,
        )
        fig.axis.visible, fig.grid.visible = False, False
        self._span, self._kinds = SPANS[0], np.empty(0)
        self.source = PackedColumns(self._no_events())
        canvas = self.canvas
        self._coloured(canvas.line(self.source, "head_x", "head", width=3), role="ink")
        for code, kind in KINDS.items():
            self._coloured(canvas.line(self.source, "tick_x", f"tick{code}", width=1.6), role=kind.role)
        for code in EVENTS:
            mark = canvas.marks(self.source, "x", "height", KINDS[code], 6.5, width=1.5, of="kind", code=code)
            self._coloured(mark, KINDS[code])

    def reset(self, scene: dict) -> None:
        """Forget the last run's steps."""
        self._span = SPANS[0]
        self._push(self.source, self._no_events())

    def legend_html(self) -> str:
        """Give the legend: the kinds of event."""
        return legend(*(mark_html(KINDS[code], self.palette) for code in EVENTS))

    def _show(self, part: dict) -> bool:
        step, self._kinds = np.asarray(part["step"]), np.asarray(part["kind"])
        self._choose_span(float(np.ptp(step[-SHOWN:])) if step.size else 0.0)
        return self._push(self.source, _columns(part, self._span))

    def _no_events(self) -> Columns:
        return _columns(None)

    def _words(self) -> str:
        counts = {KINDS[code].label: int(np.sum(self._kinds == code)) for code in EVENTS}
        return f"the last {self._kinds.size} steps, " + ", ".join(f"{kind} {count}" for kind, count in counts.items())

    def _choose_span(self, needed: float) -> None:
        """Change the strip's length rarely: it is read by how far ticks lie apart."""
        if not 0.6 * self._span <= needed <= self._span:
            self._span = next((span for span in SPANS if span >= needed), SPANS[-1])


def _columns(part: dict | None, span: float = 1.0) -> dict:
    part = part or {"step": [], "kind": []}
    step, kind = np.asarray(part["step"], dtype=np.int64), np.asarray(part["kind"])
    # Steps are counted back from the newest: float32 cannot hold the number of a long run's step.
    back = (step - step[-1]) / span if step.size else step
    x, kind = back[back >= -1], kind[back >= -1]
    heights = {code: np.where(kind == code, height, np.nan) for code, height in HEIGHTS.items()}
    return columns(
        x=x,
        tick_x=separated(x, x),
        **{f"tick{code}": separated(np.zeros(x.size), height) for code, height in heights.items()},
        height=np.array([HEIGHTS[int(code)] for code in kind]),
        kind=kind,
        head_x=[HEAD, HEAD],
        head=[0.0, 1.0],
    )
