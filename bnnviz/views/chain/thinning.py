"""Draw the rate along the present segment, the envelope, and what was proposed under it."""

from __future__ import annotations

import numpy as np

from bnnviz.views.axis_range import AxisRange
from bnnviz.views.base import FONT, TICK_SIZE, View, columns, extent, separated
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import (
    ACCEPTED,
    BOUNCE,
    KINDS,
    REJECTED,
    UNIFORM,
    VIOLATION,
    legend,
    line_html,
    mark_html,
)

MARKS = {REJECTED: KINDS[REJECTED], BOUNCE: ACCEPTED, VIOLATION: KINDS[VIOLATION]}
DOTTED, DASHED = (2, 4), (6, 4)
# Columns of x and y, role of the colour, width, dash.
LINES = (
    ("stem_t", "stem", "grey", 1.2, DOTTED),
    ("stem_t", "accepted_stem", "green", 1.8, DOTTED),
    ("rate_t", "signed", "pale", 1.6, DASHED),
    ("rate_t", "clipped", "blue", 2.4, ()),
    ("past_t", "past", "red", 2.2, ()),
    ("now_t", "now", "orange", 3.8, ()),
    ("refresh_t", "refresh", "purple", 1.8, DASHED),
)
_COLUMNS = (
    *dict.fromkeys(name for line in LINES for name in line[:2]),
    *("t", "uniform", "rate", "kind", "label_t", "label"),
)
BELOW = 0.3  # of the height is shown under zero, where the signed rate may go far
AHEAD = 0.4  # of all that lies ahead is shown at least
TIMES, RATES = (0.0, 1.0), (-0.5, 2.0)  # before anything is known
MEMORY = 12  # segments
FAR = 1e9  # path time
LEAST = 0.1  # events expected over the time shown, at a rate of the full height: lower rates lie flat
LATEST = 12  # proposals are shown with their uniform mark
SLOW = 2  # frames on one segment: no longer at a speed where every frame shows another
HURRIED = 3  # frames in a row, each with another segment


class ThinningView(View):
    """Draw the rate along the segment, signed and clipped, the envelope and its proposals."""

    name = "thinning"
    title = "Thinning, this segment"
    needs = ("envelope",)

    def _build(self) -> None:
        fig = self._figure("time since the last event (path time)", "rate (1/time)", TIMES, RATES)
        self._x, self._y = self._window(fig.x_range, MEMORY), self._window(fig.y_range, MEMORY)
        self._segment: int | None = None
        self._frames = self._in_a_row = 0
        self._paused = self._look = False
        self._needs: dict[AxisRange, tuple[float, float] | None] = {}
        self.source = source = PackedColumns(_COLUMNS)
        zero = PackedColumns(("x", "zero"))
        zero.push(columns(x=[0.0, FAR], zero=[0.0, 0.0]))
        canvas = self.canvas
        self._coloured(canvas.line(zero, "x", "zero"), role="axis")
        for x, y, role, width, dash in LINES:
            self._coloured(canvas.line(source, x, y, width=width, dash=dash), role=role)
        self._coloured(
            canvas.words(source, "label_t", "label", text="refresh clock", font=f"{TICK_SIZE}px {FONT}"), role="purple"
        )
        for code, kind in MARKS.items():
            self._coloured(canvas.marks(source, "t", "rate", kind, 11, width=2.2, of="kind", code=code), kind)
        self._paint(canvas.marks(source, "t", "uniform", UNIFORM, 8), colour=UNIFORM.role, fill="surface")

    def reset(self, scene: dict) -> None:
        """Forget the last run's segment."""
        self.note, self._segment, self._frames, self._needs = "", None, 0, {}
        self._in_a_row = 0
        self._x.start_at(*TIMES)
        self._y.start_at(*RATES)
        self._empty(self.source)

    def legend_html(self) -> str:
        """Give the legend: lines and marks."""
        p = self.palette
        return legend(
            line_html("rate", p.blue, p),
            line_html("envelope", p.orange, p, width=3.5),
            line_html("used", p.red, p),
            *(mark_html(MARKS[code], p) for code in (REJECTED, BOUNCE)),
            mark_html(MARKS[VIOLATION], p, "violates"),
            mark_html(UNIFORM, p, hint="the uniform draw: accepted where this mark lies under the rate"),
        )

    def _show(self, part: dict) -> bool:
        self.y_label = f"rate ({part['unit']})"
        self.note = _note(part)
        self._enter_segment(part["segment"])
        self._needs = {self._x: (0.0, part["t_max"]), self._y: _heights(part)}
        for window, need in self._needs.items():
            if self._in_a_row >= HURRIED and not self._paused:
                window.glimpse(need)
                continue
            if self._look:
                window.remember(need, settle=True)
            window.cover(need)
        right, bottom, top = self._x.range.end, self._y.range.start, self._y.range.end
        return self._push(self.source, _columns(part, right, bottom, top))

    def update(self, frame: dict) -> bool:
        """Draw a frame; where a run pauses, the axes close in on what is there to be looked at."""
        playing = frame.get("status", {}).get("playing", True)
        self._paused, paused = not playing, self._paused
        self._look = self._paused and not paused
        return super().update(frame)

    def _enter_segment(self, segment: int) -> None:
        """Let the axes close in on what the segment before needed in the end; in it they only grow."""
        if segment == self._segment:
            self._frames += 1
            self._in_a_row = 0
            return
        self._in_a_row += 1
        for window, need in self._needs.items():
            window.remember(need, settle=self._frames >= SLOW)
        self._segment, self._frames = segment, 1


def least_height(t_max: float) -> float:
    """Return the rate that the axis reaches at least, where so much path time is shown."""
    return LEAST / max(float(t_max), TIMES[1])


def _heights(part: dict) -> tuple[float, float] | None:
    """Give the rates to show: far ahead of the proposals, and far under zero, the curve may leave the figure."""
    t = np.asarray(part["rate_t"])
    reached = max((x for name in ("now_t1", "proposal_t") for x in part[name]), default=part["t_max"])
    near = np.where(t <= 1.1 * reached, part["rate"], 0.0)
    names = ("past_h0", "past_h1", "now_h0", "now_h1", "proposal_height", "proposal_rate")
    seen = extent(near, [AHEAD * part["y_max"]], *(part[name] for name in names))
    lowest = extent(part["rate"], [0.0])
    if seen is None:
        return None
    top = max(1.08 * seen[1], least_height(part["t_max"]))
    return max(lowest[0], -BELOW * top), top


def _columns(part: dict, right: float, bottom: float, top: float) -> dict:
    t, rate, kind = (
        part["proposal_t"],
        np.maximum(part["proposal_rate"], 0),
        np.asarray(part["proposal_kind"]),
    )
    height, refresh = np.asarray(part["proposal_height"]), part["refresh_t"]
    latest = slice(-LATEST, None)
    stem_t, stems = t[latest], np.fmax(height, rate)[latest]
    foot, taken = np.zeros(len(stems)), np.isin(kind, (BOUNCE, VIOLATION))[latest]
    edge = bottom + 0.97 * (top - bottom)
    return columns(
        rate_t=part["rate_t"],
        signed=np.where(np.asarray(part["rate"]) < 0, part["rate"], np.nan),
        clipped=np.maximum(part["rate"], 0),
        past_t=separated(part["past_t0"], part["past_t1"]),
        past=separated(part["past_h0"], part["past_h1"]),
        now_t=separated(part["now_t0"], part["now_t1"]),
        now=separated(part["now_h0"], part["now_h1"]),
        stem_t=separated(stem_t, stem_t),
        stem=separated(foot, np.where(taken, np.nan, stems)),
        accepted_stem=separated(foot, np.where(taken, stems, np.nan)),
        t=t,
        uniform=np.where(np.arange(len(t)) >= len(t) - LATEST, np.asarray(part["proposal_u"]) * height, np.nan),
        rate=rate,
        kind=kind,
        refresh_t=[refresh, refresh],
        refresh=[bottom, top],
        label_t=[refresh if refresh <= right else np.nan],
        label=[edge],
    )


def _note(part: dict) -> str:
    if not part.get("proposals"):
        return ""
    return f"accepted {part['acceptance']:.2f} · violations {100 * part['violation_share']:.1f} %"
