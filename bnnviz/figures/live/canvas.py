"""Send marks to the browser, which draws them on a canvas over the frame of a Bokeh figure.

Bokeh would paint the whole figure for each change of a glyph, 10 to 14 ms of a browser's time. The canvas takes 1 to 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bokeh.core.validation import silence
from bokeh.core.validation.warnings import MISSING_RENDERERS
from bokeh.models import ColumnDataSource, CustomJS
from bokeh.plotting import figure
from bokeh.resources import Resources

from bnnviz.figures.marks import Image, Mark, Points, Text, style_of
from bnnviz.figures.palette import FONT, Palette

# A figure that is drawn on a canvas alone has no renderers.
silence(MISSING_RENDERERS, True)


def bokeh_js() -> str:
    """Return BokehJS as it is installed, for pages that need no network."""
    # Other libraries such as Panel may add files.
    files = map(Path, Resources(mode="absolute", components=["bokeh"]).js_files)
    return next(path for path in files if path.name == "bokeh.min.js").read_text(encoding="utf-8")


CODE = Path(__file__).with_name("canvas.js").read_text(encoding="utf-8")


class Sheet:
    """Send the data of marks as one array: the number of points of each mark, then their columns."""

    def __init__(self) -> None:
        self.packed = np.empty(0, np.float32)  # the array that is sent
        self.model = ColumnDataSource({"packed": self.packed})
        self.names: list[list[str]] = []  # of the columns of each mark
        self._marks: tuple[Mark, ...] = ()

    def push(self, marks: tuple[Mark, ...]) -> bool:
        """Send these marks; return whether they are others than before."""
        if len(marks) == len(self._marks) and all(a is b for a, b in zip(marks, self._marks, strict=True)):
            return False
        self._marks = marks
        columns = [mark.packed() for mark in marks]
        self.names = [mark.column_names for mark in marks]
        counts = np.array([each[0].size for each in columns], np.float32)
        packed = np.concatenate([counts, *(column for each in columns for column in each)])
        if np.array_equal(packed, self.packed, equal_nan=True):
            return False
        self.packed = packed
        self.model.data = {"packed": packed}
        return True


class Canvas:
    """Draw marks in a figure."""

    def __init__(self, root: figure) -> None:
        self.sheets = self.moving, self.still = Sheet(), Sheet()
        self.model = ColumnDataSource()
        held = {"moving": self.moving.model, "still": self.still.model}
        draw = CustomJS(args={"figure": root, "marks": self.model, **held}, code=CODE)
        # All sources belong to the document from the beginning, with marks or without.
        root.tags = [self.model, *(sheet.model for sheet in self.sheets)]
        # The browser sets the inner size once the figure has been laid out.
        for name in ("inner_width", "inner_height"):
            root.js_on_change(name, draw)
        self.model.js_on_change("tags", draw)
        for sheet in self.sheets:
            sheet.model.js_on_change("data", draw)
        self._styles: list[tuple[Any, ...]] | None = None
        self.styled = 0  # how often the styles have changed
        self.marks: tuple[Mark, ...] = ()

    def show(self, marks: Sequence[Mark], palette: Palette) -> bool:
        """Draw these marks instead of those before; return whether anything changed."""
        self.marks = tuple(marks)
        styles: list[tuple[Any, ...]] = [(id(palette),), *((*mark.style(), mark.still) for mark in marks)]
        restyled = styles != self._styles
        if restyled:
            self._styles = styles
            self.styled += 1
            self.model.tags = [self._plain(mark, palette) for mark in marks]
        moved = self.moving.push(tuple(mark for mark in marks if not mark.still))
        return self.still.push(tuple(mark for mark in marks if mark.still)) or moved or restyled

    def _plain(self, mark: Mark, palette: Palette) -> dict[str, Any]:
        """Return the style of a mark as the browser reads it."""
        style = style_of(mark) | {"kind": type(mark).__name__.lower(), "columns": mark.column_names}
        # No model is named here: Bokeh would collect all models of the page for each figure.
        style |= {"still": mark.still, "font": FONT, "fill": None}
        if isinstance(mark, Points):
            style |= {"shape": mark.kind.marker, "size": mark.size * mark.kind.size, "colour": palette.of(mark.role)}
            return style | {"kind": "points", "fill": palette.of(mark.face) if mark.face else None}
        if isinstance(mark, Image):
            return style | {"ramp": [palette.of(role) for role in mark.ramp]}
        if isinstance(mark, Text):
            style["colours"] = [palette.of(role) for role in mark.colours]
        return style | {"colour": palette.of(mark.colour)}
