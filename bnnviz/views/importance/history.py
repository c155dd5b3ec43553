"""History: figures of the predictions, iteration by iteration, with their spread over the draws."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import columns, extent
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import Kind
from bnnviz.views.series import DASHES, MOST, SeriesView

SHADE = 0.18
ROOM = 0.06
DOT = Kind("iteration", "dot", "ink", True)


class HistoryView(SeriesView):
    """The mean over the draws of an iteration, and one standard deviation to both sides."""

    name = "history"
    title = "Figures per iteration"
    needs = ("history",)

    def _build(self) -> None:
        fig = self._figure("iteration", "", (0.0, 10.0), (0.0, 1.0))
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self.sheets = [PackedColumns(("x", "mean", "low", "high")) for _ in range(MOST)]
        for sheet, dash in zip(self.sheets, DASHES, strict=True):
            shade = self.canvas.band(sheet, "x", "low", "high", opacity=SHADE)
            line = self.canvas.line(sheet, "x", "mean", width=2.2, dash=dash)
            dots = self.canvas.marks(sheet, "x", "mean", DOT, 6)
            dots.fill = "set by the theme"
            self._glyphs.append((shade, line, dots))

    def reset(self, scene: dict) -> None:
        """Forget the lines."""
        self.note, self.names = "", ()
        self._x.start_at(0.0, 10.0)
        self._y.start_at(0.0, 1.0)
        self._x.restart()
        self._y.restart()
        for sheet in self.sheets:
            self._push(sheet, columns(x=[], mean=[], low=[], high=[]))

    def _show(self, part: dict) -> bool:
        lines = part["lines"][:MOST]
        changed = self._name([line["name"] for line in lines])
        self.y_label = part["label"]
        self._cover(lines)
        self.note = "; ".join(f"{line['name']} {line['mean'][-1]:.3g}" for line in lines if len(line["mean"]))
        for place, sheet in enumerate(self.sheets):
            line = lines[place] if place < len(lines) else {"iteration": [], "mean": [], "sd": []}
            mean = np.asarray(line["mean"], dtype=float)
            sd = np.nan_to_num(np.asarray(line["sd"], dtype=float))
            data = columns(x=line["iteration"], mean=mean, low=mean - sd, high=mean + sd)
            changed |= self._push(sheet, data)
        return changed

    def _cover(self, lines: list[dict]) -> None:
        across = extent(*(line["iteration"] for line in lines)) if lines else None
        if across is None:
            return
        self._x.cover((across[0] - 0.5, across[1] + 0.5))
        sides = [np.asarray(line["mean"]) + side * np.nan_to_num(line["sd"]) for line in lines for side in (-1, 1)]
        up = extent(*sides)
        if up is not None:
            room = max(ROOM * (up[1] - up[0]), 1e-6)
            self._y.cover((up[0] - room, up[1] + room))
