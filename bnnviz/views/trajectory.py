"""Trajectory: the path of one chain in a plane, its events, and the density where it is known."""

from __future__ import annotations

import numpy as np
from bokeh.models import ColumnDataSource
from bokeh.plotting.contour import contour_data

from bnnviz.views.base import View, columns, extent
from bnnviz.views.ink import Sheet
from bnnviz.views.palette import EVENTS, KINDS, KNOWN, NOW, PICKED, VISITED, Kind, legend, mark_html
from bnnviz.views.pointer import Pointer

HERE = Kind("here", "dot", "ink", True)
LEVELS = (0.01, 0.05, 0.2, 0.5, 1.01)  # of the highest density; the last only closes the innermost band
OLDEST_MARK = 0.35
MEMORY = 45  # frames
MARGIN = 0.04
SIMILAR = 1.7  # of two axes: from here on neither has the other's scale
UNEQUAL = 0.03  # in scale, is not seen
ARROW = 34  # pixels
_STEP_PAGE = 4096  # as in pointer.js


class TrajectoryView(View):
    """The path in two coordinates or two principal components, older parts fading."""

    name = "trajectory"
    title = "Trajectory"
    needs = ("path",)
    hot = True

    def _build(self) -> None:
        fig = self._figure(
            "coordinate 1",
            "coordinate 2",
            (-3.0, 3.0),
            (-3.0, 3.0),
            tools="pan,wheel_zoom,reset",
            min_height=160,
        )
        fig.toolbar_location, fig.toolbar_inner, fig.toolbar.autohide = "right", True, True
        fig.toolbar.stylesheets = [":host {background: none !important}"]
        fig.toolbar.active_scroll = fig.tools[1]
        self._x, self._y = self._window(fig.x_range, MEMORY), self._window(fig.y_range, MEMORY)
        self._plane: tuple | None = None
        self._scene_plane: dict | None = None
        self._alike = False
        self._picked = self._awaits = ""
        self._bands: tuple = ()
        self._events, self._eventful = 0, True
        self._contour: dict | None = None
        self._fill = ColumnDataSource({"xs": [], "ys": [], "colour": []})
        self._edge = ColumnDataSource({"xs": [], "ys": []})
        fig.multi_polygons("xs", "ys", source=self._fill, fill_color="colour", line_color=None)
        edges = fig.multi_line("xs", "ys", source=self._edge, line_width=1)
        self._paint(edges.glyph, line_color="contour_line")
        self.source, self.marks = Sheet(_path_columns(None)), Sheet(_mark_columns(None))
        ink = self.ink
        self._inked(ink.trail(self.source, "x", "y", width=2.4), role="ink")
        for code in EVENTS:
            kind = KINDS[code]
            self._inked(ink.marks(self.marks, "x", "y", kind, 8, of="kind", code=code, alpha="alpha"), kind)
        self.visited = Sheet(("x", "y"))
        self._inked(ink.marks(self.visited, "x", "y", VISITED, 9, width=1), VISITED)
        self._inked(ink.arrow(self.marks, "x", "now", "dx", "dy", size=ARROW, width=2.2), NOW)
        self.known, self.picked = Sheet(("x", "y")), Sheet(("x", "y"))
        self._inked(ink.marks(self.known, "x", "y", KNOWN, 5, width=1), KNOWN)
        self._inked(ink.marks(self.picked, "x", "y", PICKED, 8, width=1), PICKED)
        self._inked(ink.marks(self.marks, "x", "now", NOW, 19, width=2.6), NOW)
        self._inked(ink.marks(self.marks, "x", "now", HERE, 12), HERE)
        self.pointer = Pointer(fig, events=self.marks)
        for size in ("inner_width", "inner_height"):
            fig.on_change(size, lambda attr, old, new: self._equalise())

    def reset(self, scene: dict) -> None:
        """Show the new run's plane, with its contours if it has any."""
        plane = scene["plane"]
        self._plane, self._scene_plane = None, plane
        self._eventful = "events" in scene["emits"]
        self._label(plane["x_label"], plane["y_label"])
        self._x.start_at(*plane["x_range"])
        self._y.start_at(*plane["y_range"])
        self._draw_contour(plane["contour"])
        self._alike = plane["contour"] is not None and _similar(plane["x_range"], plane["y_range"])
        self._push(self.source, _path_columns(None))
        self._push(self.marks, _mark_columns(None))
        for sheet in (self.known, self.picked, self.visited):
            self._push(sheet, columns(x=[], y=[]))

    def mark(self, selection: dict) -> bool:
        """Mark where the picked draws or event lie."""
        self._picked = selection.get("text", "")
        self.note = self._picked or self._awaits
        changed = [
            self._push(sheet, columns(x=selection.get(f"{name}_x", []), y=selection.get(f"{name}_y", [])))
            for sheet, name in ((self.known, "known"), (self.picked, "path"))
        ]
        return any(changed)

    def theme(self, dark: bool) -> None:
        """Change every colour in place, the contours' too."""
        super().theme(dark)
        self._colour_contour()

    def legend_html(self) -> str:
        """Give the legend: the kinds of event, where there are events."""
        return legend(*(mark_html(KINDS[code], self.palette) for code in EVENTS)) if self._eventful else ""

    def _show(self, part: dict) -> bool:
        self._enter_plane(part)
        self._awaits = part["awaits"]
        self.note = self._picked or self._awaits
        self._events = len(part["event_kind"])
        for window, axis in ((self._x, "x"), (self._y, "y")):
            need = self._needed(part, axis)
            window.remember(need)
            window.cover(need)
        self._equalise()
        moved = self._push(self.source, _path_columns(part))
        visited = columns(x=part.get("visited_x", ()), y=part.get("visited_y", ()))
        moved = self._push(self.visited, visited) or moved
        return self._push(self.marks, _mark_columns(part)) or moved

    def _equalise(self) -> None:
        """Make a unit as long across as up, where the density is about as wide as high: what is round looks round."""
        sizes = self.frame_size
        if sizes is None or not (self._alike and self.follow):
            return
        pairs = tuple(zip((self._x, self._y), sizes, strict=True))
        scale = max(window.width / size for window, size in pairs)
        for window, size in pairs:
            window.widen(scale * size, UNEQUAL)

    def _words(self) -> str:
        return f"the path of one chain with its last {self._events} events"

    def _needed(self, part: dict, axis: str) -> tuple[float, float] | None:
        """Give what the axis must show: the path with a margin, and all of a known density."""
        need = extent(part[axis], part[f"event_{axis}"], [part[f"now_{axis}"]])
        if need is None:
            return None
        margin = MARGIN * (need[1] - need[0])
        return extent([need[0] - margin, need[1] + margin], [] if self._contour is None else self._contour[axis])

    def _enter_plane(self, part: dict) -> None:
        """Begin anew when the path is shown in other coordinates than before."""
        plane = (part["x_label"], part["y_label"], part["basis"])
        if plane == self._plane:
            return
        scene = self._scene_plane
        own = scene is not None and plane[:2] == (scene["x_label"], scene["y_label"])
        contour = part["contour"] if part["contour"] is not None else (scene["contour"] if own else None)
        first, self._plane = self._plane is None, plane
        if not first:
            self.pointer.unbox()
        if first and own and part["contour"] is None:
            return
        self._label(*plane[:2])
        self._draw_contour(contour)
        for window, axis in ((self._x, "x"), (self._y, "y")):
            if contour is None:
                window.restart()
            else:
                window.start_at(*extent(contour[axis]))

    def _label(self, x_label: str, y_label: str) -> None:
        self.x_label, self.y_label = x_label, y_label

    def _draw_contour(self, contour: dict | None) -> None:
        self._bands, self._contour = (), contour
        if contour is None:
            self._fill.data = {"xs": [], "ys": [], "colour": []}
            self._edge.data = {"xs": [], "ys": []}
            return
        data = contour_data(contour["x"], contour["y"], contour["density"], levels=LEVELS)
        self._bands = (data.fill_data.xs, data.fill_data.ys)
        self._edge.data = {"xs": data.line_data.xs[:-1], "ys": data.line_data.ys[:-1]}
        self._colour_contour()

    def _colour_contour(self) -> None:
        if self._bands:
            xs, ys = self._bands
            self._fill.data = {"xs": xs, "ys": ys, "colour": list(self.palette.contour)}


def _path_columns(part: dict | None) -> dict:
    return columns(x=[], y=[]) if part is None else columns(x=part["x"], y=part["y"])


def _mark_columns(part: dict | None) -> dict:
    if part is None:
        return columns(**dict.fromkeys(("x", "y", "kind", "alpha", "now", "dx", "dy", "step_high", "step_low"), ()))
    count = len(part["event_kind"])
    nowhere = np.full(count, np.nan)
    return columns(
        x=np.append(part["event_x"], part["now_x"]),
        y=np.append(part["event_y"], np.nan),
        kind=np.append(part["event_kind"], np.nan),
        alpha=np.append(np.linspace(OLDEST_MARK, 1.0, count), 1.0),
        now=np.append(nowhere, part["now_y"]),
        dx=np.append(nowhere, part["now_dx"]),
        dy=np.append(nowhere, part["now_dy"]),
        # A float32 holds whole numbers up to 2^24 only.
        step_high=part["event_step"] // _STEP_PAGE,
        step_low=part["event_step"] % _STEP_PAGE,
    )


def _similar(x_range: tuple[float, float], y_range: tuple[float, float]) -> bool:
    ratio = (x_range[1] - x_range[0]) / (y_range[1] - y_range[0])
    return 1 / SIMILAR < ratio < SIMILAR
