"""Draw what the network predicts: a band, a map of two classes, or predicted against observed."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
from contourpy import LineType, contour_generator

from bnnviz.views.base import Columns, View, columns, extent, gapped_curves, separated
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.futures import FutureLines
from bnnviz.views.palette import DARK, LIGHT, PICKED, Kind, Palette, band_html, legend, line_html, mark_html
from bnnviz.views.pointer import Pointer

DATA = Kind("data", "circle", "red", False)
CLASSES = (Kind("class 0", "circle", "blue", True), Kind("class 1", "square", "orange", True))
INSIDE = Kind("in its 95 % interval", "circle", "blue", True)
OUTSIDE = Kind("outside", "square", "red", False)
RIGHT = Kind("right", "circle", "blue", True)
WRONG = Kind("wrong", "square", "red", False)
NOW = Kind("now", "dash", "orange", False)
WIDE, NARROW = 0.2, 0.28
BAND, MAP, AGAINST, ROW_PROBABILITIES = "band", "area", "intervals", "classes"
_BAND = ("x", "mean", "lo50", "hi50", "lo95", "hi95", "current")
_AGAINST = ("observed", "inside", "outside", "current", "whisker_x", "whisker", "diagonal")
_ROW_PROBABILITIES = ("rank", "right", "wrong", "current", "whisker_x", "whisker")
ROOM = 0.75  # of the data's range is the most that the band may add on each side
TITLES = {BAND: "Prediction", MAP: "P(class 1)", AGAINST: "Predicted against observed", ROW_PROBABILITIES: "Test rows"}


class PredictionView(View):
    """Draw what the network predicts: for one input a band, for two a map, for more each test row."""

    name = "prediction"
    title = "Prediction"
    needs = ("prediction",)

    def _build(self) -> None:
        fig = self._figure("input", "output", (-1.0, 1.0), (-1.0, 1.0))
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self._kind = BAND
        self._limits = (-np.inf, np.inf)
        self._axes: tuple[np.ndarray, np.ndarray] | None = None  # of a map
        self._class_names = [kind.label for kind in CLASSES]
        self._glyphs = {MAP: self._build_map(), BAND: self._build_band(), AGAINST: self._build_against()}
        self._glyphs[ROW_PROBABILITIES] = self._build_probabilities()
        self._point_strokes = self._build_points()
        self.pointer = Pointer(fig, points=self.data)
        self._choose(BAND)

    def _build_band(self) -> list:
        self.band, self.functions = PackedColumns(_BAND), PackedColumns(("x", "y"))
        self.picked = PackedColumns(("x", "y"))
        canvas, coloured = self.canvas, self._coloured
        glyphs = [
            coloured(canvas.band(self.band, "x", "lo95", "hi95", opacity=WIDE), role="blue"),
            coloured(canvas.band(self.band, "x", "lo50", "hi50", opacity=NARROW), role="blue"),
            coloured(canvas.line(self.functions, "x", "y", opacity=0.45), role="blue"),
            coloured(canvas.line(self.picked, "x", "y", width=1.6, opacity=0.8), role="green"),
            coloured(canvas.line(self.band, "x", "mean", width=2.6), role="ink"),
            coloured(canvas.line(self.band, "x", "current", width=2.6), role="orange"),
        ]
        self.futures = FutureLines(canvas, ("x", "mean", "lo95", "hi95"), (3.0, 1.5, 1.5))
        return [*glyphs, *self.futures.glyphs]

    def _build_map(self) -> list:
        self.map = PackedColumns(("mean",))
        self.edges = PackedColumns(("x", "y", "now_x", "now_y"))
        self.picked_edges = PackedColumns(("x", "y"))
        canvas, coloured = self.canvas, self._coloured
        self._map_glyph = canvas.map(self.map, "mean")
        return [
            self._map_glyph,
            coloured(canvas.line(self.picked_edges, "x", "y", width=1.6, opacity=0.8), role="green"),
            coloured(canvas.line(self.edges, "now_x", "now_y", width=2, dash=(5, 4)), role="ink"),
            coloured(canvas.line(self.edges, "x", "y", width=3), role="ink"),
        ]

    def _build_points(self) -> dict[str, list]:
        self.data = PackedColumns(("x", "y", "class"))
        canvas = self.canvas
        plain = canvas.marks(self.data, "x", "y", DATA, 7, width=1.8)
        kinds = [canvas.marks(self.data, "x", "y", k, 9, width=1.6, of="class", code=i) for i, k in enumerate(CLASSES)]
        return {
            BAND: [self._paint(plain, colour=DATA.role, fill="surface")],
            MAP: [self._paint(s, colour="ink", fill=k.role) for s, k in zip(kinds, CLASSES, strict=True)],
        }

    def _build_against(self) -> list:
        self.against = PackedColumns(_AGAINST)
        canvas, coloured, source = self.canvas, self._coloured, self.against
        return [
            coloured(canvas.line(source, "diagonal", "diagonal", width=1.5, dash=(6, 4)), role="axis"),
            coloured(canvas.line(source, "whisker_x", "whisker", width=1.2, opacity=0.55), role="blue"),
            coloured(canvas.marks(source, "observed", "current", NOW, 11, width=2.6), NOW),
            coloured(canvas.marks(source, "observed", "inside", INSIDE, 7), INSIDE),
            coloured(canvas.marks(source, "observed", "outside", OUTSIDE, 8, width=2), OUTSIDE),
        ]

    def _build_probabilities(self) -> list:
        self.probabilities = PackedColumns(_ROW_PROBABILITIES)
        canvas, coloured, source = self.canvas, self._coloured, self.probabilities
        return [
            coloured(canvas.line(source, "whisker_x", "whisker", width=1.2, opacity=0.55), role="blue"),
            coloured(canvas.marks(source, "rank", "current", NOW, 9, width=2.2), NOW),
            coloured(canvas.marks(source, "rank", "right", RIGHT, 6), RIGHT),
            coloured(canvas.marks(source, "rank", "wrong", WRONG, 8, width=2), WRONG),
        ]

    def reset(self, scene: dict) -> None:
        """Show the new run's data; a run without data leaves the figure empty."""
        data = scene["data"]
        self.forget()
        self.mark({"kind": "none"})
        self.show_points([])
        self.pointer.editable = False
        self._choose(BAND if data is None else data["kind"])
        if data is not None:
            {
                BAND: self._reset_band,
                MAP: self._reset_map,
                AGAINST: self._reset_against,
                ROW_PROBABILITIES: self._reset_probabilities,
            }[self._kind](data)

    def forget(self) -> None:
        """Empty everything but the data."""
        self.note = ""
        self._empty(
            self.band, self.functions, self.futures.packed, self.map, self.edges, self.against, self.probabilities
        )

    def _reset_band(self, data: dict) -> None:
        low, high = data["y_range"]
        room = ROOM * (high - low)
        self._limits = (low - room, high + room)
        self._frame_axes(data["x_label"], data["y_label"], data["x_range"], data["y_range"])
        self.show_points(np.column_stack([data["x"], data["y"]]))
        self.pointer.editable = bool(data.get("editable"))

    def _reset_map(self, data: dict) -> None:
        self._frame_axes(data["x_label"], data["y_label"], data["x_range"], data["y_range"])
        self._axes = place_map(self._map_glyph, data)
        self._class_names = [f"class {name}" if name.isdigit() else name[:12] for name in data["class_names"]]
        self.title = f"P({self._class_names[1]})"
        self._map_glyph.ramp = _ramp(self.palette)
        self.show_points(np.column_stack([data["x"], data["y"], data["class"]]))
        self.pointer.editable = bool(data.get("editable"))
        self.canvas.publish()

    def _reset_against(self, data: dict) -> None:
        low, high = data["range"]
        room = ROOM * (high - low)
        self._limits = (low - room, high + room)
        label = data["label"]
        self._frame_axes(f"observed {label} (both axes)", "predicted", data["range"], data["range"])

    def _reset_probabilities(self, data: dict) -> None:
        rows = len(data["observed"])
        self._frame_axes("test row, the surest first", "probability of its class", (-1.0, float(rows)), (-0.02, 1.02))

    def show_points(self, rows: Any) -> None:
        """Show these points: rows of x and y, for a map with their class."""
        table = np.asarray(rows, dtype=float) if len(rows) else np.empty((0, 2))
        kinds = table[:, 2] if table.shape[1] > 2 else np.zeros(len(table))
        self._push(self.data, columns(x=table[:, 0], y=table[:, 1], **{"class": kinds}))

    def mark(self, selection: dict) -> bool:
        """Draw the functions of what has been picked; on a map, where they change from class to class."""
        functions = np.atleast_2d(selection.get("functions", np.empty((0, 0))))
        if self._kind == MAP:
            return self._push(self.picked_edges, self._edges(functions))
        shown = self._kind == BAND and functions.size
        lines = gapped_curves(self.band.data["x"], functions) if shown else columns(x=[], y=[])
        return self._push(self.picked, lines)

    def theme(self, dark: bool) -> None:
        """Change every colour in place, the map's too."""
        self.futures.theme(DARK if dark else LIGHT)
        super().theme(dark)
        self._map_glyph.ramp = _ramp(self.palette)
        self.canvas.publish()

    def legend_html(self) -> str:
        """Give the legend of the kind of prediction that is shown."""
        p = self.palette
        if self._kind == AGAINST:
            return legend(mark_html(INSIDE, p), mark_html(OUTSIDE, p), mark_html(NOW, p))
        if self._kind == ROW_PROBABILITIES:
            return legend(mark_html(RIGHT, p), mark_html(WRONG, p), mark_html(NOW, p))
        if self._kind == MAP:
            edges = line_html("boundary", p.ink, p), line_html("now", p.ink, p, dash="4 3", width=2)
            names = (html.escape(name) for name in self._class_names)
            return legend(*(mark_html(k, p, name) for k, name in zip(CLASSES, names, strict=True)), *edges)
        return legend(
            line_html("mean", p.ink, p),
            band_html("50, 95 %", p.blue, p, (0.35, 0.5)),
            line_html("draws", p.blue, p, width=1.2),
            line_html("now", p.orange, p),
            mark_html(DATA, p),
            mark_html(PICKED, p),
        )

    def _show(self, part: dict) -> bool:
        if part["kind"] != self._kind:
            self._choose(part["kind"])
        shows = {
            BAND: self._show_band,
            MAP: self._show_map,
            AGAINST: self._show_against,
            ROW_PROBABILITIES: self._show_probabilities,
        }
        return shows[part["kind"]](part)

    def _show_band(self, part: dict) -> bool:
        self.note = _drawn(part)
        bands = (part, *part.get("futures", ()))
        self._y.cover(self._limited(*(band[name] for band in bands for name in ("lo95", "hi95"))))
        self._x.cover(extent(part["x"]))
        moved = self._push(self.band, columns(**{name: part[name] for name in _BAND}))
        moved = self._push(self.futures.packed, self.futures.columns(part)) or moved
        return self._push(self.functions, gapped_curves(part["x"], part["functions"])) or moved

    def _show_map(self, part: dict) -> bool:
        self.note = _drawn(part)
        mean, now = self._edges(part["mean"][None]), self._edges(part["current"][None])
        self._push(self.edges, columns(**mean, now_x=now["x"], now_y=now["y"]))
        return self._push(self.map, columns(mean=part["mean"]))

    def _show_against(self, part: dict) -> bool:
        self.note = f"RMSE {part['rmse']:.2f} · NLL {part['nll']:.2f} · {100 * part['coverage']:.0f} % inside"
        self._x.cover(extent(part["observed"]))
        self._y.cover(self._limited(part["lo"], part["hi"]))
        return self._push(self.against, _against_columns(part, self._x.range.start, self._x.range.end))

    def _show_probabilities(self, part: dict) -> bool:
        self.note = f"accuracy {100 * part['accuracy']:.1f} % · NLL {part['nll']:.2f}"
        return self._push(self.probabilities, _probability_columns(part))

    def _edges(self, probabilities: np.ndarray) -> Columns:
        """Give the lines on which functions on the map's grid are one half."""
        if self._axes is None or not probabilities.size:
            return columns(x=[], y=[])
        x, y = self._axes
        lines = []
        for values in probabilities:
            grid = np.asarray(values, dtype=float).reshape(len(y), len(x))
            lines += contour_generator(x, y, grid, line_type=LineType.Separate).lines(0.5)
        gap = np.full((1, 2), np.nan)
        joined = np.concatenate([piece for line in lines for piece in (line, gap)] or [np.empty((0, 2))])
        return columns(x=joined[:, 0], y=joined[:, 1])

    def _limited(self, *arrays: np.ndarray) -> tuple[float, float] | None:
        """Give what the axis must show; a far too wide band at first would flatten all that follows."""
        need = extent(*arrays)
        return None if need is None else (max(need[0], self._limits[0]), min(need[1], self._limits[1]))

    def _choose(self, kind: str) -> None:
        self._kind, self.title = kind, TITLES[kind]
        for glyphs in (self._glyphs, self._point_strokes):
            for of, members in glyphs.items():
                for glyph in members:
                    glyph.shown = kind == of
        self.canvas.publish()

    def _frame_axes(self, x_label: str, y_label: str, x_range: tuple, y_range: tuple) -> None:
        self.x_label, self.y_label = x_label, y_label
        self._x.start_at(*x_range)
        self._y.start_at(*y_range)


def place_map(glyph: Any, data: dict) -> tuple[np.ndarray, np.ndarray]:
    """Place a map where its data say; give the coordinates of its columns and rows."""
    across = data["columns"]
    glyph.update(box=[*map(float, data["x_range"]), *map(float, data["y_range"])], across=across)
    return np.linspace(*data["x_range"], across), np.linspace(*data["y_range"], across)


def _ramp(palette: Palette) -> list[str]:
    return [palette.blue, palette.surface, palette.orange]


def _drawn(part: dict) -> str:
    noise = "" if part.get("noise") is None else f"noise sd {part['noise']:.3g} · "
    return noise + ("warm-up" if part["settling"] else f"from {part['draws']:,} draws")


def _against_columns(part: dict, low: float, high: float) -> Columns:
    # By observed value, so that equal frames give equal columns and whiskers run from left to right.
    order = np.argsort(part["observed"])
    observed, mean, lo, hi, current = (
        np.asarray(part[name])[order] for name in ("observed", "mean", "lo", "hi", "current")
    )
    inside = (lo <= observed) & (observed <= hi)
    return columns(
        observed=observed,
        inside=np.where(inside, mean, np.nan),
        outside=np.where(inside, np.nan, mean),
        current=current,
        whisker_x=separated(observed, observed),
        whisker=separated(lo, hi),
        diagonal=[low, high],
    )


def _probability_columns(part: dict) -> Columns:
    order = np.argsort(-part["mean"])
    mean, lo, hi, current, right = (np.asarray(part[name])[order] for name in ("mean", "lo", "hi", "current", "right"))
    rank = np.arange(len(mean))
    return columns(
        rank=rank,
        right=np.where(right, mean, np.nan),
        wrong=np.where(right, np.nan, mean),
        current=current,
        whisker_x=separated(rank, rank),
        whisker=separated(lo, hi),
    )
