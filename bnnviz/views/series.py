"""Draw several lines in the colours of the chains: what the figures that compare methods share."""

from __future__ import annotations

from collections.abc import Sequence

from bnnviz.views.base import Columns, View, columns
from bnnviz.views.canvas import Glyph, PackedColumns
from bnnviz.views.palette import DARK, LIGHT, Kind, legend, line_html, mark_html

MOST = len(LIGHT.chains)
#: Dashes too, since colour alone does not tell lines apart for everybody.
DASHES = ((), (8, 4), (2, 3), (10, 3, 2, 3), (5, 2), (14, 4), (1, 2), (6, 3, 1, 3))
#: And shapes, where dashes tell other things apart.
MARKS = tuple(
    Kind(f"series {k + 1}", shape, "ink", filled=(k % 2 == 0) == (k < 4))
    for k, shape in enumerate(("circle", "square", "triangle", "diamond") * 2)
)


class SeriesView(View):
    """Draw up to eight named things, each with glyphs in a colour of its own."""

    def __init__(self, scene: dict | None = None, dark: bool = False) -> None:
        self.names: tuple[str, ...] = ()
        self._glyphs: list[tuple[Glyph, ...]] = []
        self.packed_columns: list[PackedColumns] = []
        super().__init__(scene, dark)

    def reset(self, scene: dict) -> None:
        """Forget what was shown."""
        self.note, self.names = "", ()
        self._empty(*self.packed_columns)

    def theme(self, dark: bool) -> None:
        """Change every colour in place, the lines' too."""
        for glyphs, colour in zip(self._glyphs, (DARK if dark else LIGHT).chains, strict=True):
            for glyph in glyphs:
                glyph.update(colour=colour, fill=colour if glyph.fill else None)
        super().theme(dark)

    def legend_html(self) -> str:
        """Give the legend: a line for each, where there is more than one."""
        if len(self.names) < 2:
            return ""
        pairs = zip(self.names, self.palette.chains, DASHES, strict=False)
        return legend(*(line_html(n, c, self.palette, dash=" ".join(map(str, d))) for n, c, d in pairs))

    def _marked(self, source: PackedColumns, x: str, y: str, place: int, size: float = 8.0) -> Glyph:
        """Draw the marks of a series, each in its shape."""
        glyph = self.canvas.marks(source, x, y, MARKS[place], size)
        glyph.fill = "set by the theme" if MARKS[place].filled else None
        return glyph

    def _marks_html(self) -> list[str]:
        """Return a legend entry with its mark for each series."""
        lanes = zip(self.names, self.palette.chains, MARKS, strict=False)
        return [mark_html(mark, self.palette, name, colour=colour) for name, colour, mark in lanes]

    def _make_packed_columns(self, names: Sequence[str]) -> list[PackedColumns]:
        """Make the columns of each series."""
        self.packed_columns = [PackedColumns(names) for _ in range(MOST)]
        return self.packed_columns

    def _dotted(
        self, packed: PackedColumns, x: str, y: str, dash: tuple[int, ...], kind: Kind, size: float
    ) -> tuple[Glyph, Glyph]:
        """Draw a dashed line with a dot at each of its points."""
        line, dots = self.canvas.line(packed, x, y, width=2.2, dash=dash), self.canvas.marks(packed, x, y, kind, size)
        dots.fill = "set by the theme"
        return line, dots

    def _push_each(self, series: Sequence[Columns]) -> bool:
        """Send the columns of each series; those without one are emptied. Return whether anything changed."""
        changed = False
        for place, packed in enumerate(self.packed_columns):
            empty = columns(**dict.fromkeys(packed.data, ()))
            changed |= self._push(packed, series[place] if place < len(series) else empty)
        return changed

    def _name(self, names: Sequence[str]) -> bool:
        """Take the names of what is shown; return whether they are others than before."""
        changed = tuple(names) != self.names
        self.names = tuple(names)
        return changed
