"""Draw how rate / envelope was spread over all proposals; above 1 the envelope was no bound."""

from __future__ import annotations

import numpy as np

from bnnviz.numerals import general
from bnnviz.views.base import FONT, TICK_SIZE, View, columns, separated
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import KINDS, VIOLATION, Kind, band_html, legend, line_html, mark_html

BOX, CAP = 0.3, 0.16  # half of its height, and of the ends of its whiskers
START, FARTHEST = 1.25, 4.0  # of the axis, at first and at most
EDGE = 0.985  # of the axis: here stands what lies beyond it
LARGEST = Kind("largest", "circle", "blue", True)
SIDES = (("", "blue"), ("over_", "magenta"))  # of ratio 1
_COLUMNS = (
    *(f"{side}{name}" for side, _ in SIDES for name in ("box", "x", "y", "most")),
    *("low", "high", "median", "across", "middle"),
)


class RateRatiosView(View):
    """Draw a box plot of the ratios of all chains so far; what lies above 1 has the colour of violations."""

    name = "ratios"
    title = "Ratios, all proposals"
    needs = ("ratios",)

    def _build(self) -> None:
        fig = self._figure("rate / envelope", "", (0.0, START), (-0.5, 0.5))
        fig.yaxis.visible = fig.ygrid.visible = False
        self._x = self._window(fig.x_range)
        self.source, one, canvas = PackedColumns(_COLUMNS), PackedColumns(("x", "y", "word")), self.canvas
        one.push(columns(x=[1.0, 1.0], y=[-0.5, 0.5], word=[np.nan, 0.47]))
        for side, role in SIDES:
            self._coloured(canvas.band(self.source, f"{side}box", "low", "high", opacity=0.35), role=role)
            self._coloured(canvas.line(self.source, f"{side}x", f"{side}y", width=2.0), role=role)
        self._coloured(canvas.line(self.source, "median", "across", width=3.4), role="ink")
        self._coloured(canvas.line(one, "x", "y", width=1.6, dash=(6, 4)), role="ink")
        self._coloured(
            canvas.words(one, "x", "word", text="no bound above 1", font=f"{TICK_SIZE}px {FONT}"), role="muted"
        )
        self._coloured(canvas.marks(self.source, "most", "middle", LARGEST, 10), LARGEST)
        self._coloured(canvas.marks(self.source, "over_most", "middle", KINDS[VIOLATION], 11), KINDS[VIOLATION])

    def reset(self, scene: dict) -> None:
        """Forget the last run's proposals."""
        self.note = ""
        self._x.start_at(0.0, START)
        self._empty(self.source)

    def legend_html(self) -> str:
        """Give the legend: box, whiskers, and the largest ratio."""
        p = self.palette
        return legend(
            band_html("middle half", p.blue, p, (0.35,)),
            line_html("median", p.ink, p, width=3.4),
            line_html("least to 99 %", p.blue, p, width=2),
            mark_html(LARGEST, p),
            mark_html(KINDS[VIOLATION], p, "largest, violates"),
        )

    def _show(self, part: dict) -> bool:
        most = part["most"] if np.isfinite(part["most"]) else FARTHEST
        self._x.cover((0.0, float(np.clip(1.1 * most, START, FARTHEST))))
        self.note = (
            f"median {part['median']:.2f} · 99 % {part['q99']:.2f} · largest {general(part['most'])} ·"
            f" violations {100 * part['violation_share']:.1f} % of {part['proposals']:,}"
        )
        return self._push(self.source, _columns(part, self._x.range.end))


def _columns(part: dict, right: float) -> dict:
    least, low, median, high, end = (min(part[name], right) for name in ("least", "q25", "median", "q75", "q99"))
    most = min(part["most"], EDGE * right)
    ends = np.array([[least, low], [high, end], [low, high], [low, high], [least, least], [end, end]])
    up = np.array([[0, 0], [0, 0], [BOX, BOX], [-BOX, -BOX], [-CAP, CAP], [-CAP, CAP]])
    # The sides of the box stand on one side of 1 or the other.
    ends, up = np.vstack([ends, [[low, low], [high, high]]]), np.vstack([up, [[-BOX, BOX], [-BOX, BOX]]])
    violates = part["most"] > 1
    return columns(
        box=_clipped(np.array([low, high]), over=False),
        over_box=_clipped(np.array([low, high]), over=True),
        low=[-BOX, -BOX],
        high=[BOX, BOX],
        **_glyphs("", ends, up, over=False),
        **_glyphs("over_", ends, up, over=True),
        median=[median, median],
        across=[-BOX, BOX],
        most=[np.nan if violates else most],
        over_most=[most if violates else np.nan],
        middle=[0.0],
    )


def _clipped(ends: np.ndarray, over: bool) -> np.ndarray:
    """Return what of a stretch lies on one side of 1; nan for nothing."""
    first, last = (max(ends[0], 1.0), ends[1]) if over else (ends[0], min(ends[1], 1.0))
    beside = first > last or (over and last <= 1.0)
    return np.array([np.nan, np.nan]) if beside else np.array([first, last])


def _glyphs(side: str, ends: np.ndarray, up: np.ndarray, over: bool) -> dict[str, np.ndarray]:
    """Return what of straight glyphs lies on one side of 1, as one line with gaps."""
    cut = np.array([_clipped(pair, over) for pair in ends])
    return {f"{side}x": separated(*cut.T), f"{side}y": separated(*up.T)}
