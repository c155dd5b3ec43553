"""Draw a sweep: a column for each setting, a row for each measure, a line for each series."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures.marks import Axis, Drawing, Mark, Panels, chain, curve, whiskers
from bnnviz.figures.ranges import extent

SIZE = (340, 220)
_KEYS = ("setting", "value", "sampler")
_ROOM = math.log10(1.3)  # beyond the first and the last place
_LEAST = 1e-3  # of an axis, above and below the marks


def sweep(source: Sequence[Mapping[str, Any]], measures: Mapping[str, str]) -> Panels:
    """Plot metrics of many runs against a setting on a logarithmic axis, with one standard error.

    Parameters
    ----------
    source : sequence of dict
        Points with the keys ``setting`` (a column each), ``value`` (the horizontal axis) and ``sampler`` (a line each),
        the metrics (None if unknown), and their standard errors as ``<measure>_se``.
    measures : dict of str to str
        Names of the metrics and labels of their axes.

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
    missing = [key for row in rows for key in (*_KEYS, *measures) if key not in row]
    if not rows or not measures or missing:
        why = f"one has no {missing[0]!r}" if missing else "got no points"
        raise BnnvizError(f"A sweep needs points with {', '.join(_KEYS)} and its measures; {why}.", "source")
    columns, lines = (list(dict.fromkeys(str(row[key]) for row in rows)) for key in ("setting", "sampler"))
    drawings = []
    for measure, label in measures.items():
        known = [row for row in rows if row[measure] is not None]
        spreads = [(float(row[measure]), row.get(f"{measure}_se") or 0.0) for row in known]
        low, high = extent([(value - se, value + se) for value, se in spreads]) or (0.0, 1.0)
        edge = max(0.08 * (high - low), _LEAST * max(abs(low), abs(high), _LEAST)) if known else 0.0
        for name in columns:
            marks: list[Mark] = []
            for place, line in enumerate(lines):
                own = [row for row in known if (str(row["setting"]), str(row["sampler"])) == (name, line)]
                if not own:
                    continue
                at, values = (np.array([row[key] for row in own], dtype=float) for key in ("value", measure))
                at = np.log10(at)
                error = np.array([row.get(f"{measure}_se") or math.nan for row in own], dtype=float)
                sure = np.isfinite(error)
                ends = at[sure], (values - error)[sure], (values + error)[sure]
                marks.append(whiskers(*ends, 1.5, colour=chain(place), label="± 1 standard error"))
                marks += curve(at, values, place, line)
            shown = sorted({float(row["value"]) for row in rows if str(row["setting"]) == name})
            ticks = {math.log10(value): f"{value:g}" for value in shown}
            across = Axis(name.replace("_", " "), (min(ticks) - _ROOM, max(ticks) + _ROOM), "exact", ticks=ticks)
            drawings.append(Drawing(marks, x=across, y=Axis(label, (low - edge, high + edge), "exact"), size=SIZE))
    return Panels(drawings, len(columns))
