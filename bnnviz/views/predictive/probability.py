"""Draw what the draws say of one row, as a histogram with a beta density."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import View, columns
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import band_html, legend, line_html

HEADROOM, MOST = 1.12, 1.6  # of the highest bar: a fit may run out of the picture at its ends
GAP = 0.06  # of a bar's width


class ProbabilityView(View):
    """Draw how many of the draws give a row which probability, and the beta density that is fitted to them."""

    name = "chances"
    title = "Probability of one row"
    needs = ("chances",)

    def _build(self) -> None:
        fig = self._figure("probability", "density", (0.0, 1.0), (0.0, 5.0))
        fig.yaxis[0].ticker.desired_num_ticks = 3
        self._window(fig.x_range)
        self._y = self._window(fig.y_range)
        self.source, self.fit = PackedColumns(("x", "y")), PackedColumns(("x", "y"))
        self._bars = self.canvas.bars(self.source, "x", "y", width=0.1 * (1 - GAP))
        self._bars.opacity = 0.5
        self._coloured(self._bars, role="blue")
        self._coloured(self.canvas.line(self.fit, "x", "y", width=2.4), role="red")

    def reset(self, scene: dict) -> None:
        """Forget the row."""
        self.note = ""
        self._y.start_at(0.0, 5.0)
        self._y.restart()
        self._empty(self.source, self.fit)

    def legend_html(self) -> str:
        """Give the legend: draws and fit."""
        p = self.palette
        return legend(band_html("draws", p.blue, p, (0.5,)), line_html("beta density", p.red, p))

    def _show(self, part: dict) -> bool:
        edges, density = np.asarray(part["edges"]), np.asarray(part["density"])
        self.x_label = part["label"]
        beta = "" if part["beta"] is None else f"beta({part['beta'][0]:.3g}, {part['beta'][1]:.3g})"
        self.note = " · ".join(word for word in (part["observed"], beta, part["said"]) if word)
        width = float(edges[1] - edges[0]) * (1 - GAP)
        if self._bars.width != width:
            self._bars.width = width
            self.canvas.publish()
        top = float(density.max())
        fit = np.asarray(part["fit"])
        higher = float(np.max(fit, initial=0.0))
        self._y.cover((0.0, HEADROOM * max(top, min(higher, MOST * top))))
        changed = self._push(self.fit, columns(x=part["x"], y=fit))
        return self._push(self.source, columns(x=(edges[1:] + edges[:-1]) / 2, y=density)) or changed
