"""Draw all draws of a run of both samplers of the double well, as histograms over the true density."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Axis, Bars, Drawing, Line, Mark, extent

HEADROOM, MOST = 1.2, 2.2


class Pooled(Figure):
    """Draw histograms of the watched run's draws, and the density that they should have."""

    name = "pooled"
    title = "Draws of this run"
    needs = ("pooled",)

    def blank(self) -> Drawing:
        """Return the true density."""
        return self._drawing([], [], 0.0) if "truth" in self.scene else super().blank()

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw the heights ``func`` and ``point`` of bars of ``width`` at ``x``."""
        if not part["func_draws"]:
            return self.blank()
        half = part["width"] / 2
        steps = np.column_stack([part["x"] - half, part["x"] + half]).ravel()
        bars = Bars(part["x"], part["func"], float(part["width"]), colour="green", opacity=0.45, label="FuncHMC")
        line = Line(steps, np.repeat(part["point"], 2), 1.8, colour="purple", label="HMC")
        note = f"distance to the target: FuncHMC {part['func_distance']:.2f}, HMC {part['point_distance']:.2f}"
        return self._drawing([bars], [line], float(max(part["func"].max(), part["point"].max())), note)

    def _drawing(self, under: list[Mark], over: list[Mark], highest: float, note: str = "") -> Drawing:
        x, truth = self.scene["x"], self.scene["truth"]
        top = float(truth.max())
        line = Line(x, truth, 2.4, label="the target", still=True)
        y = Axis("density", (0.0, max(HEADROOM * top, min(highest, MOST * top))))
        return Drawing([*under, *over, line], x=Axis("t", extent(x), follow="exact"), y=y, note=note)
