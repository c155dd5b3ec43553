"""Share the parts of figures in a plane: the density if known, and axes that include it and everything moving."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from contourpy import FillType, LineType, contour_generator

from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Area, Axis, Drawing, Line, Mark
from bnnviz.figures.ranges import extent, joined, padded

LEVELS = (0.01, 0.05, 0.2, 0.5, 1.01)  # of the highest density; the last only closes the innermost band
MEMORY = 45  # frames
MARGIN = 0.04
SIMILAR = 1.7  # from this ratio of two axes on, neither has the other's scale


class PlaneFigure(Figure):
    """Draw in two coordinates or two principal components."""

    tools = True
    alike = True  # whether similar axes have one scale, which shows the angles of a path

    _contours: tuple[Any, list[Mark]] = (None, [])

    def blank(self) -> Drawing:
        """Return the plane of the scene, with its contours."""
        plane = self.scene.get("plane") or _NOWHERE
        contour = plane.get("contour")
        axes = {
            axis: Axis(plane[f"{axis}_label"], tuple(map(float, plane[f"{axis}_range"])), follow="exact")
            for axis in "xy"
        }
        return Drawing(self._drawn(contour), equal=self.alike and contour is not None and _similar(plane), **axes)

    def plane(self, part: dict[str, Any], now: dict[str, float] | None = None, **seen: Sequence[Any]) -> dict[str, Any]:
        """Return contours and axes that include all marks, with room for a large mark at ``now``."""
        plane = self.scene.get("plane") or {}
        labels = part["x_label"], part["y_label"]
        of_scene = labels == (plane.get("x_label"), plane.get("y_label"))
        contour = part.get("contour")
        if contour is None and of_scene:
            contour = plane.get("contour")
        axes = {}
        for axis in "xy":
            need = padded(extent(*seen[axis]), MARGIN, 0.0)
            if contour is not None:
                need = extent(need or [], contour[axis])
            axes[axis] = Axis(
                part[f"{axis}_label"],
                need,
                follow="settle",
                # The scene's plane keeps its axes.
                key=None if of_scene and part.get("contour") is None else (*labels, part.get("basis")),
                room_at=np.nan if now is None else float(now[axis]),
                memory=MEMORY,
            )
        equal = self.alike and of_scene and contour is not None and _similar(plane)
        return {"marks": self._drawn(contour), "equal": equal, **axes}

    def _drawn(self, contour: dict[str, Any] | None) -> list[Mark]:
        if self._contours[0] is not contour:
            self._contours = (contour, contours(contour))
        return self._contours[1]


_NOWHERE = {"x_label": "coordinate 1", "y_label": "coordinate 2", "x_range": (-3, 3), "y_range": (-3, 3)}


def contours(known: dict[str, Any] | None) -> list[Mark]:
    """Return the filled contours of a density (x, y, density) and their lines; nothing without a density."""
    if known is None:
        return []
    lines = contour_generator(known["x"], known["y"], known["density"], line_type=LineType.Separate)
    fills = contour_generator(known["x"], known["y"], known["density"], fill_type=FillType.OuterOffset)
    drawn: list[Mark] = []
    for place, (low, high) in enumerate(zip(LEVELS[:-1], LEVELS[1:], strict=True)):
        # Of each region the outer ring, and those of its holes.
        polygons = [
            [points[first:last] for first, last in pairwise(offsets)]
            for points, offsets in zip(*fills.filled(low, high), strict=True)
        ]
        drawn.append(Area(polygons, colour=f"contour {place}", still=True))
    edges = joined(piece for level in LEVELS[:-1] for piece in lines.lines(level))
    return [*drawn, Line(edges[:, 0], edges[:, 1], 1.0, colour="contour_line", still=True)]


def level_line(x: Any, y: Any, values: Any, level: float) -> np.ndarray:
    """Return the line (points, 2), with gaps, on which values (y, x) have a level."""
    return joined(contour_generator(x, y, values, line_type=LineType.Separate).lines(level))


def _similar(plane: dict[str, Any]) -> bool:
    width, height = (float(np.ptp(plane[f"{axis}_range"])) for axis in "xy")
    return 1 / SIMILAR < width / height < SIMILAR
