"""Draw a sweep: a column for each setting, a row for each measure, a line for each series."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.plots import style
from bnnviz.views.palette import Palette

SIZE = (340, 220)
_ROOM = 1.3  # a factor, beyond the first and the last place
_LEAST = 1e-3  # of an axis, above and below what is drawn


def sweep(
    source: Sequence[Mapping[str, Any]],
    measures: Mapping[str, str],
    *,
    column: str = "setting",
    x: str = "value",
    series: str = "sampler",
    dark: bool = False,
) -> hv.Overlay | hv.Layout:
    """Draw measures of many runs against a setting on a logarithmic axis, with one standard error.

    Parameters
    ----------
    source : sequence of dict
        Points: each with the keys below, each measure (None: unknown), and its standard error as ``<measure>_se``.
    measures : dict of str to str
        What is drawn, with the label of its axis.
    column, x, series : str
        Keys of what a column is for, of the place on the axis, and of what a line is for.
    dark : bool, default False

    Returns
    -------
    hv.Overlay, or hv.Layout: a row of figures for each measure, which share their height

    Raises
    ------
    BnnvizError
        If there are no points, or one lacks a key.

    Examples
    --------
    >>> from bnnviz import plots
    >>> sizes = (0.01, 0.03, 0.1, 0.3, 1.0)
    >>> of = {"setting": "step size", "ess_se": 5}
    >>> rows = [{**of, "sampler": "HMC", "value": size, "ess": 300 * size / (0.2 + size**2)} for size in sizes]
    >>> rows += [{**of, "sampler": "SGLD", "value": size, "ess": 200 * size} for size in sizes]
    >>> plots.sweep(rows, {"ess": "ESS"})
    :Overlay...
    """
    rows = list(source)
    missing = [key for row in rows for key in (column, x, series, *measures) if key not in row]
    if not rows or not measures or missing:
        why = f"one has no {missing[0]!r}" if missing else "there are none"
        raise BnnvizError(f"A sweep needs points with {column}, {x}, {series} and its measures; {why}.", "source")
    palette = style.palette_of(dark)
    columns, lines = (list(dict.fromkeys(str(row[key]) for row in rows)) for key in (column, series))
    complete = (name for name in columns if {str(r[series]) for r in rows if str(r[column]) == name} == set(lines))
    first = next(complete, columns[0])  # one legend is enough, where all lines are
    figures = []
    for measure, label in measures.items():
        reach = _reach(rows, measure)
        for name in columns:
            shown = [row for row in rows if str(row[column]) == name]
            keyed = name == first and measure == next(iter(measures))
            figures.append(_panel(shown, lines, (x, series, measure), (name, label), reach, keyed, palette))
    return style.layout(figures, across=len(columns), size=SIZE)


def _reach(rows: Sequence[Mapping[str, Any]], measure: str) -> tuple[float, float]:
    known = [(float(row[measure]), row.get(f"{measure}_se") or 0.0) for row in rows if row[measure] is not None]
    if not known:
        return 0.0, 1.0
    low, high = min(v - se for v, se in known), max(v + se for v, se in known)
    edge = max(0.08 * (high - low), _LEAST * max(abs(low), abs(high), _LEAST))
    return low - edge, high + edge


def _panel(
    rows: Sequence[Mapping[str, Any]],
    lines: Sequence[str],
    keys: tuple[str, str, str],
    labels: tuple[str, str],
    reach: tuple[float, float],
    keyed: bool,
    palette: Palette,
) -> hv.Overlay:
    at, series, measure = keys
    x = hv.Dimension((labels[0], labels[0].replace("_", " ")))
    y = hv.Dimension((measure, labels[1]))
    drawn = []
    for place, line in enumerate(lines):
        own = [row for row in rows if str(row[series]) == line and row[measure] is not None]
        if not own:
            continue
        colour, dash, marker = style.series(palette, place)
        points = np.array([(row[at], row[measure]) for row in own], dtype=float)
        error = np.array([row.get(f"{measure}_se") or math.nan for row in own], dtype=float)
        ends = (points[:, 0], points[:, 1] - error, points[:, 0], points[:, 1] + error)
        known = np.isfinite(error)
        if known.any():
            whiskers = hv.Segments(tuple(part[known] for part in ends), [x, y, "x1", "y1"])
            drawn.append(style.line(whiskers, palette, colour, 1.5))
        drawn.append(style.line(hv.Curve(points, x, y, label=line), palette, colour, 2.0, dash))
        drawn.append(style.marks(hv.Scatter(points, x, y, label=line), palette, colour, marker, size=7))
    ticks = sorted({float(row[at]) for row in rows})
    ends = ticks[0] / _ROOM, ticks[-1] * _ROOM
    how = {"logx": True, "xlim": ends, "ylim": reach, "xticks": [(value, f"{value:g}") for value in ticks]}
    legend = "top_left" if keyed and len(lines) > 1 else None
    return style.finish(hv.Overlay(drawn), palette, size=SIZE, legend=legend, **how)
