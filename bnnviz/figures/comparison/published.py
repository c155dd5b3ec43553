"""Draw measured values and published ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures.marks import Axis, Drawing, Mark, Panels, Points, Segments
from bnnviz.figures.palette import Kind
from bnnviz.figures.ranges import extent, log_ticks

if TYPE_CHECKING:
    from bnnviz.experiments.table import Result

MOST_LETTERS = 30  # of a case's name
_LINE, _EDGES = 27, 74  # pixels of height: of a case, and of the margins above and below the cases
_WIDTH, _LETTER = 210, 7  # pixels, of a panel and of a letter
_SPAN = 60.0  # a wider range of positive values is drawn on a logarithmic axis
_ROOM = 0.09
_PAPER = Kind("paper", "diamond", "ink", False)
_OURS = Kind("ours", "circle", "blue", True)
_OFF = Kind("ours, different", "square", "magenta", True)


def published(source: Sequence[Result]) -> Drawing | Panels:
    """Plot published values (hollow) and measured values (filled) with two standard errors.

    Parameters
    ----------
    source : sequence of bnnviz.experiments.table.Result
        Results in the order of lines and panels.

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
        raise BnnvizError("There are no results to draw.", "source")
    cases, measures = (list(dict.fromkeys(getattr(dot, key) for dot in dots)) for key in ("case", "measure"))
    drawings = [
        _drawing([dot for dot in dots if dot.measure == measure], cases, named=place == 0)
        for place, measure in enumerate(measures)
    ]
    return Panels(drawings, len(measures))


def _drawing(dots: Sequence[Result], cases: Sequence[str], named: bool) -> Drawing:
    from bnnviz.experiments import LABELS
    from bnnviz.experiments.table import DIFFER, ERRORS

    place = {case: number for number, case in enumerate(cases)}
    shown: dict[Kind, list[tuple[float, float, float]]] = {_OURS: [], _OFF: [], _PAPER: []}
    for dot in dots:
        y = float(place[dot.case])
        if dot.ours is not None:
            kind = _OFF if dot.verdict == DIFFER else _OURS
            shown[kind].append((y, dot.ours, ERRORS * (dot.error or 0.0)))
        if dot.paper is not None:
            shown[_PAPER].append((y, dot.paper, ERRORS * (dot.paper_error or 0.0) if dot.paper_n > 1 else 0.0))
    bars = [end for found in shown.values() for _, at, error in found for end in (at - error, at + error)]
    low, high = extent(bars) or (0.0, 1.0)
    logarithmic = low > 0 and high > _SPAN * low
    scale = np.log10 if logarithmic else np.asarray
    marks: list[Mark] = []
    for kind, found in shown.items():
        y, at, error = np.array(found, dtype=float).reshape(-1, 3).T
        known = error > 0
        begin, end = scale((at - error)[known]), scale((at + error)[known])
        look = {"colour": kind.role, "opacity": 0.75}
        marks.append(Segments(begin, y[known], end - begin, np.zeros(len(begin)), 2.5, **look))
        marks.append(Points(scale(at), y, kind, 14 if kind is _PAPER else 11, 1.8, label=kind.label))
    low, high = float(scale(low)), float(scale(high))
    room = _ROOM * (high - low) or 0.1 * abs(high) or 1.0
    reach = low - room, high + room
    short = [case if len(case) <= MOST_LETTERS else f"{case[: MOST_LETTERS - 1]}…" for case in cases]
    letters = min(max(map(len, cases)), MOST_LETTERS) if named else 0
    return Drawing(
        marks,
        x=Axis(" ", reach, "exact", ticks=log_ticks(*reach) if logarithmic else None, count=3),
        y=Axis("  ", (len(cases) - 0.4, -0.6), "exact", ticks=dict(enumerate(short)), shown=named),
        title=LABELS.get(dots[0].measure, dots[0].measure),
        size=(_WIDTH + _LETTER * letters, _EDGES + _LINE * len(cases)),
    )
