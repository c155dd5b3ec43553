"""Draw the effective sample size of the weights as a share of the draws, iteration by iteration."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import View, columns
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import Kind, legend, line_html, mark_html

ALARM = 5.0  # percent
LEAST = 0.01  # percent; what is less lies on the axis
LOWEST, HIGHEST = -0.15, 2.15  # powers of ten, as long as no share is smaller
LOW = Kind("collapsed", "triangle", "magenta", True)
FINE = Kind("fine", "circle", "green", True)


class WeightEssView(View):
    """Draw the effective share of the draws in percent, on a log scale, with the line under which it is an alarm."""

    name = "gauge"
    title = "Weight ESS"
    needs = ("gauge",)

    def _build(self) -> None:
        fig = self._figure("iteration", "weight ESS (% of draws)", (0.0, 20.0), (LOWEST, HIGHEST))
        fig.yaxis[0].update(
            ticker=[-2, -1, 0, 1, 2], major_label_overrides={-2: "≤ .01", -1: ".1", 0: "1", 1: "10", 2: "100"}
        )
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self.source, self.limit = PackedColumns(("x", "y", "low")), PackedColumns(("x", "y"))
        self._coloured(self.canvas.line(self.limit, "x", "y", width=2, dash=(7, 5)), role="magenta")
        self._coloured(self.canvas.line(self.source, "x", "y", width=1.6), role="muted")
        for code, kind in enumerate((FINE, LOW)):
            self._coloured(self.canvas.marks(self.source, "x", "y", kind, 8, of="low", code=code), kind)

    def reset(self, scene: dict) -> None:
        """Forget the last run."""
        self.note = ""
        self._x.start_at(0.0, 20.0)
        self._y.start_at(LOWEST, HIGHEST)
        self._empty(self.source)
        self._push(self.limit, columns(x=[0.0, 1e6], y=[np.log10(ALARM)] * 2))

    def legend_html(self) -> str:
        """Give the legend."""
        p = self.palette
        return legend(
            mark_html(FINE, p), mark_html(LOW, p, f"under {ALARM:g} %"), line_html("alarm", p.magenta, p, dash="6 4")
        )

    def _show(self, part: dict) -> bool:
        iteration, percent = part["iteration"], 100 * part["share"]
        if not len(iteration):
            return False
        self.note = f"{part['ess']:,.1f} of {part['draws']:,} draws, {percent[-1]:.3g} %"
        first, last = float(iteration[0]), float(iteration[-1])
        if first > 1:
            self._x.start_at(first - 1, last + 1)
        else:
            self._x.cover((0.0, max(last + 1, 20.0)))
        height = np.log10(np.maximum(percent, LEAST))
        if self.follow and float(height.min()) < self._y.range.start:
            self._y.start_at(np.floor(float(height.min())) + LOWEST, HIGHEST)
        return self._push(self.source, columns(x=iteration, y=height, low=percent < ALARM))
