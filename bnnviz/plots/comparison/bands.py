"""Draw predictions of several samplers on several data sets beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv

from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, style
from bnnviz.plots.predictive.prediction import band_of, band_range
from bnnviz.views.palette import Palette
from bnnviz.views.predictive.prediction import DATA

SIZE = (270, 230)
_NAMES = ("row", "column", "data", "parts")


def bands(
    source: Sequence[Mapping[str, Any]], *, size: tuple[int, int] = SIZE, dark: bool = False
) -> hv.Overlay | hv.Layout:
    """Draw bands of predictions: a row for each data set, a column for each sampler; a row shares its axes.

    Of the first run the data (red), the mean of the functions and where the middle 50 and 95 % of them lie; thin lines
    are the means of the other runs.

    Parameters
    ----------
    source : sequence of dict
        One for each place: ``row`` and ``column``, what it is of; ``data``, that of a scene (x, y, x_range, y_range,
        x_label, y_label); ``parts``, the prediction of each run (x, mean, lo50, hi50, lo95, hi95).
    size : (int, int)
        Of a panel, in pixels.
    dark : bool, default False

    Returns
    -------
    hv.Overlay, or hv.Layout of several

    Raises
    ------
    BnnvizError
        If there is none, or one lacks something.

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
        why = f"one has no {missing[0]!r}" if missing else "there are none"
        raise BnnvizError(f"Bands need {', '.join(_NAMES)} of each place; {why}.", "source")
    palette = style.palette_of(dark)
    rows, columns = (list(dict.fromkeys(each[key] for each in found)) for key in ("row", "column"))
    at = {(each["row"], each["column"]): each for each in found}
    figures = []
    for row in rows:
        beside = [each for each in found if each["row"] == row]
        reach = band_range(beside[0]["data"], [each["parts"][0] for each in beside])
        figures += [
            _panel(at[row, column], reach, size, palette) if (row, column) in at else hv.Empty() for column in columns
        ]
    return style.layout(figures, across=len(columns), size=size)


def _panel(panel: dict[str, Any], reach: tuple[float, float], size: tuple[int, int], palette: Palette) -> hv.Overlay:
    data, (band, *others) = panel["data"], panel["parts"]
    x = hv.Dimension((f"{panel['row']} {data['x_label']}", data["x_label"]))
    y = hv.Dimension((f"{panel['row']} {data['y_label']}", data["y_label"]))
    *areas, mean = band_of(band, x, y, palette)
    means = [style.line(hv.Curve((o["x"], o["mean"]), x, y), palette, palette.blue, 1.0, alpha=0.8) for o in others]
    points = style.kind(hv.Points((data["x"], data["y"]), [x, y]), palette, DATA, 4, alpha=0.6)
    title, ends = f"{panel['column']}, {panel['row']}", tuple(float(end) for end in data["x_range"])
    figure = hv.Overlay([*areas, *means, points, mean])
    return style.finish(figure, palette, title=title, size=size, xlim=ends, ylim=reach)
