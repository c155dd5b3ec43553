"""Draw measured figures beside published ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.experiments import LABELS
from bnnviz.experiments.comparison import ERRORS, Figure
from bnnviz.plots import style
from bnnviz.views.palette import Palette

MOST_LETTERS = 30  # of a case's name
_LINE, _EDGES = 27, 74  # pixels of height: of a case, and of what is above and below all of them
_WIDTH, _LETTER = 210, 7  # pixels, of a panel and of a letter
_SPAN = 60.0  # a wider range of positive figures is drawn on a logarithmic axis
_ROOM = 0.09
_TICKS = 4  # about so many have room


def published(source: Sequence[Figure], *, dark: bool = False) -> hv.Overlay | hv.Layout:
    """Draw published figures as hollow marks and measured ones as filled marks with two standard errors.

    Parameters
    ----------
    source : sequence of bnnviz.experiments.comparison.Figure
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
    >>> from bnnviz.experiments.comparison import Figure
    >>> bps = Figure("BPS", "accuracy", 0.968, 0.001, published=0.97)
    >>> sgld = Figure("SGLD", "accuracy", 0.9, 0.004, published=0.91)
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


def _reach(dot: Figure) -> tuple[float, float]:
    """Return the ends of the whisker; NaN where there is none."""
    if dot.measured is None or dot.error is None:
        return math.nan, math.nan
    return dot.measured - ERRORS * dot.error, dot.measured + ERRORS * dot.error


def _short(name: str) -> str:
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"


def _panel(dots: Sequence[Figure], cases: Sequence[str], palette: Palette, named: bool) -> hv.Overlay:
    place = {case: number for number, case in enumerate(cases)}
    label = LABELS.get(dots[0].measure, dots[0].measure)
    x, y = hv.Dimension((dots[0].measure, label)), hv.Dimension(("case", " "))
    drawn: list[Any] = []
    for off, colour, marker in ((False, palette.blue, "circle"), (True, palette.magenta, "square")):
        own = [dot for dot in dots if dot.measured is not None and dot.differs is off]
        whiskers = [
            (_reach(dot)[0], place[dot.case], _reach(dot)[1], place[dot.case]) for dot in own if dot.error is not None
        ]
        if whiskers:
            drawn.append(style.line(hv.Segments(whiskers, [x, y, "x1", "y1"]), palette, colour, 2.5, alpha=0.75))
        if own:
            drawn.append(style.marks(_points(own, place, x, y), palette, colour, marker, size=11))
    theirs = [dot for dot in dots if dot.published is not None]
    if theirs:
        points = hv.Points([(dot.published, place[dot.case]) for dot in theirs], [x, y])
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


def _points(dots: Sequence[Figure], place: dict[str, int], x: hv.Dimension, y: hv.Dimension) -> hv.Points:
    return hv.Points([(dot.measured, place[dot.case]) for dot in dots], [x, y])


def _scale(dots: Sequence[Figure]) -> dict[str, Any]:
    """Return the axis of the figures: its ends, and whether it is logarithmic."""
    values = np.array(
        [v for dot in dots for v in (dot.published, dot.measured, *_reach(dot)) if v is not None], dtype=float
    )
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if low > 0 and high > _SPAN * low:
        factor = (high / low) ** _ROOM
        return {"logx": True, "xlim": (low / factor, high * factor)}
    edge = _ROOM * (high - low) or 0.1 * abs(high) or 1.0
    return {"xlim": (low - edge, high + edge), "xticks": _TICKS}
