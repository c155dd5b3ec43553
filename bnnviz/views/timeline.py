"""Timeline: the last steps of the watched chain as a strip of ticks, the newest at the right."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import View, columns, empty_source, separated
from bnnviz.views.palette import BOUNCE, EVENTS, KINDS, REFRESH, REJECTED, VIOLATION, legend, mark_html

STEPS = 100
# How far a tick reaches up: events stand out, what only led to them stays low.
HEIGHTS = {0: 0.2, 1: 0.32, BOUNCE: 0.6, REFRESH: 0.82, 4: 0.2, VIOLATION: 0.82}


class TimelineView(View):
    """A tick for each step; events carry their mark."""

    name = "timeline"
    title = "Events"
    needs = ("events",)

    def _build(self) -> None:
        fig = self._figure(
            "",
            "",
            (-STEPS, 2.0),
            (0.0, 1.0),
            sizing_mode="stretch_width",
            height=36,
            min_height=28,
            min_border=0,
            min_border_left=0,
        )
        fig.axis.visible, fig.grid.visible = False, False
        self.source = empty_source(_columns(None))
        self._line(self.source, "head_x", "head", "ink", line_width=3)
        for code, kind in KINDS.items():
            self._line(self.source, "tick_x", f"tick{code}", kind.role, line_width=1.6)
        for code in EVENTS:
            self._marks(self.source, "x", f"kind{code}", KINDS[code], 6.5, line_width=1.5)

    def reset(self, scene: dict) -> None:
        """Forget the last run's steps."""
        self._push(self.source, _columns(None))

    def legend_html(self) -> str:
        """Give the legend: events, and the rejected proposals between them."""
        return legend(*(mark_html(KINDS[code], self.palette) for code in (*EVENTS, REJECTED)))

    def _show(self, part: dict) -> bool:
        return self._push(self.source, _columns(part))


def _columns(part: dict | None) -> dict:
    step, kind = (
        (np.empty(0), np.empty(0)) if part is None else (np.asarray(part["step"]), np.asarray(part["kind"]))
    )
    # Steps are counted back from the newest: float32 cannot hold the number of a long run's step.
    back = (step - step[-1] if step.size else step)[-STEPS:]
    kind = kind[-STEPS:]
    ticks = {}
    for code, height in HEIGHTS.items():
        ticks[f"tick{code}"] = separated(np.zeros(kind.size), np.where(kind == code, height, np.nan))
    return columns(
        x=back,
        tick_x=separated(back, back),
        **ticks,
        **{f"kind{code}": np.where(kind == code, HEIGHTS[code], np.nan) for code in EVENTS},
        head_x=[1.0, 1.0],
        head=[0.0, 1.0],
    )
