"""Draw the predictions of single draws of a network, each with its chain and number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.marks import Axis, Drawing, Mark, Points, Segments
from bnnviz.figures.predictive.prediction import BAND, DATA
from bnnviz.figures.ranges import extent
from bnnviz.figures.sources import draw_id

_NAMES = ("kind", "chain", "draw", "x", "values", "labels")


def functions(source: Any) -> Drawing:
    """Plot the predictions of individual draws.

    With `linked`, draws that are selected in `pair` or `trace` are highlighted in this figure, and vice versa.

    Parameters
    ----------
    source : Run, Recording, path or dict
        A network on data, or the result of `bnnviz.engine.recording.drawn_functions.drawn_functions`.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> network = {"data": "toy_c", "hidden": "5", "prior_sd": 2.0}
    >>> run = bnnviz.sample("network", "hmc", target_settings=network, draws=40, warmup=20, chains=2)
    >>> plots.functions(run)
    :Overlay...
    """
    from bnnviz.engine.recording.drawn_functions import drawn_functions

    given = source if isinstance(source, Mapping) else drawn_functions(parts.network_draws(source))
    missing = [name for name in _NAMES if name not in given]
    if missing:
        raise BnnvizError(f"Functions of draws have no {missing[0]!r}; give a run or a recording.", "source")
    at, values = np.asarray(given["x"], dtype=float), np.asarray(given["values"], dtype=float)
    numbers = draw_id(np.asarray(given["chain"]), np.asarray(given["draw"]))
    marks: list[Mark]
    if str(given["kind"]) == BAND:
        x, dx = (np.tile(part, len(values)) for part in (at[:-1], np.diff(at)))
        pieces = x, values[:, :-1].ravel(), dx, np.diff(values, axis=1).ravel()
        ids = np.repeat(numbers, len(at) - 1)
        marks = [
            Segments(*pieces, ids=ids, colour="blue", opacity=0.35, label="draws"),
            Points(given["data_x"], given["data_y"], DATA, 5, label="data"),
        ]
        seen = extent(at), extent(values, given["data_y"])
    else:
        ids = np.repeat(numbers, len(at))
        look = {"ids": ids, "opacity": 0.3, "label": "draws"}
        marks = [Points(np.tile(at, len(values)), values.ravel(), size=4, width=0.3, **look)]
        seen = extent(at), extent(values)
    labels = [str(label) for label in given["labels"]]
    return Drawing(marks, x=Axis(labels[0], seen[0]), y=Axis(labels[1], seen[1]))
