"""Draw which classes are taken for which."""

from __future__ import annotations

import numpy as np
from bokeh.core.properties import value
from bokeh.models import ColumnDataSource, FixedTicker

from bnnviz.views.base import FONT, View
from bnnviz.views.palette import Palette, ramp_html

SMALLEST, LARGEST = 9, 16  # pixels of the numbers' type
#: One of these has a contrast of 4.5 or more on whatever colour; a palette's own ink and card have not.
INKS = ("#000000", "#ffffff")
_CHANNELS = (0.2126, 0.7152, 0.0722)  # of the relative luminance of red, green and blue (WCAG 2)


class ConfusionView(View):
    """Draw rows by observed and predicted class; a cell is the darker, the larger its share of the observed."""

    name = "confusion"
    title = "Confusion matrix"
    needs = ("confusion",)

    def _build(self) -> None:
        fig = self._figure("predicted class", "observed class", (-0.5, 1.5), (1.5, -0.5))
        fig.grid.visible = False
        self._part: dict | None = None
        self.cells = ColumnDataSource({name: [] for name in ("x", "y", "colour", "text", "ink")})
        fig.rect("x", "y", width=0.96, height=0.96, source=self.cells, fill_color="colour", line_color=None)
        self._numbers = fig.text(
            "x",
            "y",
            text="text",
            source=self.cells,
            text_color="ink",
            text_align="center",
            text_baseline="middle",
            text_font=value(FONT),
            text_font_size=f"{LARGEST}px",
        )

    def reset(self, scene: dict) -> None:
        """Forget the matrix."""
        self.note, self._part = "", None
        self.cells.data = {name: [] for name in self.cells.data}

    def theme(self, dark: bool) -> None:
        """Change every colour in place, the cells' too."""
        super().theme(dark)
        if self._part is not None:
            self.cells.data = _cells(self._part, self.palette)

    def legend_html(self) -> str:
        """Give the legend: from no row of an observed class to all of them."""
        ends = [_mixed(self.palette, share) for share in (0.0, 1.0)]
        return ramp_html("none", "all of the class", ends, self.palette)

    def _show(self, part: dict) -> bool:
        matrix = np.asarray(part["matrix"], dtype=float)
        if self._part is not None and np.array_equal(matrix, self._part["matrix"]):
            return False
        known = self._part is not None and list(self._part["classes"]) == list(part["classes"])
        self._part = {"matrix": matrix, "classes": list(part["classes"])}
        total = matrix.sum()
        self.note = f"{100 * np.trace(matrix) / total:.1f} % of {total:.0f} rows right" if total else ""
        if not known:
            self._name_classes(self._part["classes"])
        self.cells.data = _cells(self._part, self.palette)
        return True

    def _name_classes(self, classes: list[str]) -> None:
        count = len(classes)
        names = dict(enumerate(classes))
        for axis in self.root.axis:
            axis.update(ticker=FixedTicker(ticks=list(names)), major_label_overrides=names)
        self.root.x_range.update(start=-0.5, end=count - 0.5)
        self.root.y_range.update(start=count - 0.5, end=-0.5)
        size = int(np.clip(110 / count, SMALLEST, LARGEST))
        self._numbers.glyph.text_font_size = f"{size}px"


def _cells(part: dict, palette: Palette) -> dict[str, list]:
    matrix = part["matrix"]
    y, x = np.indices(matrix.shape)
    of_class = matrix.sum(1, keepdims=True)
    shares = np.divide(matrix, of_class, out=np.zeros_like(matrix), where=of_class > 0)
    whole = np.allclose(matrix, matrix.round())
    colours = [_mixed(palette, share) for share in shares.ravel()]
    inks = [cell_ink(palette, share) for share in shares.ravel()]
    return {
        "x": x.ravel().tolist(),
        "y": y.ravel().tolist(),
        "colour": colours,
        "text": [cell_text(count, whole) for count in matrix.ravel()],
        "ink": inks,
    }


def cell_ink(palette: Palette, share: float) -> str:
    """Return the colour of the number in a cell of this share."""
    return max(INKS, key=lambda ink: _contrast(ink, _mixed(palette, share)))


def cell_text(count: float, whole: bool) -> str:
    """Write the number of a cell, with a digit behind the point where not all are ``whole``."""
    if whole:
        return f"{count:.0f}"
    return f"{count:.1f}" if count >= 0.05 else "0"


def _contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    share = _channels(colour) / 255
    return float(np.dot(_CHANNELS, np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)))


def _channels(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])


def _mixed(palette: Palette, share: float) -> str:
    """Return the colour of a cell: from the grid's to blue."""
    low, high = _channels(palette.grid), _channels(palette.blue)
    return "#" + "".join(f"{round(v):02x}" for v in low + (high - low) * share)
