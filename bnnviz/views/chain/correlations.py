"""Draw how the coordinates of a layer, or of a target, are correlated over the draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.views.base import View, columns
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import legend, ramp_html
from bnnviz.views.pointer import Pointer


class CorrelationsView(View):
    """Draw a map of correlations; coordinates are numbered as in the draws, and a cell that is chosen tells its own."""

    name = "weights"
    title = "Correlations"
    needs = ("weights",)

    def _build(self) -> None:
        fig = self._figure("coordinate", "coordinate", (-0.5, 9.5), (-0.5, 9.5))
        for axis in fig.axis:
            axis.ticker.min_interval = 1
        self._pair: tuple[int, int] | None = None
        self._part: dict[str, Any] | None = None
        self._entered: tuple | None = None
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self.source, self.chosen = PackedColumns(("r",)), PackedColumns(("x", "y"))
        self._map = self.canvas.map(self.source, "r")
        self._map.update(low=-1.0, high=1.0, blended=False)
        self._coloured(self.canvas.line(self.chosen, "x", "y", width=1.2, dash=(4, 3)), role="ink")
        self.pointer = Pointer(fig, cells=True)

    def reset(self, scene: dict) -> None:
        """Forget the last run's draws."""
        self.x_label = "coordinate"
        self._x.start_at(-0.5, 9.5)
        self._y.start_at(-0.5, 9.5)
        self.forget()

    def forget(self) -> None:
        """Empty the map."""
        self.note, self._pair, self._part, self._entered = "", None, None, None
        self._empty(self.source, self.chosen)

    def theme(self, dark: bool) -> None:
        """Change every colour in place, the map's too."""
        super().theme(dark)
        self._map.ramp = self._ramp
        self.canvas.publish()

    @property
    def _ramp(self) -> list[str]:
        return [self.palette.blue, self.palette.surface, self.palette.orange]

    def legend_html(self) -> str:
        """Give the legend: the colours of -1, 0 and 1."""
        return legend(ramp_html("−1", "1", self._ramp, self.palette))

    def choose(self, x: float, y: float) -> int | None:
        """Tell the correlation at a place, and return the number of its coordinate across; None outside of the map."""
        if self._part is None:
            return None
        first, size = self._part["first"], len(self._part["correlation"])
        pair = round(x), round(y)
        if not all(first <= i < first + size for i in pair):
            return None
        self._pair = pair
        self.note = self._text()
        return pair[0]

    def _show(self, part: dict) -> bool:
        first, size = part["first"], len(part["correlation"])
        if self._entered != (part["block"], first, size):
            self._enter(part["block"], first, size)
        self._part = part
        self.note = self._text()
        moved = self._push(self.source, columns(r=part["correlation"]))
        return self._push(self.chosen, self._cross(part["chosen"])) or moved

    def _enter(self, block: str, first: int, size: int) -> None:
        """Begin with another block."""
        last, self._entered = first + size - 1, (block, first, size)
        self._pair, self.x_label = None, f"coordinate ({block})"
        for window in (self._x, self._y):
            window.start_at(first - 0.5, last + 0.5)
        self._map.update(box=[first, last, first, last], across=size)
        self.canvas.publish()

    def _cross(self, chosen: int | None) -> dict[str, np.ndarray]:
        """Return lines through the coordinate that is followed."""
        low, high = self._x.range.start, self._x.range.end
        if chosen is None or not low < chosen < high:
            return columns(x=[], y=[])
        return columns(x=[low, high, np.nan, chosen, chosen], y=[chosen, chosen, np.nan, low, high])

    def _text(self) -> str:
        if self._pair is None:
            return f"{self._part['draws']:,} draws"
        first, (i, j) = self._part["first"], self._pair
        return f"r({i}, {j}) {self._part['correlation'][j - first, i - first]:.2f}"
