"""Draw how unsure predictions are of the rows of the trained kind, and of rows out of distribution."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import Columns, columns
from bnnviz.views.palette import legend, line_html
from bnnviz.views.series import MOST, SeriesView

DASH = (7, 4)
HEADROOM = 1.08
MARKED = 0.35, 0.4  # at which share of the rows the first lane has its mark, and how much higher the last may have it
_SIDES = ("inside", "outside")
_COLUMNS = tuple(f"{side}_{name}" for side in _SIDES for name in ("x", "y", "mark_x", "mark_y"))


class EntropyView(SeriesView):
    """Draw predictive entropies of test rows (solid) and of OOD rows (dashed): steps of the shares, or bars.

    Its part of a frame: ``kind``, ``ecdf`` or ``histogram``; ``unit`` of the entropies; ``top``, the largest entropy
    there can be; ``inside`` and ``outside``, what the rows are called; ``lanes``, a list of dicts with ``name``,
    ``inside`` and ``outside``, which are dicts of ``x`` and ``y`` as `bnnviz.diagnostics.score_ecdf` or
    `bnnviz.diagnostics.score_histogram` gives them (``outside`` None where there are no such rows), and ``auroc``, how
    well entropy tells them apart, or None.
    """

    name = "entropy"
    title = "Entropy"
    needs = ("entropy",)

    def _build(self) -> None:
        fig = self._figure("entropy", "share of the rows", (0.0, 1.0), (0.0, 1.02))
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self._rows = ("", "")
        self.brief = False  # whether the legend leaves the lanes out, where others beside it show them
        for place, packed in enumerate(self._make_packed_columns(_COLUMNS)):
            inside = self.canvas.line(packed, "inside_x", "inside_y", width=2.2)
            outside = self.canvas.line(packed, "outside_x", "outside_y", width=2.2, dash=DASH)
            marks = [self._marked(packed, f"{side}_mark_x", f"{side}_mark_y", place) for side in _SIDES]
            self._glyphs.append((inside, outside, *marks))

    def reset(self, scene: dict) -> None:
        """Forget the lanes."""
        super().reset(scene)
        self._rows = ("", "")
        self._x.start_at(0.0, 1.0)
        self._y.start_at(0.0, 1.02)

    def legend_html(self) -> str:
        """Give the legend: the lanes by their marks, the rows by their lines."""
        p = self.palette
        lanes = self._marks_html() if len(self.names) > 1 and not self.brief else []
        colour = p.muted if len(self.names) > 1 else p.chains[0]
        dashes = ("", " ".join(map(str, DASH)))
        rows = [line_html(n, colour, p, dash=dash) for n, dash in zip(self._rows, dashes, strict=True) if n]
        return legend(*lanes, *rows)

    def _show(self, part: dict) -> bool:
        lanes, stepped = part["lanes"][:MOST], part["kind"] == "ecdf"
        changed = self._name([lane["name"] for lane in lanes])
        ood = any(lane["outside"] is not None for lane in lanes)
        self._rows = (part["inside"], part["outside"] if ood else "")
        self.x_label = f"entropy ({part['unit']})"
        self.y_label = "share of the rows up to it" if stepped else "share of the rows"
        self._cover(lanes, float(part["top"]), stepped)
        self.note = _note(lanes)
        turns = [place / len(lanes) if len(lanes) > 1 else None for place in range(len(lanes))]
        series = [_columns(lane, float(part["top"]), stepped, turn) for lane, turn in zip(lanes, turns, strict=True)]
        return self._push_each(series) or changed

    def _cover(self, lanes: list[dict], top: float, stepped: bool) -> None:
        if self.root.x_range.end != top:
            self._x.start_at(0.0, top)
        if stepped:
            if self.root.y_range.end != 1.02:
                self._y.start_at(0.0, 1.02)
            return
        found = [np.max(lane[side]["y"]) for lane in lanes for side in _SIDES if lane[side] is not None]
        if found:
            self._y.start_at(0.0, HEADROOM * float(max(found)))


def _note(lanes: list[dict]) -> str:
    known = [lane for lane in lanes if lane["auroc"] is not None]
    texts = (f"{lane['name']} {lane['auroc']:.3f}" if len(lanes) > 1 else f"{lane['auroc']:.3f}" for lane in known)
    return f"AUROC {'; '.join(texts)}" if known else ""


def _columns(lane: dict, top: float, stepped: bool, turn: float | None) -> Columns:
    """Return a lane's columns; its marks lie at a height of its own, ``turn`` of the way; None: there are none."""
    found: dict[str, object] = dict.fromkeys(_COLUMNS, ())
    for side in _SIDES:
        if lane[side] is None:
            continue
        x, y = (np.asarray(lane[side][name], dtype=float) for name in ("x", "y"))
        if stepped:
            at = min(int(np.searchsorted(y, MARKED[0] + MARKED[1] * (turn or 0.0))), len(y) - 1)
            mark = x[at], y[at]
            x, y = np.repeat(np.append(x, top), 2), np.repeat(np.concatenate([[0.0], y, [1.0]]), 2)[1:-1]
        else:
            at = int(np.argmax(y))
            mark = (x[at] + x[at + 1]) / 2, y[at]
            x, y = np.repeat(x, 2), np.concatenate([[0.0], np.repeat(y, 2), [0.0]])
        found |= {f"{side}_x": x, f"{side}_y": y}
        if turn is not None:
            found |= {f"{side}_mark_x": mark[:1], f"{side}_mark_y": mark[1:]}
    return columns(**found)
