"""Draw what moves in a figure on a canvas over its frame, so that axes and grid are not painted again.

Bokeh paints a whole figure for each change of one of its glyphs, 10 to 14 ms of a browser's time. A view that
changes with every frame leaves frame, axes, contours and tools to Bokeh and draws the rest itself: 1 to 2 ms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from bokeh.core.validation import silence
from bokeh.core.validation.warnings import MISSING_RENDERERS
from bokeh.models import ColumnDataSource, CustomJS
from bokeh.plotting import figure

from bnnviz.views.palette import Kind

# A figure that is drawn on a canvas alone has no renderers, and is none the worse for it.
silence(MISSING_RENDERERS, True)
_CODE = Path(__file__).with_name("canvas.js").read_text(encoding="utf-8")


class PackedColumns:
    """Send columns of numbers to the browser as one array: as many messages as arrays would cost more."""

    def __init__(self, names: Iterable[str]) -> None:
        self.data = {name: np.empty(0, np.float32) for name in names}
        self.model = ColumnDataSource({"packed": np.empty(0, np.float32)}, tags=[list(self.data)])

    def push(self, data: dict[str, np.ndarray]) -> None:
        """Take other columns of the same names."""
        self.data = {name: data[name] for name in self.data}
        self.model.data = {"packed": np.concatenate(list(self.data.values()))}


@dataclass
class Glyph:
    """Draw something from columns of a source."""

    kind: str
    source: PackedColumns
    x: str
    y: str
    colour: str = ""
    opacity: float = 1.0
    shown: bool = True
    width: float = 1.0
    dash: list[float] = field(default_factory=list)
    shape: str = ""
    size: float = 0.0
    dx: str = ""
    dy: str = ""
    fill: str | None = None
    of: str | None = None
    code: int = 0
    alpha: str | None = None
    scale: str | None = None
    top: str = ""
    text: str = ""
    font: str = ""
    centred: bool = False
    box: list[float] = field(default_factory=list)
    across: int = 0
    ramp: list[str] = field(default_factory=list)
    low: float = 0.0
    high: float = 1.0
    blended: bool = True

    def update(self, **properties: Any) -> None:
        """Set properties by name, as a Bokeh model does."""
        for name, value in properties.items():
            setattr(self, name, value)


class Canvas:
    """Hold and publish the glyphs of a figure."""

    def __init__(self, root: figure) -> None:
        self.glyphs: list[Glyph] = []
        self.model = ColumnDataSource()
        self._draw = CustomJS(args={"figure": root, "glyphs": self.model}, code=_CODE)
        self._heard: set[str] = set()
        root.tags = [self.model]
        # The browser sets the inner size once the figure has been laid out.
        for name in ("inner_width", "inner_height"):
            root.js_on_change(name, self._draw)
        self.model.js_on_change("tags", self._draw)

    def line(
        self,
        source: PackedColumns,
        x: str,
        y: str,
        *,
        width: float = 1.0,
        dash: tuple[float, ...] = (),
        opacity: float = 1.0,
    ) -> Glyph:
        """Draw a line."""
        return self._add(Glyph("line", source, x, y, width=width, dash=list(dash), opacity=opacity))

    def band(self, source: PackedColumns, x: str, low: str, high: str, *, opacity: float) -> Glyph:
        """Fill the area between two lines."""
        return self._add(Glyph("band", source, x, low, top=high, opacity=opacity))

    def bars(self, source: PackedColumns, x: str, y: str, *, width: float) -> Glyph:
        """Draw bars from zero, their width in units of the axis."""
        return self._add(Glyph("bars", source, x, y, width=width))

    def trail(self, source: PackedColumns, x: str, y: str, *, width: float) -> Glyph:
        """Draw a line whose older part, which comes first, fades."""
        return self._add(Glyph("trail", source, x, y, width=width))

    def marks(
        self,
        source: PackedColumns,
        x: str,
        y: str,
        kind: Kind,
        size: float,
        *,
        width: float = 1.6,
        of: str | None = None,
        code: int = 0,
        alpha: str | None = None,
        scale: str | None = None,
    ) -> Glyph:
        """Draw a mark at each point, or at those whose column ``of`` has the given code."""
        return self._add(
            Glyph(
                "marks",
                source,
                x,
                y,
                width=width,
                shape=kind.marker,
                size=size * kind.size,
                of=of,
                code=code,
                alpha=alpha,
                scale=scale,
            )
        )

    def segments(
        self,
        source: PackedColumns,
        x: str,
        y: str,
        dx: str,
        dy: str,
        *,
        width: float = 1.0,
        dash: tuple[float, ...] = (),
        of: str | None = None,
        code: int = 0,
        scale: str | None = None,
    ) -> Glyph:
        """Draw straight lines from points, each of its own width, or those whose column ``of`` has the given code."""
        more = {"dx": dx, "dy": dy, "dash": list(dash), "of": of, "code": code, "scale": scale}
        return self._add(Glyph("segments", source, x, y, width=width, **more))

    def arrow(self, source: PackedColumns, x: str, y: str, dx: str, dy: str, *, size: float, width: float) -> Glyph:
        """Draw an arrow from each point, of one length on the screen; of size 0 as long as its direction."""
        return self._add(Glyph("arrow", source, x, y, dx=dx, dy=dy, size=size, width=width))

    def words(self, source: PackedColumns, x: str, y: str, *, text: str, font: str, centred: bool = False) -> Glyph:
        """Write words beside each point, or on it."""
        return self._add(Glyph("words", source, x, y, text=text, font=font, centred=centred))

    def map(self, source: PackedColumns, value: str) -> Glyph:
        """Colour an area by values on a grid; its place and colours are set later."""
        return self._add(Glyph("cells", source, value, ""))

    def publish(self) -> None:
        """Send the glyphs as they are now; later only their data go."""
        self.model.tags = [
            {f.name: getattr(glyph, f.name) for f in fields(glyph)} | {"source": glyph.source.model}
            for glyph in self.glyphs
        ]

    @property
    def sources(self) -> list[PackedColumns]:
        """The packed columns that are drawn from."""
        return list({glyph.source.model.id: glyph.source for glyph in self.glyphs}.values())

    def _add(self, glyph: Glyph) -> Glyph:
        self.glyphs.append(glyph)
        if glyph.source.model.id not in self._heard:
            self._heard.add(glyph.source.model.id)
            glyph.source.model.js_on_change("data", self._draw)
        return glyph
