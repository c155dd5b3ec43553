"""Draw several panels: recorded parts of frames, or the predictions of several samplers on several data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.marks import Axis, Drawing, Line, Mark, Panels, Points
from bnnviz.figures.predictive.prediction import DATA, band_of, limited
from bnnviz.figures.ranges import extent, padded

SIZE = (270, 230)
_BAND = "band"  # panels of this kind share their axes
_NAMES = ("row", "column", "data", "parts")


def panels(source: Sequence[tuple[str, str, dict[str, Any]]]) -> Drawing | Panels:
    """Plot recorded parts of frames in a grid with two columns.

    Parameters
    ----------
    source : sequence of (str, str, dict)
        Heading, figure and part of each, as the records of experiments have them. A part may have its scene under
        ``scene``.

    Examples
    --------
    >>> from bnnviz import plots
    >>> part = {"matrix": [[8, 2], [1, 9]], "classes": ["cat", "dog"]}
    >>> plots.panels([("HMC", "confusion", part), ("SGLD", "confusion", part)])
    :Layout...
    """
    from bnnviz.figures.listing import BY_NAME

    found = list(source)
    unknown = [name for _, name, _ in found if name not in BY_NAME and name != _BAND]
    if not found or unknown:
        why = f"no figure is called {unknown[0]!r}" if unknown else "there is no part"
        raise BnnvizError(f"Panels need parts of frames: {why}.", "source")
    if found[0][1] == _BAND:
        return bands([part for _, _, part in found])
    made = [(heading, parts.drawn(BY_NAME[name](), given, name)) for heading, name, given in found]
    return Panels([replace(drawing, title=heading) for heading, drawing in made], 2)


def bands(source: Sequence[Mapping[str, Any]]) -> Drawing | Panels:
    """Plot a grid of prediction bands with a row for each data set and a column for each sampler.

    Each panel shows the data (red), the mean and the central 50% and 95% bands of the first run, and the means of the
    other runs as thin lines. Panels of a row share their axes.

    Parameters
    ----------
    source : sequence of dict
        One for each place: ``row`` and ``column``, its names; ``data``, that of a scene (x, y, x_range, y_range,
        x_label, y_label); ``parts``, the prediction of each run (x, mean, lo50, hi50, lo95, hi95).

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> x = np.linspace(0, 1, 50)
    >>> mean, sd = np.sin(6 * x), 0.1 + 2 * (x - 0.5) ** 2
    >>> ends = {"lo50": mean - 0.7 * sd, "hi50": mean + 0.7 * sd, "lo95": mean - 2 * sd, "hi95": mean + 2 * sd}
    >>> data = {"x": x[15:35], "y": mean[15:35], "x_range": (0, 1), "y_range": (-3, 3), "x_label": "x", "y_label": "y"}
    >>> part = {"x": x, "mean": mean, **ends}
    >>> plots.bands([{"row": "toy", "column": name, "data": data, "parts": [part]} for name in ("BPS", "SGLD")])
    :Layout...
    """
    found = [parts.as_arrays(dict(each)) for each in source]
    missing = [name for each in found for name in _NAMES if name not in each]
    if not found or missing:
        why = f"one has no {missing[0]!r}" if missing else "got no places"
        raise BnnvizError(f"Bands need {', '.join(_NAMES)} of each place; {why}.", "source")
    rows, columns = (list(dict.fromkeys(each[key] for each in found)) for key in ("row", "column"))
    at = {(each["row"], each["column"]): each for each in found}
    drawings: list[Drawing | None] = []
    for row in rows:
        beside = [each for each in found if each["row"] == row]
        # The data and all bands, limited to the neighbourhood of the data.
        data, bands = beside[0]["data"], [each["parts"][0][end] for each in beside for end in ("lo95", "hi95")]
        ends = padded(extent(data["y"], *bands), 0.05)
        reach = limited(data, ends) or tuple(map(float, data["y_range"]))
        drawings += [_drawing(at[row, name], reach) if (row, name) in at else None for name in columns]
    return Panels(drawings, len(columns), one_legend=True)


def _drawing(panel: dict[str, Any], reach: tuple[float, float]) -> Drawing:
    data, (part, *others) = panel["data"], panel["parts"]
    marks: list[Mark] = [*band_of(part)]
    marks += [Line(o["x"], o["mean"], 1.0, colour="blue", opacity=0.8, label="means of other runs") for o in others]
    marks.append(Points(data["x"], data["y"], DATA, 4, fill="surface", opacity=0.6, label="data"))
    marks.append(Line(part["x"], part["mean"], 2.6, label="mean"))
    return Drawing(
        marks,
        x=Axis(data["x_label"], tuple(map(float, data["x_range"])), follow="exact"),
        y=Axis(data["y_label"], reach, follow="exact"),
        title=f"{panel['column']}, {panel['row']}",
        size=SIZE,
    )
