"""Draw how often a prediction is right, against how sure it is."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import SHARES, Columns, columns, separated
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import band_html, legend, line_html
from bnnviz.views.series import DASHES, MOST, SeriesView

SHADE = 0.2
FILLED = 0.8  # of a bin's width
_COLUMNS = ("bar_x", "bar_y", "x", "y", "line_x", "line_y")


class ReliabilityView(SeriesView):
    """Draw accuracy against confidence with intervals; on the diagonal probabilities come true, bars are row shares.

    Its part of a frame: ``lanes``, a list of dicts with ``name`` and what `bnnviz.diagnostics.reliability` says:
    ``edges`` (bins + 1,), ``count``, ``confidence``, ``accuracy``, ``low`` and ``high`` (bins,), and ``ece``.
    """

    name = "reliability"
    title = "Reliability"
    needs = ("reliability",)

    def _build(self) -> None:
        fig = self._figure("confidence", "accuracy", (0.0, 1.03), SHARES)
        self._window(fig.x_range), self._window(fig.y_range)
        self.exact = PackedColumns(("x", "y"))
        self._bars = [
            self.canvas.bars(each, "bar_x", "bar_y", width=0.1) for each in self._make_packed_columns(_COLUMNS)
        ]
        self._coloured(self.canvas.line(self.exact, "x", "y", width=1.2, dash=(4, 4)), role="muted")
        for place, (packed, bars, dash) in enumerate(zip(self.packed_columns, self._bars, DASHES, strict=True)):
            bars.opacity = SHADE
            ends = self.canvas.line(packed, "line_x", "line_y", width=1.6)
            line = self.canvas.line(packed, "x", "y", width=2.0, dash=dash)
            self._glyphs.append((bars, ends, line, self._marked(packed, "x", "y", place)))

    def reset(self, scene: dict) -> None:
        """Forget the lanes."""
        super().reset(scene)
        self._push(self.exact, columns(x=[0, 1], y=[0, 1]))

    def legend_html(self) -> str:
        """Give the legend: the lanes where there are several, the diagonal and the bars."""
        p = self.palette
        lanes = self._marks_html() if len(self.names) > 1 else []
        bars = band_html("share of the rows", p.chains[0] if len(self.names) < 2 else p.muted, p, (SHADE * 2,))
        return legend(*lanes, line_html("as sure as right", p.muted, p, dash="4 4"), bars)

    def _show(self, part: dict) -> bool:
        lanes = part["lanes"][:MOST]
        changed = self._name([lane["name"] for lane in lanes])
        known = [lane for lane in lanes if np.isfinite(lane["ece"])]
        texts = (f"{lane['name']} {lane['ece']:.3f}" if len(lanes) > 1 else f"{lane['ece']:.3f}" for lane in known)
        self.note = f"ECE {'; '.join(texts)}" if known else ""
        if lanes:
            self._set_width(FILLED * float(np.diff(lanes[0]["edges"])[0]) / len(lanes))
        middle, width = (len(lanes) - 1) / 2, self._bars[0].width
        return self._push_each([_columns(lane, place - middle, width) for place, lane in enumerate(lanes)]) or changed

    def _set_width(self, width: float) -> None:
        if self._bars[0].width != width:
            for bars in self._bars:
                bars.width = width
            self.canvas.publish()


def _columns(lane: dict, shift: float, width: float) -> Columns:
    """Return a lane's columns; its bars lie beside those of the others, ``shift`` widths off the middle."""
    edges, count = np.asarray(lane["edges"], dtype=float), np.asarray(lane["count"], dtype=float)
    x = np.asarray(lane["confidence"], dtype=float)
    known = np.isfinite(x)
    low, high, y = (np.asarray(lane[name], dtype=float)[known] for name in ("low", "high", "accuracy"))
    return columns(
        bar_x=(edges[1:] + edges[:-1]) / 2 + shift * width,
        bar_y=count / max(count.sum(), 1.0),
        x=x[known],
        y=y,
        line_x=separated(x[known], x[known]),
        line_y=separated(low, high),
    )
