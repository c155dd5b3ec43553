"""Draw a figure live: build it once, then feed it with frames."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from bokeh.core.property.descriptors import UnsetValueError
from bokeh.events import RangesUpdate, Reset
from bokeh.models import BasicTicker, BasicTickFormatter, FixedTicker, Range1d
from bokeh.plotting import figure
from bokeh.themes import Theme

from bnnviz.figures.base import NOTHING, Figure
from bnnviz.figures.legend import legend_entries, legend_html
from bnnviz.figures.live.axis_range import AxisRange
from bnnviz.figures.live.canvas import Canvas
from bnnviz.figures.live.pointer import Pointer
from bnnviz.figures.marks import Axis, Drawing
from bnnviz.figures.palette import DARK, FONT, LABEL_SIZE, LIGHT, POWER, TICK_SIZE, Palette

LOW, END = 55, 20  # pixels of height, and of the border beyond an axis's end
TICKS = 1.43  # a ticker may exceed the desired number of ticks by this factor
#: Lines of type for each number at the vertical axis.
TICK_LINES, LEAST_TICKS = 1.6, 2
UNEQUAL = 0.03  # a smaller difference in scale is not seen
_NARROW, _WIDE = frozenset("iljftrI.,:;()[]/|' "), frozenset("mwMW%@")

#: A document theme that changes nothing. panel-material-ui restyles every axis, grid and figure in the
#: browser, except the kinds that the document's theme names, and the views colour themselves.
DOCUMENT_THEME = Theme(
    json={"attrs": {name: {} for name in ("Axis", "ColorBar", "Figure", "Grid", "Legend", "Plot", "Title")}}
)


def _fitting(label: str, room: float) -> str:
    """Return the part of a label that fits in so many sizes of its type: all of it, all but its unit, or nothing."""
    widths = {c: 0.34 if c in _NARROW else 0.94 if c in _WIDE else 0.72 if c.isupper() else 0.58 for c in label}
    return next((text for text in (label, label.split(" (")[0]) if sum(map(widths.get, text)) <= room), "")


def _letters(low: float, high: float) -> int:
    """Return how long the numbers at an axis with these ends are, as `BasicTickFormatter` writes them."""
    if max(abs(low), abs(high)) >= 10**POWER:
        return POWER
    decimals = math.ceil(max(0.0, -math.log10((abs(high - low) or 1.0) / 5)))
    return max(len(f"{end:.{min(decimals, POWER)}f}") for end in (low, high))


class View:
    """Draw a figure in the browser, at first the scene of a run if there is one."""

    def __init__(self, figure: Figure, scene: dict[str, Any] | None = None, dark: bool = False) -> None:
        self.figure = figure
        self.name, self.needs = figure.name, figure.needs
        self.palette: Palette = DARK if dark else LIGHT
        self.drawing = Drawing()
        self._part: dict[str, Any] | None = None
        self._scale = 1.0
        self._legend: tuple[Any, dict[str, str]] = (None, {})
        self._seen: set[str] = set()  # labels of marks that have been drawn
        self._build()
        self.theme(dark)
        if scene is not None:
            self.reset(scene)

    # ---- actions of a page

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run: forget the old one's data and ranges."""
        self.figure.begin(scene)
        if self.pointer is not None:
            self.pointer.editable = bool((scene.get("data") or {}).get("editable")) and self.figure.name == "prediction"
        self._part = None
        for window in self._windows:
            window.restart()
        self._show(self.figure.blank())
        for window in self._windows:
            window.restart()

    def forget(self) -> None:
        """Clear the figure of draws that restarted; its axes stay, so that a pointer keeps its place."""
        self._part = None
        self.redraw()

    def update(self, frame: dict[str, Any]) -> bool:
        """Draw a frame; return whether anything changed."""
        part = frame.get(self.needs[0])
        if part is None:
            return False
        self._part = part
        return self._show(self.figure.draw(part), not frame.get("status", {}).get("playing", True))

    def redraw(self) -> bool:
        """Draw the last frame again, after something was chosen in the figure."""
        if self._part is None:
            return self._show(replace(self.figure.blank(), x=self.drawing.x, y=self.drawing.y))
        return self._show(self.figure.draw(self._part))

    def mark(self, selection: dict[str, Any]) -> bool:
        """Mark the selection of this or another view."""
        if selection is self.figure.selection or selection == NOTHING == self.figure.selection:
            return False
        self.figure.selection = selection
        return self.redraw()

    def theme(self, dark: bool) -> None:
        """Change every colour in place."""
        self.palette = DARK if dark else LIGHT
        palette = self.palette
        for axis in self.root.axis:
            axis.update(
                axis_line_color=palette.axis,
                major_tick_line_color=palette.axis,
                axis_label_text_color=palette.muted,
                major_label_text_color=palette.muted,
            )
        for grid in self.root.grid:
            grid.grid_line_color = palette.grid
        self.canvas.show(self.drawing.marks, palette)

    def magnify(self, scale: float) -> None:
        """Write the axes in type of another size; 1 is the size that they are made with."""
        self._scale = scale
        self._fit_labels()
        for axis in self.root.axis:
            axis.axis_label_text_font_size = f"{scale * LABEL_SIZE:g}px"
            axis.major_label_text_font_size = f"{scale * TICK_SIZE:g}px"

    @property
    def title(self) -> str:
        """The heading."""
        return self.drawing.title or self.figure.title

    @property
    def note(self) -> str:
        """A few figures for the heading."""
        return self.drawing.note

    @property
    def description(self) -> str:
        """The current content of the figure in words, for screen readers."""
        x, y = self.drawing.x.label, self.drawing.y.label
        axes = f", {y} against {x}" if x.strip() and y.strip() else ""
        return f"{self.title}{axes}: {self.drawing.words or self.note or 'nothing yet'}"

    def legend_entries(self) -> dict[str, str]:
        """Return the entries of the legend by label, in the present colours."""
        key = (id(self.palette), self.canvas.styled)
        if self._legend[0] != key:
            self._legend = (key, legend_entries(self.drawing.marks, self.palette))
        return self._legend[1]

    def legend_html(self) -> str:
        """Return the legend of the marks that have been drawn, in the present colours; "" when none is needed."""
        return legend_html(entry for label, entry in self.legend_entries().items() if label in self._seen)

    @property
    def follow(self) -> bool:
        """Whether the ranges follow the data (True) or stay where the user put them."""
        return self._windows[0].follow

    @follow.setter
    def follow(self, value: bool) -> None:
        for window in self._windows:
            window.follow = value

    def listen(self, on_follow: Callable[[bool], None]) -> None:
        """Stop following when a user pans or zooms, and resume after a reset; needs a Bokeh server."""

        def receive(follow: bool) -> None:
            self.follow = follow
            on_follow(follow)

        # A reset sends both events, itself last.
        self.root.on_event(RangesUpdate, lambda _: receive(False))
        self.root.on_event(Reset, lambda _: receive(True))

    # ---- drawing

    def _show(self, drawing: Drawing, paused: bool = False) -> bool:
        self.drawing = drawing
        before = [window.ends for window in self._windows]
        for place, (window, axis) in enumerate(zip(self._windows, (drawing.x, drawing.y), strict=True)):
            window.show(axis, paused)
            self._set_ticks(place, axis)
        self._equalise()
        self._fit_labels()
        changed = self.canvas.show(drawing.marks, self.palette)
        self._seen |= {mark.label for mark in drawing.marks if mark.label not in self._seen and not mark.empty}
        words = {**self.root.html_attributes, "aria-label": self.description}
        if words != self.root.html_attributes:
            self.root.html_attributes = words
        return changed or before != [window.ends for window in self._windows]

    def _set_ticks(self, place: int, axis: Axis) -> None:
        """Set the ticks and the visibility of an axis, without reading Bokeh's properties if nothing has changed."""
        shown, grid = axis.shown and not self.figure.bare, axis.grid and axis.shown and not self.figure.bare
        requested = (axis.ticks, axis.turned, axis.whole, shown, grid)
        if self._ticks[place] == requested:
            return
        self._ticks[place] = requested
        model = self._models[place]
        model.visible, self.root.grid[place].visible = shown, grid
        if axis.ticks is not None:
            if not isinstance(model.ticker, FixedTicker):
                model.ticker = FixedTicker()
            model.ticker.ticks = list(axis.ticks)
            turned = 0.6 if axis.turned else "horizontal"
            model.update(major_label_overrides=dict(axis.ticks), major_label_orientation=turned)
        elif axis.whole:
            model.ticker.min_interval = 1

    def _equalise(self) -> None:
        """Make a unit as long across as up where both axes have one scale."""
        sizes = self.figure.frame_size
        if sizes is None or not (self.drawing.equal and self.follow):
            return
        pairs = tuple(zip(self._windows, sizes, strict=True))
        scale = max(window.width / size for window, size in pairs)
        for window, size in pairs:
            window.widen(scale * size, UNEQUAL)

    # ---- construction

    def _build(self) -> None:
        figure_ = self.figure
        blank = figure_.blank()
        self.root = fig = figure(
            name=figure_.name,
            x_range=Range1d(*(blank.x.ends or (0.0, 1.0))),
            y_range=Range1d(*(blank.y.ends or (0.0, 1.0))),
            x_axis_label=blank.x.label,
            y_axis_label=blank.y.label,
            tools="pan,wheel_zoom,reset" if figure_.tools else "",
            toolbar_location="right" if figure_.tools else None,
            output_backend="canvas",
            sizing_mode="stretch_both",
            min_width=120,
            min_height=160 if figure_.tools else 90,
            min_border=4,
            min_border_left=figure_.left if blank.y.shown else 4,
            # For half of the number at the axis's end.
            min_border_right=END if blank.y.shown else 4,
            background_fill_alpha=0,
            border_fill_alpha=0,
            outline_line_color=None,
            html_attributes={"role": "figure", "aria-label": figure_.title},
        )
        fig.toolbar.logo = None
        if figure_.tools:
            fig.update(toolbar_inner=True)
            fig.toolbar.update(autohide=True, stylesheets=[":host {background: none !important}"])
            fig.toolbar.active_scroll = fig.tools[1]
        if figure_.bare:
            fig.update(sizing_mode="stretch_width", height=36, min_height=28, min_border=0)
            fig.update(min_border_left=0, min_border_right=0)
            fig.axis.visible = fig.grid.visible = False
        self.canvas = Canvas(fig)
        for axis, described in zip(fig.axis, (blank.x, blank.y), strict=True):
            axis.update(
                ticker=BasicTicker(desired_num_ticks=described.count, num_minor_ticks=0),
                formatter=BasicTickFormatter(power_limit_high=POWER, power_limit_low=-5),
                axis_label_text_font_size=f"{LABEL_SIZE}px",
                axis_label_text_font_style="normal",
                axis_label_text_font=FONT,
                axis_label_standoff=6,
                major_label_text_font_size=f"{TICK_SIZE}px",
                major_label_text_font=FONT,
                major_tick_in=0,
                major_tick_out=4,
            )
        self._models, self._ticks, self._fitted = (fig.xaxis[0], fig.yaxis[0]), [None, None], None
        self._windows = AxisRange(fig.x_range), AxisRange(fig.y_range)
        self.pointer = None if figure_.touch is None else Pointer(fig, **figure_.touch)
        # A page that is at rest sends no frame after it has been laid out.
        for name in ("inner_width", "inner_height"):
            fig.on_change(name, lambda attr, old, new: self._laid_out())

    def _laid_out(self) -> None:
        try:
            size = self.root.inner_width, self.root.inner_height
        except UnsetValueError:
            return
        self.figure.frame_size = size if all(size) else None
        self._fit_labels()
        self._equalise()

    def _fit_labels(self) -> None:
        """Write as much of the labels and numbers of the axes as has room: a low frame has no label below it."""
        letters = _letters(*self._windows[0].ends)
        fitted = (self.figure.frame_size, self.drawing.x.label, self.drawing.y.label, self._scale, letters)
        if fitted == self._fitted:
            return
        self._fitted = fitted
        across, up = self._models
        type_size = self._scale * LABEL_SIZE
        width, height = self.figure.frame_size or (np.inf, np.inf)
        # Without the label the frame is higher, which must not bring it back.
        low = LOW if across.axis_label else LOW + 2.5 * type_size
        below = _fitting(self.drawing.x.label, (width + 2 * END) / type_size) if height >= low else ""
        across.axis_label, up.axis_label = below, _fitting(self.drawing.y.label, height / type_size)
        size = self._scale * TICK_SIZE
        # As many numbers at an axis as have room.
        rooms = width / (TICKS * (0.6 * letters + 1.5) * size), height / (TICK_LINES * size)
        for model, axis, room in zip(self._models, (self.drawing.x, self.drawing.y), rooms, strict=True):
            if isinstance(model.ticker, BasicTicker):
                model.ticker.desired_num_ticks = int(max(LEAST_TICKS, min(axis.count, room)))
