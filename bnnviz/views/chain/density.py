"""Draw how the draws of a target's only coordinate are spread, beside the known density.

Where a sampler's states are densities themselves, the last of them are drawn too.
"""

from __future__ import annotations

from bnnviz.views.base import View, columns, extent, gapped_curves
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import band_html, legend, line_html

HEADROOM, MOST = 1.25, 1.6  # of the known density's height: few draws make towers


class DensityView(View):
    """Draw a histogram of all draws, and the density that they should have."""

    name = "density"
    title = "Density"
    needs = ("density",)

    def _build(self) -> None:
        fig = self._figure("x1", "density", (-4.0, 4.0), (0.0, 0.5))
        fig.yaxis[0].ticker.desired_num_ticks = 3
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self._curved = False
        self.source, self.known = PackedColumns(("x", "y")), PackedColumns(("x", "y"))
        self._bars = self.canvas.bars(self.source, "x", "y", width=1.0)
        self._bars.opacity = 0.45
        self._coloured(self._bars, role="blue")
        self.curves, self.newest = PackedColumns(("x", "y")), PackedColumns(("x", "y"))
        self._coloured(self.canvas.line(self.curves, "x", "y", width=1.2, opacity=0.4), role="green")
        self._coloured(self.canvas.line(self.known, "x", "y", width=2.4), role="ink")
        self._coloured(self.canvas.line(self.newest, "x", "y", width=2.6), role="orange")

    def reset(self, scene: dict) -> None:
        """Draw the known density of the new run's target."""
        self.forget()
        density = scene["density"]
        self._curved = density is not None and density["curved"]
        if density is None:
            return
        self.x_label = density["label"]
        self.title = f"Density of {density['label']}"
        self._x.start_at(*extent(density["x"]))
        self._y.start_at(0.0, HEADROOM * density["y"].max())
        self._push(self.known, columns(x=density["x"], y=density["y"]))

    def forget(self) -> None:
        """Empty the histogram."""
        self.note = ""
        self._empty(self.source, self.curves, self.newest)

    def legend_html(self) -> str:
        """Give the legend: the draws and the truth, and the functionals where there are any."""
        p = self.palette
        drawn = [band_html("draws", p.blue, p, (0.45,)), line_html("the target", p.ink, p)]
        if self._curved:
            drawn += [line_html("functionals", p.green, p), line_html("the newest", p.orange, p)]
        return legend(*drawn)

    def _show(self, part: dict) -> bool:
        self.note = f"{part['draws']:,} draws"
        if self._bars.width != part["width"]:
            self._bars.width = part["width"]
            self.canvas.publish()
        self._y.cover((0.0, min(float(part["y"].max()), MOST * float(self.known.data["y"].max()))))
        moved = self._show_curves(part["curves"])
        return self._push(self.source, columns(x=part["x"], y=part["y"])) or moved

    def _show_curves(self, curves: dict | None) -> bool:
        """Draw the functionals; those that were accepted, the newest apart."""
        if curves is None:
            return False
        moved = self._push(self.curves, gapped_curves(curves["x"], curves["y"][curves["accepted"]]))
        return self._push(self.newest, columns(x=curves["x"], y=curves["y"][-1])) or moved
