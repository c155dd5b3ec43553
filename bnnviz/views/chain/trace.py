"""Draw one number of each chain's draws, draw by draw, such as a principal component or an acceptance rate."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import View, columns, extent
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.futures import number
from bnnviz.views.palette import DARK, LIGHT, PICKED
from bnnviz.views.pointer import Pointer

MOST_CHAINS = 8


class TraceView(View):
    """Draw one number of each draw of up to eight chains: a component, a coordinate, or a sample statistic."""

    name = "trace"
    title = "Trace"
    needs = ("trace",)

    def _build(self) -> None:
        fig = self._figure("draw", "PC 1", (0.0, 100.0), (-3.0, 3.0))
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self._shown: tuple | None = None
        self._draws: tuple[float, float] | None = None
        self.source = PackedColumns(("draw", *(f"chain{i}" for i in range(MOST_CHAINS))))
        self._lines = [
            self.canvas.line(self.source, "draw", f"chain{i}", width=1.3, opacity=0.85) for i in range(MOST_CHAINS)
        ]
        self.picked = PackedColumns(("x", "y"))
        self._coloured(self.canvas.marks(self.picked, "x", "y", PICKED, 7, width=1), PICKED)
        self.pointer = Pointer(fig)

    def reset(self, scene: dict) -> None:
        """Forget the last run's chains."""
        self._draws = None
        self._shown, self.title = None, "Trace"
        self.y_label = "PC 1" if scene["dim"] > 2 else scene["names"][0]
        self._x.start_at(0.0, 100.0)
        self._y.restart()
        self._empty(self.source, self.picked)

    def mark(self, selection: dict) -> bool:
        """Mark the picked draws."""
        nothing = selection["kind"] == "none"
        x, y = ([], []) if nothing else (selection["trace_index"], selection["trace_value"])
        return self._push(self.picked, columns(x=x, y=y))

    def theme(self, dark: bool) -> None:
        """Change every colour in place, the chains' too."""
        for line, colour in zip(self._lines, (DARK if dark else LIGHT).chains, strict=True):
            line.colour = colour
        super().theme(dark)

    def _show(self, part: dict) -> bool:
        values = np.atleast_2d(part["values"])
        shown = (part["label"], part["basis"], len(values), part["chains"], tuple(part.get("futures", ())))
        if shown != self._shown:
            self._begin(shown)
        self._draws = extent(part["index"])
        self._follow_draws(self._draws)
        self._y.cover(extent(values))
        return self._push(self.source, _columns(part))

    def _words(self) -> str:
        return "" if self._draws is None else "draws {:,.0f} to {:,.0f}".format(*self._draws)

    def _begin(self, shown: tuple) -> None:
        """Name what is shown; another basis has another scale."""
        label, _, drawn, chains, futures = shown
        self._shown = shown
        count = "one chain" if chains == 1 else f"{chains} chains" if drawn == chains else f"{drawn} of {chains} chains"
        # Of futures the watched chain is shown, each in the colour that it has everywhere.
        self.title = f"{label} since the fork, {' and '.join(futures)}" if futures else f"{label}, {count}"
        self.y_label = label
        self._y.restart()
        self.pointer.unbox()

    def _follow_draws(self, need: tuple[float, float] | None) -> None:
        """Grow with the draws; where old ones leave, go on by half a window rather than at every draw."""
        if need is None:
            return
        first, last = need
        left_behind = first > self._x.range.start and last > self._x.range.end
        if self.follow and left_behind:
            self._x.start_at(first, first + max(1.5 * (last - first), 1.0))
        else:
            self._x.cover(need)


def _columns(part: dict) -> dict:
    lines = dict(enumerate(np.atleast_2d(part["values"])[:MOST_CHAINS]))
    if "futures" in part:
        lines = {number(letter): lines[i] for i, letter in enumerate(part["futures"])}
    chains = {f"chain{i}": lines.get(i, []) for i in range(MOST_CHAINS)}
    return columns(draw=part["index"], **chains)
