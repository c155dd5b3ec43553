"""Draw figures of predictions by iteration."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, style

_SHADE = 0.18


def history(source: Any, *, dark: bool = False) -> hv.Overlay:
    """Draw a figure of the predictions, its mean over the draws of each iteration and one standard deviation.

    Parameters
    ----------
    source : Run or dict
        A run of a network by a sampler with a population; or the part ``history`` of a frame: ``label`` and ``lines``,
        dicts with ``name``, ``iteration``, ``mean`` and ``sd``; and ``along``, what iterations are called where they
        are something else.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If there is no such history.

    Examples
    --------
    >>> from bnnviz import plots
    >>> steps = list(range(1, 8))
    >>> full = {"name": "PMCnet", "iteration": steps, "mean": [1 - 0.4 * 0.6**t for t in steps], "sd": [0.03] * 7}
    >>> light = {"name": "light", "iteration": steps, "mean": [1 - 0.5 * 0.8**t for t in steps], "sd": [0.05] * 7}
    >>> plots.history({"label": "accuracy", "lines": [full, light]})
    :Overlay...
    """
    part = parts.part(source, "history", "a history of figures").part
    if not isinstance(part.get("lines"), list) or not part["lines"]:
        raise BnnvizError("A history needs lines, dicts with name, iteration, mean and sd.", "source")
    palette = style.palette_of(dark)
    x, y = (
        hv.Dimension(("iteration", part.get("along", "iteration"))),
        hv.Dimension((f"{part['label']} history", part["label"])),
    )
    drawn = []
    for place, line in enumerate(part["lines"]):
        colour, dash, marker = style.series(palette, place)
        at, mean = np.asarray(line["iteration"], dtype=float), np.asarray(line["mean"], dtype=float)
        sd = np.nan_to_num(np.asarray(line["sd"], dtype=float))
        drawn.append(style.band(hv.Area((at, mean - sd, mean + sd), x, [y, "high"]), palette, colour, _SHADE))
        drawn.append(style.line(hv.Curve((at, mean), x, y, label=line["name"]), palette, colour, 2.2, dash))
        drawn.append(style.marks(hv.Scatter((at, mean), x, y, label=line["name"]), palette, colour, marker, size=5))
    return style.finish(
        hv.Overlay(drawn), palette, size=style.WIDE, room=130, legend="right" if len(part["lines"]) > 1 else None
    )
