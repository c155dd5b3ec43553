"""Draw the distributions that FuncHMC has been, over the true density, and the points of HMC."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import View, columns, extent, gapped_curves
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import Kind, legend, line_html, mark_html

HEADROOM, MOST = 1.15, 4.0  # of the known density's height
BELOW = 0.1  # of the height, where points lie under the axis
POINT = Kind("HMC's points", "circle", "purple", True)
NEWEST = Kind("its newest", "circle", "purple", False)
OLDEST = 0.3


class FunctionalsView(View):
    """Draw each accepted functional as a curve, the newest strong; the points of the other sampler under the axis."""

    name = "functionals"
    title = "FuncHMC's functionals and HMC's points"
    needs = ("wells",)

    def _build(self) -> None:
        fig = self._figure("t", "density", (-2.0, 2.0), (0.0, 1.0))
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self._top = 1.0
        self.truth, self.first = PackedColumns(("x", "y")), PackedColumns(("x", "y"))
        self.curves, self.newest = PackedColumns(("x", "y")), PackedColumns(("x", "y"))
        self.points, self.zero = PackedColumns(("x", "y", "alpha", "now")), PackedColumns(("x", "y"))
        canvas = self.canvas
        self._coloured(canvas.line(self.zero, "x", "y"), role="axis")
        self._coloured(canvas.line(self.curves, "x", "y", width=1.4, opacity=0.5), role="green")
        self._coloured(canvas.line(self.truth, "x", "y", width=3.0), role="ink")
        self._coloured(canvas.line(self.first, "x", "y", width=2.0, dash=(7, 5)), role="green")
        self._coloured(canvas.line(self.newest, "x", "y", width=3.0), role="orange")
        self._coloured(canvas.marks(self.points, "x", "y", POINT, 9, alpha="alpha"), POINT)
        self._coloured(canvas.marks(self.points, "x", "now", NEWEST, 17, width=2.6), NEWEST)

    def reset(self, scene: dict) -> None:
        """Draw the truth and the first functional of other wells."""
        self.note = ""
        x, truth = scene["x"], scene["truth"]
        self._top = HEADROOM * max(float(truth.max()), float(scene["first"].max()))
        self._x.start_at(*extent(x))
        self._y.start_at(-BELOW * self._top, self._top)
        self._push(self.truth, columns(x=x, y=truth))
        self._push(self.first, columns(x=x, y=scene["first"]))
        self._push(self.zero, columns(x=[x[0], x[-1]], y=[0, 0]))
        self._empty(self.curves, self.newest, self.points)

    def legend_html(self) -> str:
        """Give the legend."""
        p = self.palette
        return legend(
            line_html("the target", p.ink, p),
            line_html("first functional", p.green, p, dash="6 4"),
            line_html("functionals", p.green, p),
            line_html("the newest", p.orange, p),
            mark_html(POINT, p),
        )

    def _show(self, part: dict) -> bool:
        x, y = self.truth.data["x"], part["y"]
        if not len(y):
            return False
        moved = self._push(self.curves, gapped_curves(x, y[part["accepted"]]))
        moved = self._push(self.newest, columns(x=x, y=y[-1])) or moved
        self._y.cover((-BELOW * self._top, min(HEADROOM * float(y.max()), MOST * self._top)))
        place = np.full(len(part["points"]), -0.5 * BELOW * self._top)
        now = np.where(np.arange(len(place)) == len(place) - 1, place, np.nan)
        alpha = np.linspace(OLDEST, 1.0, len(place))
        self.note = f"{part['moves']} moves" if part["moves"] != 1 else "1 move"
        return self._push(self.points, columns(x=part["points"], y=place, alpha=alpha, now=now)) or moved
