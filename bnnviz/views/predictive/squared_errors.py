"""Draw a box and a violin of each method's squared errors, on a log scale."""

from __future__ import annotations

import math

import numpy as np
from bokeh.models import FixedTicker

from bnnviz.views.base import columns, extent
from bnnviz.views.palette import Kind, legend, mark_html
from bnnviz.views.series import MOST, SeriesView

VIOLIN, BOX = 0.42, 0.11  # half their heights, in units of the places
ROOM = 0.02
_TICKS = 6
OUTSIDE = Kind("beyond the whiskers", "dot", "ink", True)
MEAN = Kind("mean", "diamond", "ink", True)
_COLUMNS = [
    *("x", "low", "high", "box_x", "box_low", "box_high"),
    *("line_x", "line_y", "out_x", "out_y", "mean_x", "mean_y"),
]
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class SquaredErrorsView(SeriesView):
    """Draw the spread over the test rows: violin, box of the middle half, whiskers, and the mean."""

    name = "errors2"
    title = "Squared errors of the test rows"
    needs = ("errors2",)

    def _build(self) -> None:
        fig = self._figure("squared error", "", (-4.0, 2.0), (0.5, -0.5), min_border_left=110)
        self._x = self._window(fig.x_range)
        for packed in self._make_packed_columns(_COLUMNS):
            violin = self.canvas.band(packed, "x", "low", "high", opacity=0.3)
            outline = self.canvas.line(packed, "line_x", "line_y", width=1.8)
            outside = self.canvas.marks(packed, "out_x", "out_y", OUTSIDE, 3)
            outside.fill = "set by the theme"
            box = self.canvas.band(packed, "box_x", "box_low", "box_high", opacity=0.65)
            self._glyphs.append((violin, outline, outside, box))
            self._coloured(self.canvas.marks(packed, "mean_x", "mean_y", MEAN, 10), MEAN)

    def reset(self, scene: dict) -> None:
        """Forget the errors."""
        super().reset(scene)
        self._x.start_at(-4.0, 2.0)
        self._x.restart()

    def legend_html(self) -> str:
        """Give the legend: the marks; the methods stand at the axis."""
        return legend(mark_html(MEAN, self.palette))

    def _show(self, part: dict) -> bool:
        boxes = part["boxes"][:MOST]
        if self._name([box["name"] for box in boxes]):
            self._places()
        zeros = sum(box["zeros"] for box in boxes)
        self.note = f"{zeros} errors of zero are left out" if zeros else ""
        reach = extent(*([box["low"], box["high"], box["mean"], *_ends(box)] for box in boxes)) if boxes else None
        if reach is not None:
            room = ROOM * (reach[1] - reach[0] + 1e-9)
            self._x.cover((reach[0] - room, reach[1] + room))
            self._tick()
        return self._push_each([columns(**_columns(box, place)) for place, box in enumerate(boxes)])

    def _places(self) -> None:
        """Write the names at the axis, the first one on top."""
        names = dict(enumerate(self.names))
        self.root.yaxis[0].update(ticker=FixedTicker(ticks=list(names)), major_label_overrides=names)
        self.root.y_range.update(start=len(names) - 0.5, end=-0.5)

    def _tick(self) -> None:
        """Put ticks at powers of ten, few enough to be read."""
        start, end = math.floor(self.root.x_range.start), math.ceil(self.root.x_range.end)
        step = max(1, math.ceil((end - start) / _TICKS))
        first = math.ceil(start / step) * step
        ticks = {power: f"10{str(power).translate(_SUPERSCRIPTS)}" for power in range(first, end + 1, step)}
        axis = self.root.xaxis[0]
        if axis.major_label_overrides != ticks:
            axis.update(ticker=FixedTicker(ticks=list(ticks)), major_label_overrides=ticks)


def _ends(box: dict) -> list[float]:
    outside = np.asarray(box["outside"])
    return [float(outside.min()), float(outside.max())] if outside.size else []


def _columns(box: dict, place: int) -> dict:
    """Return the columns of one method; its violin and box lie along the axis of the errors."""
    density = np.asarray(box["density"], dtype=float)
    half = VIOLIN * density / density.max() if density.size else density
    low, q1, median, q3, high = (box[name] for name in ("low", "q1", "median", "q3", "high"))
    top, bottom, gap = place - BOX, place + BOX, math.nan
    whiskers_x = (low, q1, gap, q3, high, gap, low, low, gap, high, high, gap, median, median)
    cap = BOX / 2
    whiskers_y = (place, place, gap, place, place, gap, place - cap, place + cap, gap, place - cap, place + cap, gap)
    return {
        "x": box["y"],
        "low": place - half,
        "high": place + half,
        "box_x": (q1, q3),
        "box_low": (top, top),
        "box_high": (bottom, bottom),
        "line_x": whiskers_x,
        "line_y": (*whiskers_y, place - 2 * BOX, place + 2 * BOX),
        "out_x": box["outside"],
        "out_y": np.full(len(box["outside"]), place),
        "mean_x": (box["mean"],),
        "mean_y": (place,),
    }
