"""Draw the true density over that of each sampler's draws, which is one where they agree."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import View, columns, extent
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import legend, line_html

HIGHEST = 4.0


class DensityRatioView(View):
    """Draw the ratio: above one there are too few draws, below one too many; it ends where it leaves the picture."""

    name = "ratio"
    title = "Truth / draws (KLIEP)"
    needs = ("ratio",)

    def _build(self) -> None:
        fig = self._figure("t", "ratio", (-2.0, 2.0), (0.0, HIGHEST))
        self._x = self._window(fig.x_range)
        self.one = PackedColumns(("x", "y"))
        self.source = PackedColumns(("x", "func", "point"))
        self._coloured(self.canvas.line(self.one, "x", "y", width=2.0), role="ink")
        self._coloured(self.canvas.line(self.source, "x", "func", width=2.4), role="green")
        self._coloured(self.canvas.line(self.source, "x", "point", width=2.4), role="purple")

    def reset(self, scene: dict) -> None:
        """Begin again."""
        self._x.start_at(*extent(scene["x"]))
        self._push(self.one, columns(x=[scene["x"][0], scene["x"][-1]], y=[1, 1]))
        self._empty(self.source)

    def legend_html(self) -> str:
        """Give the legend."""
        p = self.palette
        return legend(line_html("FuncHMC", p.green, p), line_html("HMC", p.purple, p), line_html("1", p.ink, p))

    def _show(self, part: dict) -> bool:
        cut = {name: np.where(part[name] > HIGHEST, np.nan, part[name]) for name in ("func", "point")}
        return self._push(self.source, columns(x=part["x"], **cut))

    def _words(self) -> str:
        return "the true density over that of the draws, one where they agree"
