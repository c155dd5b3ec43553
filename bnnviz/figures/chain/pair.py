"""Draw draws in pairs of variables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from bnnviz.errors import BnnvizError
from bnnviz.figures import sources
from bnnviz.figures.marks import SQUARE, Axis, Drawing, Mark, Panels, Points, reach, series_kind
from bnnviz.figures.palette import KINDS, VIOLATION
from bnnviz.figures.sources import SourceDraws

_MOST = 3  # variables without a choice


def pair(source: Any, variables: str | Sequence[str] | None = None, *, divergences: bool = True) -> Drawing | Panels:
    """Plot draws in each pair of variables and mark divergent draws.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array, dict or list
        Draws. Several sources have different colours and markers.
    variables : str or sequence of str, optional
        At least two variables. The default is the first three.
    divergences : bool, default True
        Whether to mark divergent draws.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(4, 250))
    >>> banana = np.stack([x, x**2 - 1 + 0.5 * rng.normal(size=(4, 250))], -1)
    >>> plots.pair(banana)
    :Overlay...
    """
    found, names = sources.shared(source, variables, _MOST)
    if len(names) < 2:
        raise BnnvizError(f"A pair needs two variables; there is {', '.join(names) or 'none'}.", "variables")
    drawings = [_drawing(found, both, divergences) for both in combinations(names, 2)]
    return Panels(drawings, min(3, len(drawings)))


def _drawing(found: Sequence[SourceDraws], shown: tuple[str, str], divergences: bool) -> Drawing:
    marks: list[Mark] = []
    for place, draws in enumerate(found):
        x, y = (draws.of(name).ravel() for name in shown)
        kind, look = series_kind(place), {"label": draws.name, "ids": draws.ids.ravel()}
        look |= {"opacity": 0.35 if len(x) > 2000 else 0.55}
        marks.append(Points(x, y, kind, 5.0 if len(x) > 500 else 6.5, 0.4, fill=kind.role, **look))
        if divergences and draws.diverging is not None and draws.diverging.any():
            at = tuple(draws.of(name)[draws.diverging] for name in shown)
            marks.append(Points(*at, KINDS[VIOLATION], 9, label="divergent"))
    ends = reach(marks)
    return Drawing(marks, x=Axis(shown[0], ends[0]), y=Axis(shown[1], ends[1]), size=SQUARE)
