"""Prediction: the band of a regression on one input, or predicted against observed for more inputs."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import View, columns, extent, separated
from bnnviz.views.ink import Sheet
from bnnviz.views.palette import Kind, band_html, legend, line_html, mark_html

DATA = Kind("data", "circle", "red", False)
INSIDE = Kind("in its 95 % interval", "circle", "blue", True)
OUTSIDE = Kind("outside", "square", "red", False)
NOW = Kind("now", "dash", "orange", False)
WIDE, NARROW = 0.2, 0.28
BAND, AGAINST = "band", "intervals"
ROOM = 0.75  # of the data's range is the most that the band may add on each side


class PredictionView(View):
    """What the network predicts: mean, 50 and 95 %, some draws, and the function of this moment."""

    name = "prediction"
    title = "Prediction"
    needs = ("prediction",)

    def _build(self) -> None:
        fig = self._figure("input", "output", (-1.0, 1.0), (-1.0, 1.0))
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self._kind = BAND
        self._limits = (-np.inf, np.inf)
        self._build_band()
        self._build_against()
        self._choose(BAND)

    def _build_band(self) -> None:
        self.band, self.functions = Sheet(_band_columns(None)), Sheet(("x", "y"))
        self.data = Sheet(("x", "y"))
        ink, inked = self.ink, self._inked
        self._band_strokes = [
            inked(ink.band(self.band, "x", "lo95", "hi95", opacity=WIDE), role="blue"),
            inked(ink.band(self.band, "x", "lo50", "hi50", opacity=NARROW), role="blue"),
            inked(ink.line(self.functions, "x", "y", opacity=0.45), role="blue"),
            inked(ink.line(self.band, "x", "mean", width=2.6), role="ink"),
            inked(ink.line(self.band, "x", "current", width=2.6), role="orange"),
            self._paint(ink.marks(self.data, "x", "y", DATA, 7, width=1.8), colour=DATA.role, fill="surface"),
        ]

    def _build_against(self) -> None:
        self.against = Sheet(_against_columns(None))
        ink, inked, source = self.ink, self._inked, self.against
        self._against_strokes = [
            inked(ink.line(source, "diagonal", "diagonal", width=1.5, dash=(6, 4)), role="axis"),
            inked(ink.line(source, "whisker_x", "whisker", width=1.2, opacity=0.55), role="blue"),
            inked(ink.marks(source, "observed", "current", NOW, 11, width=2.6), NOW),
            inked(ink.marks(source, "observed", "inside", INSIDE, 7), INSIDE),
            inked(ink.marks(source, "observed", "outside", OUTSIDE, 8, width=2), OUTSIDE),
        ]

    def reset(self, scene: dict) -> None:
        """Show the new run's data; a run without data leaves the figure empty."""
        self.note = ""
        data = scene["data"]
        self._push(self.band, _band_columns(None))
        self._push(self.functions, columns(x=[], y=[]))
        self._push(self.against, _against_columns(None))
        self._push(self.data, columns(x=[], y=[]))
        self._choose(BAND if data is None else data["kind"])
        if data is None:
            return
        if data["kind"] == BAND:
            self._reset_band(data)
        else:
            self._reset_against(data)

    def _reset_band(self, data: dict) -> None:
        low, high = data["y_range"]
        room = ROOM * (high - low)
        self._limits = (low - room, high + room)
        self._frame_axes(data["x_label"], data["y_label"], data["x_range"], data["y_range"])
        self._push(self.data, columns(x=data["x"], y=data["y"]))

    def _reset_against(self, data: dict) -> None:
        low, high = data["range"]
        room = ROOM * (high - low)
        self._limits = (low - room, high + room)
        label = data["label"]
        self._frame_axes(f"observed {label} (both axes)", "predicted", data["range"], data["range"])

    def legend_html(self) -> str:
        """Give the legend of the kind of prediction that is shown."""
        p = self.palette
        if self._kind == AGAINST:
            return legend(mark_html(INSIDE, p), mark_html(OUTSIDE, p), mark_html(NOW, p))
        return legend(
            line_html("mean", p.ink, p),
            band_html("50, 95 %", p.blue, p, (0.35, 0.5)),
            line_html("draws", p.blue, p, width=1.2),
            line_html("now", p.orange, p),
            mark_html(DATA, p),
        )

    def _show(self, part: dict) -> bool:
        if part["kind"] != self._kind:
            self._choose(part["kind"])
        if part["kind"] == AGAINST:
            return self._show_against(part)
        self.note = f"{part['draws']:,} draws"
        self._y.cover(self._limited(part["lo95"], part["hi95"]))
        self._x.cover(extent(part["x"]))
        moved = self._push(self.band, _band_columns(part))
        return self._push(self.functions, _function_columns(part)) or moved

    def _show_against(self, part: dict) -> bool:
        self.note = f"RMSE {part['rmse']:.2f} · NLL {part['nll']:.2f} · {100 * part['coverage']:.0f} % inside"
        self._x.cover(extent(part["observed"]))
        self._y.cover(self._limited(part["lo"], part["hi"]))
        return self._push(self.against, _against_columns(part, self._x.range.start, self._x.range.end))

    def _limited(self, *arrays: np.ndarray) -> tuple[float, float] | None:
        """Give what the axis must show; a far too wide band at first would flatten all that follows."""
        need = extent(*arrays)
        return None if need is None else (max(need[0], self._limits[0]), min(need[1], self._limits[1]))

    def _choose(self, kind: str) -> None:
        self._kind = kind
        self.title = "Predicted against observed" if kind == AGAINST else "Prediction"
        for stroke in self._band_strokes:
            stroke.shown = kind == BAND
        for stroke in self._against_strokes:
            stroke.shown = kind == AGAINST
        self.ink.publish()

    def _frame_axes(self, x_label: str, y_label: str, x_range: tuple, y_range: tuple) -> None:
        self.root.xaxis[0].axis_label, self.root.yaxis[0].axis_label = x_label, y_label
        self._x.start_at(*x_range)
        self._y.start_at(*y_range)


def _band_columns(part: dict | None) -> dict:
    names = ("x", "mean", "lo50", "hi50", "lo95", "hi95", "current")
    return columns(**{name: [] if part is None else part[name] for name in names})


def _function_columns(part: dict) -> dict:
    functions = np.atleast_2d(np.asarray(part["functions"], dtype=np.float32))
    if functions.size == 0:
        return columns(x=[], y=[])
    gap = np.full((len(functions), 1), np.nan, np.float32)
    x = np.tile(np.append(np.asarray(part["x"], dtype=np.float32), np.float32(np.nan)), len(functions))
    return columns(x=x, y=np.hstack([functions, gap]))


def _against_columns(part: dict | None, low: float = np.nan, high: float = np.nan) -> dict:
    part = part or {name: np.empty(0) for name in ("observed", "mean", "lo", "hi", "current")}
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
