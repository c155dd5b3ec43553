"""Draw draws in pairs of variables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.plots import sources, style
from bnnviz.plots.points import cloud
from bnnviz.plots.sources import ID, SourceDraws
from bnnviz.views.palette import EVENTS, KINDS, VIOLATION, Palette

_MOST = 3  # variables that nobody asked for


def pair(
    source: Any,
    variables: str | Sequence[str] | None = None,
    *,
    divergences: bool = True,
    events: Any = None,
    dark: bool = False,
) -> hv.Overlay | hv.Layout:
    """Draw draws in each pair of variables, with those that a divergent move led to, and the events of a path.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array, dict or list
        Of several each has a colour and a marker.
    variables : str or sequence of str, optional
        At least two; default: the first three.
    divergences : bool, default True
        Whether divergent draws are marked, where they are known.
    events : dict of str to ndarray, optional
        Where events of a path lie: ``kind`` (events,), as in `bnnviz.views.KINDS` (2 a bounce, 3 a refreshment, 5 a
        violated bound), and a coordinate (events,) under the name of each variable.
    dark : bool, default False

    Returns
    -------
    hv.Overlay, or hv.Layout of several pairs

    Raises
    ------
    BnnvizError
        If draws cannot be read from the source, there are fewer than two variables, events do not fit, or there are
        more than 100,000 draws and Datashader is not installed.

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
    found = sources.read(source)
    names = sources.shared(found, variables, _MOST)
    if len(names) < 2:
        raise BnnvizError(f"A pair needs two variables; there is {', '.join(names) or 'none'}.", "variables")
    palette = style.palette_of(dark)
    marked = None if events is None else _events(events, names)
    figures = [_one(found, names, (a, b), divergences, marked, palette) for a, b in combinations(names, 2)]
    return style.layout(figures, across=min(3, len(figures)), size=style.SQUARE)


def _one(
    found: Sequence[SourceDraws],
    names: Sequence[str],
    shown: tuple[str, str],
    divergences: bool,
    events: dict[str, np.ndarray] | None,
    palette: Palette,
) -> hv.Overlay:
    dims = [hv.Dimension((name, name)) for name in shown]
    drawn = []
    for place, draws in enumerate(found):
        rows = hv.Dataset(draws.table(names), ["chain", "draw", ID], list(names))
        colour, _, marker = style.series(palette, place)
        element = hv.Points(rows, dims, ["chain", "draw", ID], label=draws.name)
        count = len(rows)
        how = {"marker": marker, "size": 5.0 if count > 500 else 6.5, "alpha": 0.35 if count > 2000 else 0.55}
        drawn.append(cloud(element, palette, colour, width=0.4, **how))
        if divergences and draws.diverging is not None and draws.diverging.any():
            at = tuple(draws.of(name)[draws.diverging] for name in shown)
            drawn.append(style.kind(hv.Points(at, dims, label="divergent"), palette, KINDS[VIOLATION], 9))
    if events is not None:
        for code in EVENTS:
            own = events["kind"] == code
            if own.any():
                at = tuple(events[name][own] for name in shown)
                drawn.append(style.kind(hv.Points(at, dims, label=KINDS[code].label), palette, KINDS[code], 8))
    legend = "right" if len(drawn) > 1 else None
    return style.finish(hv.Overlay(drawn), palette, size=style.SQUARE, room=90, legend=legend)


def _events(events: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    missing = [name for name in ("kind", *names) if name not in events]
    if missing:
        raise BnnvizError(f"events needs {missing[0]!r}: give kind and a coordinate for each of {names}.", "events")
    found = {name: np.asarray(events[name]) for name in ("kind", *names)}
    if len({each.shape for each in found.values()}) > 1:
        raise BnnvizError("Give one kind and one place for each event.", "events")
    return found
