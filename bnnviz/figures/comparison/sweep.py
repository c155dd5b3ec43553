"""Draw a sweep: a column for each setting, a row for each measure, a line for each series."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures.marks import Axis, Drawing, Mark, Panels, chain, curve, whiskers

SIZE = (340, 220)
_ROOM = math.log10(1.3)  # beyond the first and the last place
_LEAST = 1e-3  # of an axis, above and below the marks


def sweep(
    source: Sequence[Mapping[str, Any]],
    measures: Mapping[str, str],
    *,
    column: str = "setting",
    x: str = "value",
    series: str = "sampler",
) -> Drawing | Panels:
    """Plot metrics of many runs against a setting on a logarithmic axis, with one standard error.

    Parameters
    ----------
    source : sequence of dict
        Points with the keys given below, the metrics (None if unknown), and their standard errors as ``<measure>_se``.
    measures : dict of str to str
        Names of the metrics and labels of their axes.
    column, x, series : str
        Keys of the column, the horizontal axis and the line.

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
        why = f"one has no {missing[0]!r}" if missing else "got no points"
        raise BnnvizError(f"A sweep needs points with {column}, {x}, {series} and its measures; {why}.", "source")
    columns, lines = (list(dict.fromkeys(str(row[key]) for row in rows)) for key in (column, series))
    drawings = []
    for measure, label in measures.items():
        reach = _reach(rows, measure)
        for name in columns:
            shown = [row for row in rows if str(row[column]) == name]
            drawings.append(_drawing(shown, lines, (x, series, measure), (name, label), reach))
    return Panels(drawings, len(columns))


def _reach(rows: Sequence[Mapping[str, Any]], measure: str) -> tuple[float, float]:
    known = [(float(row[measure]), row.get(f"{measure}_se") or 0.0) for row in rows if row[measure] is not None]
    if not known:
        return 0.0, 1.0
    low, high = min(v - se for v, se in known), max(v + se for v, se in known)
    edge = max(0.08 * (high - low), _LEAST * max(abs(low), abs(high), _LEAST))
    return low - edge, high + edge


def _drawing(
    rows: Sequence[Mapping[str, Any]],
    lines: Sequence[str],
    keys: tuple[str, str, str],
    labels: tuple[str, str],
    reach: tuple[float, float],
) -> Drawing:
    at, series, measure = keys
    marks: list[Mark] = []
    for place, line in enumerate(lines):
        own = [row for row in rows if str(row[series]) == line and row[measure] is not None]
        if not own:
            continue
        where, values = np.log10([float(row[at]) for row in own]), np.array([row[measure] for row in own], dtype=float)
        error = np.array([row.get(f"{measure}_se") or math.nan for row in own], dtype=float)
        known = np.isfinite(error)
        ends = where[known], (values - error)[known], (values + error)[known]
        marks.append(whiskers(*ends, 1.5, colour=chain(place), label="± 1 standard error"))
        marks += curve(where, values, place, line)
    ticks = {math.log10(value): f"{value:g}" for value in sorted({float(row[at]) for row in rows})}
    x = Axis(labels[0].replace("_", " "), (min(ticks) - _ROOM, max(ticks) + _ROOM), "exact", ticks=ticks)
    return Drawing(marks, x=x, y=Axis(labels[1], reach, follow="exact"), size=SIZE)
