"""Draw how well each sampler predicts, against the seconds that it has worked."""

from __future__ import annotations

import numpy as np

from bnnviz.numerals import general
from bnnviz.views.base import columns, extent
from bnnviz.views.palette import Kind
from bnnviz.views.series import DASHES, MOST, SeriesView

ROOM = 0.06
LEAST_ROOM = 0.02  # above and below: the first figure alone is no reason to tell hundred thousandths apart
DOT = Kind("figure", "dot", "ink", True)
#: What can be shown, and what the axis says of it.
MEASURES = {"accuracy": "accuracy", "nll": "NLL", "ece": "ECE"}


class CourseView(SeriesView):
    """Draw one of accuracy, negative log predictive density and calibration error of the test rows, over time.

    The part ``course``: ``lanes``, each with ``name``, ``seconds`` and a list for each measure.
    """

    name = "course"
    title = "Over time"
    needs = ("course",)

    def _build(self) -> None:
        self.measure = next(iter(MEASURES))
        self._part: dict | None = None
        fig = self._figure("seconds of each sampler", "", (0.0, 10.0), (0.0, 1.0))
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        for packed, dash in zip(self._make_packed_columns(("x", "y")), DASHES, strict=True):
            self._glyphs.append(self._dotted(packed, "x", "y", dash, DOT, 6))

    def reset(self, scene: dict) -> None:
        """Forget the lines."""
        super().reset(scene)
        self._part = None
        self._x.start_at(0.0, 10.0)
        self._x.restart()
        self._y.restart()

    def choose(self, measure: str) -> None:
        """Show another measure, a key of `MEASURES`."""
        self.measure = measure
        self._y.restart()
        if self._part is not None:
            self._show(self._part)

    def _show(self, part: dict) -> bool:
        self._part = part
        lanes = part["lanes"][:MOST]
        changed = self._name([lane["name"] for lane in lanes])
        self.y_label = MEASURES[self.measure]
        values = [np.asarray(lane[self.measure], dtype=float) for lane in lanes]
        across = extent(*(lane["seconds"] for lane in lanes)) if lanes else None
        up = extent(*values) if lanes else None
        if across is not None and up is not None:
            self._x.cover((0.0, max(across[1], 1e-3)))
            room = max(ROOM * (up[1] - up[0]), LEAST_ROOM)
            self._y.cover((up[0] - room, up[1] + room))
        self.note = "; ".join(
            f"{lane['name']} {general(y[-1])}" for lane, y in zip(lanes, values, strict=True) if len(y)
        )
        series = [columns(x=lane["seconds"], y=y) for lane, y in zip(lanes, values, strict=True)]
        return self._push_each(series) or changed
