"""Share what views in a plane do: axes, the density where it is known, a scale that leaves what is round round."""

from __future__ import annotations

from bokeh.models import ColumnDataSource
from bokeh.plotting.contour import contour_data

from bnnviz.views.base import View, extent

LEVELS = (0.01, 0.05, 0.2, 0.5, 1.01)  # of the highest density; the last only closes the innermost band
MEMORY = 45  # frames
MARGIN = 0.04
SIMILAR = 1.7  # of two axes: from here on neither has the other's scale
UNEQUAL = 0.03  # in scale, is not seen


class PlaneView(View):
    """Draw in two coordinates or two principal components."""

    def _build_plane(self) -> None:
        """Make the figure, with room for the contours of a known density."""
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
        self._bands: tuple = ()
        self._contour: dict | None = None
        self._fill = ColumnDataSource({"xs": [], "ys": [], "colour": []})
        self._edge = ColumnDataSource({"xs": [], "ys": []})
        bands = fig.multi_polygons("xs", "ys", source=self._fill, fill_color="colour", line_color=None)
        edges = fig.multi_line("xs", "ys", source=self._edge, line_width=1)
        self._paint(edges.glyph, line_color="contour_line")
        self._drawn = (bands, edges)
        for size in ("inner_width", "inner_height"):
            fig.on_change(size, lambda attr, old, new: self._equalise())

    @property
    def alike(self) -> bool:
        """Whether both axes have one scale, so that what is round looks round."""
        return self._alike

    def _reset_plane(self, scene: dict) -> None:
        """Show the new run's plane, with its contours if it has any."""
        plane = scene["plane"]
        self._plane, self._scene_plane = None, plane
        self._label(plane["x_label"], plane["y_label"])
        self._x.start_at(*plane["x_range"])
        self._y.start_at(*plane["y_range"])
        self._draw_contour(plane["contour"])
        self._alike = plane["contour"] is not None and _similar(plane["x_range"], plane["y_range"])

    def theme(self, dark: bool) -> None:
        """Change every colour in place, the contours' too."""
        super().theme(dark)
        self._colour_contour()

    def _fit(self, now: dict[str, float] | None = None, **coordinates: tuple) -> None:
        """Let the ranges cover these arrays of coordinates, with a margin, and all of a known density.

        Where it is ``now`` there is room for a large mark.
        """
        for window, axis in ((self._x, "x"), (self._y, "y")):
            need = extent(*coordinates[axis])
            if need is not None:
                margin = MARGIN * (need[1] - need[0])
                known = [] if self._contour is None else self._contour[axis]
                need = extent([need[0] - margin, need[1] + margin], known)
            window.remember(need)
            window.cover(need)
            if now is not None:
                window.make_room(now[axis])
        self._equalise()

    def _equalise(self) -> None:
        """Make a unit as long across as up, where the density is about as wide as high: what is round looks round."""
        sizes = self.frame_size
        if sizes is None or not (self._alike and self.follow):
            return
        pairs = tuple(zip((self._x, self._y), sizes, strict=True))
        scale = max(window.width / size for window, size in pairs)
        for window, size in pairs:
            window.widen(scale * size, UNEQUAL)

    def _enter_plane(self, part: dict) -> None:
        """Begin again when what moves is shown in other coordinates than before."""
        plane = (part["x_label"], part["y_label"], part["basis"])
        if plane == self._plane:
            return
        scene = self._scene_plane
        of_scene = scene is not None and plane[:2] == (scene["x_label"], scene["y_label"])
        given = part.get("contour")
        contour = given if given is not None else (scene["contour"] if of_scene else None)
        first, self._plane = self._plane is None, plane
        if not first and self.pointer is not None:
            self.pointer.unbox()
        if first and of_scene and given is None:
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
        # Bokeh fails on polygons that are taken away while they are painted: they are hidden.
        for shape in self._drawn:
            shape.visible = contour is not None
        if contour is None:
            return
        data = contour_data(contour["x"], contour["y"], contour["density"], levels=LEVELS)
        self._bands = (data.fill_data.xs, data.fill_data.ys)
        self._edge.data = {"xs": data.line_data.xs[:-1], "ys": data.line_data.ys[:-1]}
        self._colour_contour()

    def _colour_contour(self) -> None:
        if self._bands:
            xs, ys = self._bands
            self._fill.data = {"xs": xs, "ys": ys, "colour": list(self.palette.contour)}


def _similar(x_range: tuple[float, float], y_range: tuple[float, float]) -> bool:
    ratio = (x_range[1] - x_range[0]) / (y_range[1] - y_range[0])
    return 1 / SIMILAR < ratio < SIMILAR
