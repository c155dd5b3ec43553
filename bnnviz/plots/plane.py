"""Draw the density that a plane is cut through, under what moves in it."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
from contourpy import FillType, LineType, contour_generator

from bnnviz.plots import style
from bnnviz.views.palette import Palette
from bnnviz.views.plane import LEVELS


def contours(known: dict[str, Any] | None, x: hv.Dimension, y: hv.Dimension, palette: Palette) -> list[Any]:
    """Return the filled contours of a density (x, y, density), and their lines; nothing where none is known."""
    if known is None:
        return []
    lines = contour_generator(known["x"], known["y"], known["density"], line_type=LineType.Separate)
    fills = contour_generator(known["x"], known["y"], known["density"], fill_type=FillType.OuterOffset)
    drawn: list[Any] = []
    for low, high, colour in zip(LEVELS[:-1], LEVELS[1:], palette.contour, strict=True):
        pieces = zip(*fills.filled(low, high), strict=True)
        polygons = hv.Polygons([_polygon(*piece, (x.name, y.name)) for piece in pieces], [x, y])
        drawn.append(style.region(polygons, palette, colour))
    edges = [piece for level in LEVELS[:-1] for piece in lines.lines(level)]
    return [*drawn, style.line(hv.Path(edges, [x, y]), palette, palette.contour_line, 1.0)]


def _polygon(points: np.ndarray, offsets: np.ndarray, names: tuple[str, str]) -> dict[Any, Any]:
    """Return one region with its holes, as HoloViews has them."""
    rings = [points[first:last] for first, last in zip(offsets[:-1], offsets[1:], strict=True)]
    outer, holes = rings[0], rings[1:]
    return {names: outer, "holes": [holes]} if holes else {names: outer}


def level_lines(x: np.ndarray, y: np.ndarray, values: np.ndarray, level: float) -> list[np.ndarray]:
    """Return the lines (points, 2) on which values (y, x) have a level."""
    return contour_generator(x, y, values, line_type=LineType.Separate).lines(level)
