"""Draw figures of the predictions, iteration by iteration, with their spread over the draws."""

from __future__ import annotations

import numpy as np

from bnnviz.numerals import general
from bnnviz.views.base import Columns, columns, extent
from bnnviz.views.palette import Kind
from bnnviz.views.series import DASHES, MOST, SeriesView

SHADE = 0.18
ROOM = 0.06
DOT = Kind("iteration", "dot", "ink", True)


class HistoryView(SeriesView):
    """Draw the mean over the draws of an iteration, and one standard deviation to both sides."""

    name = "history"
    title = "Figures per iteration"
    needs = ("history",)

    def _build(self) -> None:
        fig = self._figure("iteration", "", (0.0, 10.0), (0.0, 1.0))
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        for packed, dash in zip(self._make_packed_columns(("x", "mean", "low", "high")), DASHES, strict=True):
            shade = self.canvas.band(packed, "x", "low", "high", opacity=SHADE)
            self._glyphs.append((shade, *self._dotted(packed, "x", "mean", dash, DOT, 6)))

    def reset(self, scene: dict) -> None:
        """Forget the lines."""
        super().reset(scene)
        self._x.start_at(0.0, 10.0)
        self._y.start_at(0.0, 1.0)
        self._x.restart()
        self._y.restart()

    def _show(self, part: dict) -> bool:
        lines = part["lines"][:MOST]
        changed = self._name([line["name"] for line in lines])
        self.y_label = part["label"]
        self._cover(lines)
        self.note = "; ".join(f"{line['name']} {general(line['mean'][-1])}" for line in lines if len(line["mean"]))
        return self._push_each([_columns(line) for line in lines]) or changed

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


def _columns(line: dict) -> Columns:
    mean, sd = np.asarray(line["mean"], dtype=float), np.nan_to_num(np.asarray(line["sd"], dtype=float))
    return columns(x=line["iteration"], mean=mean, low=mean - sd, high=mean + sd)
