"""Draw measured figures beside published ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.experiments import LABELS
from bnnviz.experiments.table import DIFFER, ERRORS, Result
from bnnviz.plots import style
from bnnviz.views.palette import Palette

MOST_LETTERS = 30  # of a case's name
_LINE, _EDGES = 27, 74  # pixels of height: of a case, and of what is above and below all of them
_WIDTH, _LETTER = 210, 7  # pixels, of a panel and of a letter
_SPAN = 60.0  # a wider range of positive figures is drawn on a logarithmic axis
_ROOM = 0.09
_TICKS = 4  # about so many have room


def published(source: Sequence[Result], *, dark: bool = False) -> hv.Overlay | hv.Layout:
    """Draw printed values as hollow marks and measured ones as filled marks, both with two standard errors.

    Parameters
    ----------
    source : sequence of bnnviz.experiments.table.Result
        In the order of their lines and panels.
    dark : bool, default False

    Returns
    -------
    hv.Overlay, or hv.Layout of several measures

    Raises
    ------
    BnnvizError
        If there are none.

    Examples
    --------
    >>> from bnnviz import plots
    >>> from bnnviz.experiments.table import Result
    >>> bps = Result("BPS", "accuracy", 0.968, 0.001, paper=0.97, paper_error=0.002)
    >>> sgld = Result("SGLD", "accuracy", 0.9, 0.004, paper=0.91)
    >>> plots.published([bps, sgld])
    :Overlay...
    """
    dots = list(source)
    if not dots:
        raise BnnvizError("There are no figures to draw beside each other.", "source")
    palette = style.palette_of(dark)
    cases = list(dict.fromkeys(dot.case for dot in dots))
    measures = list(dict.fromkeys(dot.measure for dot in dots))
    figures = [
        _panel([dot for dot in dots if dot.measure == measure], cases, palette, named=place == 0)
        for place, measure in enumerate(measures)
    ]
    size = (_WIDTH, _EDGES + _LINE * len(cases))
    return style.layout(figures, across=len(measures), size=size)


def _reach(value: float | None, error: float | None) -> tuple[float, float]:
    """Return the ends of the whisker; NaN where there is none."""
    if value is None or error is None:
        return math.nan, math.nan
    return value - ERRORS * error, value + ERRORS * error


def _short(name: str) -> str:
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"


def _panel(dots: Sequence[Result], cases: Sequence[str], palette: Palette, named: bool) -> hv.Overlay:
    place = {case: number for number, case in enumerate(cases)}
    label = LABELS.get(dots[0].measure, dots[0].measure)
    x, y = hv.Dimension((dots[0].measure, label)), hv.Dimension(("case", " "))
    drawn: list[Any] = []
    for off, colour, marker in ((False, palette.blue, "circle"), (True, palette.magenta, "square")):
        own = [dot for dot in dots if dot.ours is not None and (dot.verdict == DIFFER) is off]
        whiskers = [(dot, *_reach(dot.ours, dot.error)) for dot in own if dot.error is not None]
        if whiskers:
            drawn.append(_whiskers(whiskers, place, [x, y], palette, colour))
        if own:
            drawn.append(style.marks(_points(own, place, x, y), palette, colour, marker, size=11))
    theirs = [dot for dot in dots if dot.paper is not None]
    if theirs:
        whiskers = [(dot, *_reach(dot.paper, dot.paper_error)) for dot in theirs if dot.paper_n > 1]
        if whiskers:
            drawn.append(_whiskers(whiskers, place, [x, y], palette, palette.ink))
        points = hv.Points([(dot.paper, place[dot.case]) for dot in theirs], [x, y])
        marked = style.marks(points, palette, palette.ink, "diamond", filled=False, size=14, width=1.8)
        drawn.append(style.apply(marked, {"fill_alpha": 0.0}, {"facecolors": "none"}))
    scale = _scale(dots)
    ticks = [(number, _short(case)) for case, number in place.items()]
    letters = min(max(map(len, cases)), MOST_LETTERS)
    width = _WIDTH + (_LETTER * letters if named else 0)
    how = {"yticks": ticks, "invert_yaxis": True, "ylim": (-0.6, len(cases) - 0.4), "xlabel": "", "ylabel": "", **scale}
    hidden: dict[str, Any] = {} if named else {"yaxis": None}
    size = (width, _EDGES + _LINE * len(cases))
    return style.finish(hv.Overlay(drawn), palette, title=label, size=size, **how, **hidden)


def _whiskers(
    ends: list[tuple[Result, float, float]],
    place: dict[str, int],
    axes: list[hv.Dimension],
    palette: Palette,
    colour: str,
) -> Any:
    segments = [(low, place[dot.case], high, place[dot.case]) for dot, low, high in ends]
    return style.line(hv.Segments(segments, [*axes, "x1", "y1"]), palette, colour, 2.5, alpha=0.75)


def _points(dots: Sequence[Result], place: dict[str, int], x: hv.Dimension, y: hv.Dimension) -> hv.Points:
    return hv.Points([(dot.ours, place[dot.case]) for dot in dots], [x, y])


def _scale(dots: Sequence[Result]) -> dict[str, Any]:
    """Return the axis of the figures: its ends, and whether it is logarithmic."""
    known = [(dot.paper, dot.ours, *_reach(dot.ours, dot.error)) for dot in dots]
    values = np.array([value for each in known for value in each if value is not None], dtype=float)
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if low > 0 and high > _SPAN * low:
        factor = (high / low) ** _ROOM
        return {"logx": True, "xlim": (low / factor, high * factor)}
    edge = _ROOM * (high - low) or 0.1 * abs(high) or 1.0
    return {"xlim": (low - edge, high + edge), "xticks": _TICKS}
