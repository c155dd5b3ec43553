"""Draw all draws of a run of both samplers of the double well, as histograms over the true density."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import View, columns, extent
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import band_html, legend, line_html

HEADROOM, MOST = 1.2, 2.2


class PooledView(View):
    """Draw histograms of the watched run's draws, and the density that they should have."""

    name = "pooled"
    title = "Draws of this run"
    needs = ("pooled",)

    def _build(self) -> None:
        fig = self._figure("t", "density", (-2.0, 2.0), (0.0, 1.0))
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self.truth, self.func, self.point = (
            PackedColumns(("x", "y")),
            PackedColumns(("x", "y")),
            PackedColumns(("x", "y")),
        )
        self._bars = self.canvas.bars(self.func, "x", "y", width=0.1)
        self._bars.opacity = 0.45
        self._coloured(self._bars, role="green")
        self._coloured(self.canvas.line(self.point, "x", "y", width=1.8), role="purple")
        self._coloured(self.canvas.line(self.truth, "x", "y", width=2.4), role="ink")

    def reset(self, scene: dict) -> None:
        """Draw the truth of other wells."""
        self.note = ""
        self._x.start_at(*extent(scene["x"]))
        self._y.start_at(0.0, HEADROOM * float(scene["truth"].max()))
        self._push(self.truth, columns(x=scene["x"], y=scene["truth"]))
        self._empty(self.func, self.point)

    def legend_html(self) -> str:
        """Give the legend."""
        p = self.palette
        return legend(
            band_html("FuncHMC", p.green, p, (0.45,)), line_html("HMC", p.purple, p), line_html("the target", p.ink, p)
        )

    def _show(self, part: dict) -> bool:
        if not part["func_draws"]:
            return False
        self.note = f"from the truth: FuncHMC {part['func_distance']:.2f}, HMC {part['point_distance']:.2f}"
        if self._bars.width != part["width"]:
            self._bars.width = float(part["width"])
            self.canvas.publish()
        self._y.cover((0.0, min(float(max(part["func"].max(), part["point"].max())), MOST * float(self._highest()))))
        half = part["width"] / 2
        steps = np.column_stack([part["x"] - half, part["x"] + half]).ravel()
        moved = self._push(self.point, columns(x=steps, y=np.repeat(part["point"], 2)))
        return self._push(self.func, columns(x=part["x"], y=part["func"])) or moved

    def _highest(self) -> float:
        return float(self.truth.data["y"].max())
