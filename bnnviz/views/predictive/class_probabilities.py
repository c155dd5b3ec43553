"""Draw what several methods say of one row, class by class, with intervals."""

from __future__ import annotations

import math

import numpy as np
from bokeh.models import FixedTicker

from bnnviz.views.base import SHARES, Columns, columns, separated
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import band_html, legend
from bnnviz.views.series import MOST, SeriesView

MOST_CLASSES = 12
LONG = 60  # letters of all names: more do not fit beside each other
TURN = 0.6  # radians
WIDE, APART = 0.66, 0.18  # classes, of all lanes and between two of them at most
TOLD = 3  # lanes, of which the heading says what each thinks
SHADE = 0.2
_COLUMNS = ("x", "y", "line_x", "line_y")


class ClassProbabilitiesView(SeriesView):
    """Draw the mean probability of each class over the draws, and the interval that holds 95 % of them.

    Its part of a frame: ``classes``, their names; ``observed``, the number of the row's own or None; ``lanes``, a list
    of dicts with ``name`` and ``mean``, ``low`` and ``high`` (classes,), as in the intervals of `bnnviz.uncertainty`.
    Of more than twelve classes the likeliest ones are shown, and the observed one.
    """

    name = "digit"
    title = "Probabilities of one row"
    needs = ("digit",)

    def _build(self) -> None:
        fig = self._figure("class", "probability", (-0.5, 9.5), SHARES)
        fig.xgrid.visible = False
        self._window(fig.x_range), self._window(fig.y_range)
        self.shade = PackedColumns(("x", "low", "high"))
        self._coloured(self.canvas.band(self.shade, "x", "low", "high", opacity=SHADE), role="pale")
        self._observed = False
        for place, packed in enumerate(self._make_packed_columns(_COLUMNS)):
            bars = self.canvas.line(packed, "line_x", "line_y", width=2.4)
            self._glyphs.append((bars, self._marked(packed, "x", "y", place)))

    def reset(self, scene: dict) -> None:
        """Forget the row."""
        super().reset(scene)
        self._observed = False
        self._empty(self.shade)

    def legend_html(self) -> str:
        """Give the legend: the lanes by their marks, and the observed class."""
        lanes = self._marks_html() if len(self.names) > 1 else []
        p = self.palette
        return legend(*lanes, *([band_html("observed", p.pale, p, (2 * SHADE,))] if self._observed else []))

    def _show(self, part: dict) -> bool:
        lanes = part["lanes"][:MOST]
        changed = self._name([lane["name"] for lane in lanes])
        shown = shown_classes(lanes, part["observed"], len(part["classes"]))
        self._name_classes([part["classes"][k] for k in shown])
        self.note = _note(part, lanes, len(shown))
        self._observed = part["observed"] is not None
        place = np.flatnonzero(shown == part["observed"]) if self._observed else np.empty(0)
        edges = [at + side for at in place for side in (-0.5, 0.5)]
        changed |= self._push(
            self.shade, columns(x=edges, low=np.full(len(edges), -1.0), high=np.full(len(edges), 2.0))
        )
        apart = min(APART, WIDE / max(len(lanes), 1))
        middle = (len(lanes) - 1) / 2
        return self._push_each([_columns(lane, shown, apart * (k - middle)) for k, lane in enumerate(lanes)]) or changed

    def _name_classes(self, names: list[str]) -> None:
        labels = dict(enumerate(names))
        axis = self.root.xaxis[0]
        if axis.major_label_overrides == labels:
            return
        turned = TURN if sum(map(len, names)) > LONG else "horizontal"
        axis.update(
            ticker=FixedTicker(ticks=list(labels)), major_label_overrides=labels, major_label_orientation=turned
        )
        self.root.x_range.update(start=-0.5, end=len(names) - 0.5)


def shown_classes(lanes: list[dict], observed: int | None, classes: int) -> np.ndarray:
    """Return the numbers of the classes to show, in order."""
    if classes <= MOST_CLASSES or not lanes:
        return np.arange(min(classes, MOST_CLASSES))
    most = np.nan_to_num(np.max([lane["mean"] for lane in lanes], axis=0).astype(float))
    if observed is not None:
        most[observed] = math.inf
    return np.sort(np.argsort(-most, kind="stable")[:MOST_CLASSES])


def _note(part: dict, lanes: list[dict], shown: int) -> str:
    classes, observed = part["classes"], part["observed"]
    lanes = [lane for lane in lanes if np.isfinite(lane["mean"]).all()]
    words = [] if observed is None else [f"observed {classes[observed]}"]
    best = [int(np.argmax(lane["mean"])) for lane in lanes]
    if len(lanes) <= TOLD:
        pairs = zip(lanes, best, strict=True)
        words += [f"{lane['name']} {classes[k]} ({lane['mean'][k]:.2f})" for lane, k in pairs]
    elif observed is not None:
        words.append(f"the likeliest for {best.count(observed)} of {len(lanes)}")
    if shown < len(classes):
        words.append(f"{shown} of {len(classes)} classes")
    return "; ".join(words)


def _columns(lane: dict, shown: np.ndarray, shift: float) -> Columns:
    mean, low, high = (np.asarray(lane[name], dtype=float)[shown] for name in ("mean", "low", "high"))
    x = np.arange(len(shown)) + shift
    return columns(x=x, y=mean, line_x=separated(x, x), line_y=separated(low, high))
