"""Draw several series, distinguished by colour and dashes."""

from __future__ import annotations

from typing import Any

from bnnviz.figures.marks import Line, Mark, Points, chain, dash_of
from bnnviz.figures.palette import Kind

_DOT = Kind("", "dot", "ink", True)


def dotted(x: Any, y: Any, place: int, label: str, size: float = 6) -> list[Mark]:
    """Return a dashed line with a dot at each of its points: the first point alone makes no line."""
    look = {"colour": chain(place), "label": label}
    return [Line(x, y, 2.2, dash_of(place), **look), Points(x, y, _DOT, size, **look)]
