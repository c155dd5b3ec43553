"""Draw the futures that a run was parted in, over whatever a view shows of the one that is followed."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from bnnviz.views.base import Columns, columns
from bnnviz.views.canvas import Canvas, Glyph, PackedColumns
from bnnviz.views.palette import Palette

MOST = 4


def number(letter: str) -> int:
    """Return the place of a future among the colours: A has the first one."""
    return string.ascii_uppercase.index(letter)


def colour(letter: str, palette: Palette) -> str:
    """Return the colour of a future, everywhere the same."""
    return palette.chains[number(letter)]


class FutureLines:
    """Draw the lines of up to four futures."""

    def __init__(self, canvas: Canvas, names: Sequence[str], widths: Sequence[float]) -> None:
        self._names = tuple(names)
        self.packed = PackedColumns(self.columns({}))
        x, *heights = self._names
        self._lines = [
            [
                canvas.line(
                    self.packed, f"{x}{i}", f"{y}{i}", width=width, dash=() if width > 2 else (5, 4), opacity=0.9
                )
                for y, width in zip(heights, widths, strict=True)
            ]
            for i in range(MOST)
        ]

    @property
    def glyphs(self) -> list[Glyph]:
        """Everything that is drawn of them."""
        return [line for lines in self._lines for line in lines]

    def columns(self, part: dict[str, Any]) -> Columns:
        """Return the columns of a frame's part; one without futures empties them."""
        found = {number(future["letter"]): future for future in part.get("futures", ())}
        return columns(
            **{f"{name}{i}": found[i][name] if i in found else [] for i in range(MOST) for name in self._names}
        )

    def theme(self, palette: Palette) -> None:
        """Change the colours in place."""
        for lines, shade in zip(self._lines, palette.chains, strict=False):
            for line in lines:
                line.colour = shade
