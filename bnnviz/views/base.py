"""Share what every view does: build once, feed data sources, let ranges only grow, turn light and dark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from bokeh.core.property.descriptors import UnsetValueError
from bokeh.events import RangesUpdate, Reset
from bokeh.models import (
    BasicTicker,
    BasicTickFormatter,
    ColumnDataSource,
    Label,
    Node,
    Range1d,
)
from bokeh.plotting import figure
from bokeh.themes import Theme

from bnnviz.views.axis_range import AxisRange
from bnnviz.views.canvas import Canvas, Glyph, PackedColumns
from bnnviz.views.palette import DARK, LIGHT, Kind, Palette
from bnnviz.views.pointer import Pointer

FONT = "Roboto, Inter, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"
LABEL_SIZE, TICK_SIZE = 13, 12  # pixels
LOW, END = 55, 16  # pixels of height, and of the border beyond an axis's end
SHARES = (-0.07, 1.07)  # an axis of shares: a mark at 0 or 1 is seen whole in a low frame too
#: Lines of type for each number wanted at the vertical axis. A ticker may take 1.43 times as many as are wanted.
TICK_LINES, LEAST_TICKS = 1.6, 2
_NARROW, _WIDE = frozenset("iljftrI.,:;()[]/|' "), frozenset("mwMW%@")

#: A document theme that changes nothing. panel-material-ui restyles every axis, grid and figure in the
#: browser, except the kinds that the document's theme names, and the views colour themselves.
DOCUMENT_THEME = Theme(
    json={"attrs": {name: {} for name in ("Axis", "ColorBar", "Figure", "Grid", "Legend", "Plot", "Title")}}
)

Columns = dict[str, np.ndarray]


def columns(**arrays: Any) -> Columns:
    """Give float32 columns of one length, the shorter ones filled up with NaN (which draws nothing)."""
    flat = {name: np.asarray(values, dtype=np.float32).ravel() for name, values in arrays.items()}
    longest = max((a.size for a in flat.values()), default=0)
    return {
        name: a if a.size == longest else np.concatenate([a, np.full(longest - a.size, np.nan, np.float32)])
        for name, a in flat.items()
    }


def separated(*rows: Any) -> np.ndarray:
    """Interleave equally long arrays with NaN: (a0, b0, NaN, a1, b1, NaN, ...), one line of many glyphs."""
    stacked = np.stack([np.asarray(r, dtype=np.float32) for r in rows], axis=-1)
    return np.concatenate([stacked, np.full((*stacked.shape[:-1], 1), np.nan, np.float32)], axis=-1).ravel()


def gapped_curves(x: Any, rows: Any) -> Columns:
    """Give the columns of one line through many curves (curves, points) over x, with gaps between them."""
    rows = np.atleast_2d(np.asarray(rows, dtype=np.float32))
    if not rows.size:
        return columns(x=[], y=[])
    gap = np.full((len(rows), 1), np.nan, np.float32)
    x = np.tile(np.append(np.asarray(x, dtype=np.float32), np.float32(np.nan)), len(rows))
    return columns(x=x, y=np.hstack([rows, gap]))


def extent(*arrays: Any) -> tuple[float, float] | None:
    """Give the smallest and largest finite value, None when there is none."""
    values = np.concatenate([np.asarray(a, dtype=float).ravel() for a in arrays])
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if values.size else None


def text_width(text: str) -> float:
    """Return how wide a text is at most in the type of figures, in sizes of it."""
    return sum(0.34 if c in _NARROW else 0.94 if c in _WIDE else 0.72 if c.isupper() else 0.58 for c in text)


def _fitting(label: str, room: float) -> str:
    """Return as much of a label as has room: all, what stands before its unit, or nothing."""
    return next((text for text in (label, label.split(" (")[0]) if text_width(text) <= room), "")


class View:
    """Build one figure once from nothing, then feed it."""

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    title: str = ""

    def __init__(self, scene: dict | None = None, dark: bool = False) -> None:
        self.note = ""
        self.palette: Palette = DARK if dark else LIGHT
        self._paints: list[tuple[Any, dict[str, str]]] = []
        self._windows: list[AxisRange] = []
        self._follow = True
        self._scale, self._labels = 1.0, ("", "")
        self._most_ticks: int | None = None
        self.root: figure
        self.canvas: Canvas
        self.pointer: Pointer | None = None
        self._build()
        self.theme(dark)
        if scene is not None:
            self.reset(scene)

    def reset(self, scene: dict) -> None:
        """Begin a new run: forget the old one's data and ranges."""
        raise NotImplementedError

    def forget(self) -> None:
        """Empty what was drawn of draws: they have begun again."""

    def update(self, frame: dict) -> bool:
        """Draw a frame."""
        part = frame.get(self.needs[0])
        self._fit_labels()
        if part is None:
            return False
        changed = self._show(part)
        self._describe()
        return changed

    @property
    def description(self) -> str:
        """What the figure shows now, in words, for those who cannot see it."""
        x, y = self._labels
        axes = ", " + f"{y} against {x}" if x and y else ""
        return f"{self.title}{axes}: {self._words() or 'nothing yet'}"

    def mark(self, selection: dict) -> bool:
        """Mark what has been picked in this or another view."""
        return False

    def theme(self, dark: bool) -> None:
        """Change every colour in place."""
        self.palette = DARK if dark else LIGHT
        for model, roles in self._paints:
            model.update(**{name: getattr(self.palette, role) for name, role in roles.items()})
        self.canvas.publish()

    def magnify(self, scale: float) -> None:
        """Write the axes in type of another size; 1 is the size that they are made with."""
        self._scale = scale
        self._fit_labels()
        for axis in self.root.axis:
            axis.axis_label_text_font_size = f"{scale * LABEL_SIZE:g}px"
            axis.major_label_text_font_size = f"{scale * TICK_SIZE:g}px"

    @property
    def frame_size(self) -> tuple[int, int] | None:
        """Width and height of the frame in pixels; None until the browser has laid the figure out."""
        try:
            size = self.root.inner_width, self.root.inner_height
        except UnsetValueError:
            return None
        return size if all(size) else None

    @property
    def alike(self) -> bool:
        """Whether both axes have one scale, so that what is round looks round."""
        return False

    @property
    def x_label(self) -> str:
        """The horizontal axis's label; a low frame has it inside."""
        return self._labels[0]

    @x_label.setter
    def x_label(self, text: str) -> None:
        self._labels = (text, self._labels[1])
        self._fit_labels()

    @property
    def y_label(self) -> str:
        """The vertical axis's label; where it does not fit, less of it is written."""
        return self._labels[1]

    @y_label.setter
    def y_label(self, text: str) -> None:
        self._labels = (self._labels[0], text)
        self._fit_labels()

    def _fit_labels(self) -> None:
        across, up = self.root.xaxis[0], self.root.yaxis[0]
        type_size = self._scale * LABEL_SIZE
        width, height = self.frame_size or (np.inf, np.inf)
        x_label, y_label = self._labels
        # Without the label the frame is higher, which must not bring it back.
        low = LOW if across.axis_label else LOW + 2.5 * type_size
        below = _fitting(x_label, (width + 2 * END) / type_size) if height >= low else ""
        for axis, label in ((across, below), (up, _fitting(y_label, height / type_size))):
            if axis.axis_label != label:
                axis.axis_label = label
        self._fit_ticks(height)
        inside, size = x_label.split(" (")[0], 0.9 * type_size
        self._write_inside("" if height >= low else _fitting(inside, width / size), size)

    def _fit_ticks(self, height: float) -> None:
        """Have no more numbers at the vertical axis than lie above each other."""
        ticker = self.root.yaxis[0].ticker
        if not isinstance(ticker, BasicTicker):
            return
        if self._most_ticks is None:  # what the class wants is known once it is built
            self._most_ticks = ticker.desired_num_ticks
        room = height / (TICK_LINES * self._scale * TICK_SIZE)
        wanted = int(max(LEAST_TICKS, min(self._most_ticks, room)))
        if ticker.desired_num_ticks != wanted:
            ticker.desired_num_ticks = wanted

    def _write_inside(self, text: str, size: float) -> None:
        """Write the horizontal axis's label within a low frame, at its end."""
        if self._inside is None:
            if not text:
                return
            self._inside = Label(
                x=Node(target="frame", symbol="right"),
                y=Node(target="frame", symbol="bottom"),
                x_offset=-3,
                y_offset=2,
                text_align="right",
                text_baseline="bottom",
                text_font=FONT,
                text_line_height=1.0,
            )
            self._paint(self._inside, text_color="muted").text_color = self.palette.muted
            self.root.add_layout(self._inside)
        new = {"text": text, "text_font_size": f"{size:g}px"}
        if any(getattr(self._inside, name) != value for name, value in new.items()):
            self._inside.update(**new)

    @property
    def sources(self) -> list[PackedColumns | ColumnDataSource]:
        """Everything that is drawn from, in the order of drawing."""
        found = {renderer.data_source.id: renderer.data_source for renderer in self.root.renderers}
        return [*found.values(), *self.canvas.sources]

    def legend_html(self) -> str:
        """Give the legend for the heading, in the present colours; "" when none is needed."""
        return ""

    @property
    def follow(self) -> bool:
        """Whether the ranges follow the data (True) or stay where the user put them."""
        return self._follow

    @follow.setter
    def follow(self, value: bool) -> None:
        self._follow = value
        for window in self._windows:
            window.follow = value

    def listen(self, on_follow: Callable[[bool], None]) -> None:
        """Stop following when a user pans or zooms, go on after a reset; needs a Bokeh server."""

        def tell(follow: bool) -> None:
            self.follow = follow
            on_follow(follow)

        # A reset sends both events, itself last.
        self.root.on_event(RangesUpdate, lambda _: tell(False))
        self.root.on_event(Reset, lambda _: tell(True))

    def _describe(self) -> None:
        """Give the figure its description, now and then."""
        words = {**self.root.html_attributes, "aria-label": self.description}
        if words != self.root.html_attributes:
            self.root.html_attributes = words

    # ---- for subclasses -----------------------------------------------------------------------------------

    def _build(self) -> None:
        raise NotImplementedError

    def _show(self, part: dict) -> bool:
        raise NotImplementedError

    def _figure(
        self,
        x_label: str,
        y_label: str,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        **more: Any,
    ) -> figure:
        self.root = fig = figure(
            **{
                "name": self.name,
                "x_range": Range1d(*x_range),
                "y_range": Range1d(*y_range),
                "x_axis_label": x_label,
                "y_axis_label": y_label,
                "tools": "",
                "toolbar_location": None,
                "output_backend": "canvas",
                "sizing_mode": "stretch_both",
                "min_width": 120,
                "min_height": 90,
                "min_border": 4,
                # Wide enough for most numbers, so that the frame does not move when the ticks change.
                "min_border_left": 58,
                # And for half of the number at the axis's end.
                "min_border_right": END,
                "background_fill_alpha": 0,
                "border_fill_alpha": 0,
                "outline_line_color": None,
                "html_attributes": {"role": "figure", "aria-label": self.title},
                **more,
            }
        )
        fig.toolbar.logo = None
        self._labels = (x_label, y_label)
        self._inside: Label | None = None
        self.canvas = Canvas(fig)
        self._style_axis(fig.xaxis[0], ticks=5)
        self._style_axis(fig.yaxis[0], ticks=4)
        for grid in fig.grid:
            self._paint(grid, grid_line_color="grid")
        # A page that is at rest sends no frame after it has been laid out.
        fig.on_change("inner_height", lambda attr, old, new: self._fit_labels())
        return fig

    def _style_axis(self, axis: Any, ticks: int) -> None:
        axis.update(
            ticker=BasicTicker(desired_num_ticks=ticks, num_minor_ticks=0),
            formatter=BasicTickFormatter(power_limit_low=-5),
            axis_label_text_font_size=f"{LABEL_SIZE}px",
            axis_label_text_font_style="normal",
            axis_label_text_font=FONT,
            axis_label_standoff=6,
            major_label_text_font_size=f"{TICK_SIZE}px",
            major_label_text_font=FONT,
            major_tick_in=0,
            major_tick_out=4,
        )
        self._paint(
            axis,
            axis_line_color="axis",
            major_tick_line_color="axis",
            axis_label_text_color="muted",
            major_label_text_color="muted",
        )

    def _window(self, range_: Range1d, memory: int = 20) -> AxisRange:
        self._windows.append(AxisRange(range_, memory))
        return self._windows[-1]

    def _paint(self, model: Any, **roles: str) -> Any:
        """Give a model's colour properties their roles in the palette; `theme` fills them in."""
        self._paints.append((model, roles))
        return model

    def _coloured(self, glyph: Glyph, kind: Kind | None = None, role: str = "") -> Glyph:
        """Give a glyph its colour: a role of the palette, or that of the kind of event that it marks."""
        filled = {"fill": kind.role} if kind is not None and kind.filled else {}
        return self._paint(glyph, colour=role or kind.role, **filled)

    def _words(self) -> str:
        """Say what the figure shows now; the figures of its heading, unless it has others."""
        return self.note

    def _empty(self, *packed_columns: PackedColumns) -> None:
        """Send empty columns."""
        for packed in packed_columns:
            self._push(packed, columns(**dict.fromkeys(packed.data, ())))

    @staticmethod
    def _push(packed: PackedColumns, data: Columns) -> bool:
        """Send columns unless it holds the same ones."""
        held = packed.data
        if all(np.array_equal(held[name], values, equal_nan=True) for name, values in data.items()):
            return False
        packed.push(data)
        return True
