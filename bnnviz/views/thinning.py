"""Thinning: the rate along the present segment, the envelope, and what was proposed under it."""

from __future__ import annotations

import numpy as np
from bokeh.core.properties import value

from bnnviz.views.base import FONT, TICK_SIZE, View, columns, empty_source, extent, separated
from bnnviz.views.palette import (
    ACCEPTED,
    BOUNCE,
    KINDS,
    REJECTED,
    VIOLATION,
    Kind,
    legend,
    line_html,
    mark_html,
)

UNIFORM = Kind("u × envelope", "diamond", "ink", False)
MARKS = {REJECTED: KINDS[REJECTED], BOUNCE: ACCEPTED, VIOLATION: KINDS[VIOLATION]}
BELOW = 0.3  # of the height is shown under zero, where the signed rate may go far
AHEAD = 0.4  # of all that lies ahead is shown at least
PATIENCE = 25


class ThinningView(View):
    """The rate along the segment, signed and clipped, the envelope and its proposals."""

    name = "thinning"
    title = "Thinning, this segment"
    needs = ("envelope",)
    hot = True

    def _build(self) -> None:
        fig = self._figure("time since the last event (path time)", "rate (1/time)", (0.0, 1.0), (-0.5, 2.0))
        self._x, self._y = self._window(fig.x_range, PATIENCE), self._window(fig.y_range, PATIENCE)
        self._segment: int | None = None
        self.source = source = empty_source(_columns(None))
        self._line(source, "zero_t", "zero", "axis", line_width=1)
        self._line(source, "stem_t", "stem", "grey", line_width=1.2, line_dash="dotted")
        self._line(source, "stem_t", "accepted_stem", "green", line_width=1.8, line_dash="dotted")
        self._line(source, "rate_t", "signed", "pale", line_width=1.6, line_dash="dashed")
        self._line(source, "rate_t", "clipped", "blue", line_width=2.4)
        self._line(source, "past_t", "past", "red", line_width=2.2)
        self._line(source, "now_t", "now", "orange", line_width=3.8)
        self._line(source, "refresh_t", "refresh", "purple", line_width=1.8, line_dash="dashed")
        self._label = fig.text(
            "label_t",
            "label",
            source=source,
            text=value("refresh clock"),
            text_font=value(FONT),
            text_font_size=TICK_SIZE,
            text_baseline="top",
            text_align="right",
            x_offset=-5,
        )
        self._paint(self._label.glyph, text_color="purple")
        for code, kind in MARKS.items():
            self._marks(source, "t", f"kind{code}", kind, 11, line_width=2.2)
        uniform = self._marks(source, "t", "uniform", UNIFORM, 8, fill_alpha=1.0)
        self._paint(uniform.glyph, fill_color="surface")

    def reset(self, scene: dict) -> None:
        """Forget the last run's segment."""
        self.note, self._segment = "", None
        self._x.start_at(0.0, 1.0)
        self._y.restart()
        self._push(self.source, _columns(None))

    def legend_html(self) -> str:
        """Give the legend: lines and marks."""
        p = self.palette
        return legend(
            line_html("rate", p.blue, p),
            line_html("envelope", p.orange, p, width=3.5),
            line_html("before", p.red, p),
            *(mark_html(MARKS[code], p) for code in (REJECTED, BOUNCE)),
            mark_html(MARKS[VIOLATION], p, "violates"),
            mark_html(UNIFORM, p, hint="the uniform draw: accepted where this mark lies under the rate"),
        )

    def _show(self, part: dict) -> bool:
        self.root.yaxis[0].axis_label = f"rate ({part['unit']})"
        self.note = _note(part)
        begins, self._segment = part["segment"] != self._segment, part["segment"]
        top = 1.08 * _height(part)
        lowest = extent(part["rate"], [0.0])[0]
        self._x.cover((0.0, part["t_max"]), begins)
        self._y.cover((max(lowest, -BELOW * top), top), begins)
        right, bottom, top = self._x.range.end, self._y.range.start, self._y.range.end
        self._place_label(at_left=part["refresh_t"] < 0.3 * right)
        return self._push(self.source, _columns(part, right, bottom, top))

    def _place_label(self, at_left: bool) -> None:
        self._label.glyph.update(text_align="left" if at_left else "right", x_offset=5 if at_left else -5)


def _height(part: dict) -> float:
    """Give the rate that the figure must reach to: far ahead of the proposals the rate may leave it."""
    t = np.asarray(part["rate_t"])
    reached = max((x for name in ("now_t1", "proposal_t") for x in part[name]), default=part["t_max"])
    near = np.where(t <= 1.1 * reached, part["rate"], 0.0)
    heights = (part[name] for name in ("past_h0", "past_h1", "now_h0", "now_h1", "proposal_height"))
    seen = extent(near, part["proposal_rate"], *heights)
    return max(seen[1] if seen else 0.0, AHEAD * part["y_max"], 1e-9)


def _columns(part: dict | None, right: float = 1.0, bottom: float = 0.0, top: float = 1.0) -> dict:
    part = part or _NOTHING
    t, rate, kind = (
        part["proposal_t"],
        np.maximum(part["proposal_rate"], 0),
        np.asarray(part["proposal_kind"]),
    )
    height, refresh = np.asarray(part["proposal_height"]), part["refresh_t"]
    stems = np.fmax(height, rate)
    taken = np.isin(kind, (BOUNCE, VIOLATION))
    edge = bottom + 0.97 * (top - bottom)
    return columns(
        zero_t=[0.0, 10 * right],
        zero=[0.0, 0.0],
        rate_t=part["rate_t"],
        signed=np.where(np.asarray(part["rate"]) < 0, part["rate"], np.nan),
        clipped=np.maximum(part["rate"], 0),
        past_t=separated(part["past_t0"], part["past_t1"]),
        past=separated(part["past_h0"], part["past_h1"]),
        now_t=separated(part["now_t0"], part["now_t1"]),
        now=separated(part["now_h0"], part["now_h1"]),
        stem_t=separated(t, t),
        stem=separated(np.zeros(len(t)), np.where(taken, np.nan, stems)),
        accepted_stem=separated(np.zeros(len(t)), np.where(taken, stems, np.nan)),
        t=t,
        uniform=np.asarray(part["proposal_u"]) * height,
        **{f"kind{code}": np.where(kind == code, rate, np.nan) for code in MARKS},
        refresh_t=[refresh, refresh],
        refresh=[bottom, top],
        label_t=[refresh if refresh <= right else np.nan],
        label=[edge],
    )


_LISTS = (
    "rate_t",
    "rate",
    *(f"{when}_{end}" for when in ("past", "now") for end in ("t0", "t1", "h0", "h1")),
)
_PROPOSALS = tuple(f"proposal_{name}" for name in ("t", "rate", "height", "u", "kind"))
_NOTHING = {**{name: np.empty(0) for name in (*_LISTS, *_PROPOSALS)}, "refresh_t": np.nan}


def _note(part: dict) -> str:
    if not part["proposals"]:
        return ""
    return (
        f"accepted {part['acceptance']:.2f} · violations {100 * part['violation_share']:.1f} % · "
        f"E[(ratio−1)+] {part['excess']:.3f} · q99 {part['ratio_q99']:.2f}"
    )
