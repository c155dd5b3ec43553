"""Density: how the draws of a target's only coordinate are spread, beside the known density."""

from __future__ import annotations

from bnnviz.views.base import View, columns, extent
from bnnviz.views.ink import Sheet
from bnnviz.views.palette import band_html, legend, line_html

HEADROOM, MOST = 1.25, 1.6  # of the known density's height: few draws make towers


class DensityView(View):
    """A histogram of all draws, and the density that they should have."""

    name = "density"
    title = "Density"
    needs = ("density",)

    def _build(self) -> None:
        fig = self._figure("x1", "density", (-4.0, 4.0), (0.0, 0.5))
        fig.yaxis[0].ticker.desired_num_ticks = 3
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self.source, self.known = Sheet(("x", "y")), Sheet(("x", "y"))
        self._bars = self.ink.bars(self.source, "x", "y", width=1.0)
        self._bars.opacity = 0.45
        self._inked(self._bars, role="blue")
        self._inked(self.ink.line(self.known, "x", "y", width=2.4), role="ink")

    def reset(self, scene: dict) -> None:
        """Draw the known density of the new run's target."""
        self.forget()
        density = scene["density"]
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
        self._push(self.source, columns(x=[], y=[]))

    def legend_html(self) -> str:
        """Give the legend: the draws and the truth."""
        p = self.palette
        return legend(band_html("draws", p.blue, p, (0.45,)), line_html("the target", p.ink, p))

    def _show(self, part: dict) -> bool:
        self.note = f"{part['draws']:,} draws"
        if self._bars.width != part["width"]:
            self._bars.width = part["width"]
            self.ink.publish()
        self._y.cover((0.0, min(float(part["y"].max()), MOST * float(self.known.data["y"].max()))))
        return self._push(self.source, columns(x=part["x"], y=part["y"]))
