"""Draw the error of each lane of a race against the gradients it has spent, both on a log scale."""

from __future__ import annotations

import math

import numpy as np
from bokeh.models import FixedTicker, Range1d

from bnnviz.views.base import View, columns, extent
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import DARK, LIGHT, Kind, legend, line_html

MOST_LANES = 6
BAND = 0.16  # opacity of two standard errors to each side
HIGHEST = 2.0  # powers of ten: what is further from the truth than 100 sd runs out of the picture
ROOM = 0.12  # powers of ten, over and under the curves
EDGE = 0.03  # of the width, between a cross and the edge that it lies beyond
FEW_DECADES = 2.0  # across so many there are ticks at 2 and 5 too
DIVERGED = Kind("diverged", "x", "ink", False)
#: The shape at the end of each lane's curve: colour alone does not tell lanes apart for everybody.
ENDS = tuple(
    Kind(f"lane {i + 1}", marker, "ink", i % 2 == 0)
    for i, marker in enumerate(("circle", "square", "triangle", "diamond", "circle", "square"))
)
_UNITS = ((9, "G"), (6, "M"), (3, "k"), (0, ""))


class CurvesView(View):
    """Draw errors of mean and sd against the truth, the lower the better; a cross is where a lane diverged.

    The band is two standard errors to each side, by the jackknife over chains.
    """

    name = "curves"
    title = "Error against gradients"
    needs = ("curves",)

    def _build(self) -> None:
        fig = self._figure("gradients of each lane", "error (sd)", (3.0, 6.0), (-2.0, 1.0))
        self._x, self._y = fig.x_range, self._window(fig.y_range)
        self._names: list[str] = []
        names = ("x", "y", "low", "high", "end_x", "end_y", "lost_x", "lost_y")
        self.packed_columns = [PackedColumns(names) for _ in range(MOST_LANES)]
        self._glyphs = []
        for packed, end in zip(self.packed_columns, ENDS, strict=True):
            band = self.canvas.band(packed, "x", "low", "high", opacity=BAND)
            line = self.canvas.line(packed, "x", "y", width=2.4)
            mark = self.canvas.marks(packed, "end_x", "end_y", end, 9, width=2)
            cross = self.canvas.marks(packed, "lost_x", "lost_y", DIVERGED, 12, width=3)
            self._glyphs.append((line, mark, cross, band))

    def reset(self, scene: dict) -> None:
        """Begin a new race: its lanes and its budget."""
        self._names = [lane["name"] for lane in scene["lanes"]]
        self.note = ""
        self._scale_x(scene["budget"])
        self._y.start_at(-2.0, 1.0)
        self._y.restart()
        self._tick(self.root.yaxis[0], self.root.y_range, _plain)
        for packed in self.packed_columns:
            self._push(packed, _columns(([],) * 4, math.nan, (0.0, 0.0)))

    def theme(self, dark: bool) -> None:
        """Change every colour in place, the lanes' too."""
        palette = DARK if dark else LIGHT
        for glyphs, end, colour in zip(self._glyphs, ENDS, palette.chains, strict=False):
            for glyph in glyphs:
                glyph.update(colour=colour)
            glyphs[1].update(fill=colour if end.filled else palette.surface)
        super().theme(dark)

    def legend_html(self) -> str:
        """Give the legend: a line for each lane."""
        p = self.palette
        return legend(*(line_html(name, colour, p) for name, colour in zip(self._names, p.chains, strict=False)))

    def _scale_x(self, budget: int) -> None:
        """Show the last power of ten up to the budget, until a lane has draws before that."""
        end = math.log10(budget)
        self._x.update(start=end - 1, end=end + ROOM / 4)
        self._tick(self.root.xaxis[0], self._x, _counted)

    def _show(self, part: dict) -> bool:
        lanes = [_logarithms(lane) for lane in part["lanes"]]
        reach = extent(*[y for _, y, _, _ in lanes]) if lanes else None
        if reach is not None:
            self._begin_at(min(float(x[0]) for x, _, _, _ in lanes if len(x)) - ROOM / 4)
            self._y.cover((reach[0] - ROOM, min(reach[1], HIGHEST) + ROOM))
            self._tick(self.root.yaxis[0], self.root.y_range, _plain)
        left, right = float(self._x.start), float(self._x.end)
        corner = left + EDGE * (right - left), float(self.root.y_range.end) - ROOM / 2
        changed = [
            self._push(packed, _columns(of_lane, lane["diverged"], corner))
            for packed, lane, of_lane in zip(self.packed_columns, part["lanes"], lanes, strict=False)
        ]
        return any(changed)

    def _begin_at(self, start: float) -> None:
        """Show what is further to the left, too."""
        if start < self._x.start:
            self._x.start = start
            self._tick(self.root.xaxis[0], self._x, _counted)

    def _words(self) -> str:
        ends = [(name, packed.data["end_y"]) for name, packed in zip(self._names, self.packed_columns, strict=False)]
        texts = [f"{name} {10 ** float(y[0]):.2g}" for name, y in ends if y.size and np.isfinite(y[0])]
        return "; ".join(texts)

    @staticmethod
    def _tick(axis: object, range_: Range1d, word: object) -> None:
        """Put ticks at powers of ten, at twice and five times them too where there are few."""
        start, end = float(range_.start), float(range_.end)
        each = (1, 2, 5) if end - start <= FEW_DECADES else (1,)
        powers = range(math.floor(start), math.ceil(end) + 1)
        values = [m * 10.0**power for power in powers for m in each]
        ticks = {math.log10(value): word(value) for value in values if start <= math.log10(value) <= end}
        if axis.major_label_overrides != ticks:
            axis.update(ticker=FixedTicker(ticks=list(ticks)), major_label_overrides=ticks)


def _logarithms(lane: dict) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the logarithms of gradients, errors and their intervals, where errors are finite and above zero."""
    x, y = np.asarray(lane["gradients"], dtype=float), np.asarray(lane["error"], dtype=float)
    fit = np.isfinite(y) & (y > 0) & (x > 0)
    x, y = np.log10(x[fit]), np.log10(y[fit])
    low, high = (np.log10(np.asarray(lane.get(f"error_{end}", lane["error"]), float)[fit]) for end in ("low", "high"))
    # Of unknown width: none.
    return x, y, np.where(np.isfinite(low), low, y), np.where(np.isfinite(high), high, y)


def _columns(of_lane: tuple, diverged: float, corner: tuple[float, float]) -> dict:
    """Return a lane's columns; a cross that would lie outside is put at the edge, left and top as in ``corner``."""
    x, y, low, high = of_lane
    lost = math.isfinite(diverged)
    end = ([], []) if lost or not len(x) else (x[-1:], y[-1:])
    lost_x = [max(math.log10(max(diverged, 1.0)), corner[0])] if lost else []
    lost_y = [min(float(y[-1]), corner[1]) if len(y) else corner[1]] if lost else []
    return columns(x=x, y=y, low=low, high=high, end_x=end[0], end_y=end[1], lost_x=lost_x, lost_y=lost_y)


def _plain(value: float) -> str:
    return f"{value:.10g}"


def _counted(value: float) -> str:
    """Write a number of gradients short: 200k, 1M."""
    power, unit = next(unit for unit in _UNITS if value >= 10 ** unit[0])
    return f"{value / 10**power:g}{unit}"
