"""Draw what single draws of a network predict, each by its chain and number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz.engine.recording.drawn_functions import drawn_functions
from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, style
from bnnviz.plots.sources import ID, draw_id
from bnnviz.views.predictive.prediction import DATA

_NAMES = ("kind", "chain", "draw", "x", "values", "labels")


def functions(source: Any, *, dark: bool = False) -> hv.Overlay:
    """Draw what single draws predict; each point or piece of a line knows the chain and the number of its draw.

    With `linked`, draws that are brushed in `pair` or `trace` stand out here, and the other way round.

    Parameters
    ----------
    source : Run, Recording, path or dict
        A network on data; or what `bnnviz.engine.recording.drawn_functions.drawn_functions` returned.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If it is no network on data, or there are no draws.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> network = {"data": "toy_c", "hidden": "5", "prior_sd": 2.0}
    >>> run = bnnviz.sample("network", "hmc", target_settings=network, draws=40, warmup=20, chains=2)
    >>> plots.functions(run)
    :Overlay...
    """
    given = source if isinstance(source, Mapping) else drawn_functions(parts.network_draws(source))
    missing = [name for name in _NAMES if name not in given]
    if missing:
        raise BnnvizError(f"Functions of draws have no {missing[0]!r}; give a run or a recording.", "source")
    palette = style.palette_of(dark)
    labels = [str(label) for label in given["labels"]]
    x, y = hv.Dimension((labels[0], labels[0])), hv.Dimension((labels[1], labels[1]))
    at, values = np.asarray(given["x"], dtype=float), np.asarray(given["values"], dtype=float)
    if str(given["kind"]) == "band":
        drawn = [style.line(_pieces(given, at, values, x, y), palette, palette.blue, 1.2, alpha=0.35)]
        points = hv.Points((given["data_x"], given["data_y"]), [x, y], label="data")
        drawn.append(style.kind(points, palette, DATA, 5))
    else:
        drawn = [style.marks(_points(given, at, values, x, y), palette, palette.blue, size=4, alpha=0.3, width=0.3)]
    return style.finish(hv.Overlay(drawn), palette)


def _numbers(given: Mapping[str, Any], count: int) -> tuple[np.ndarray, ...]:
    """Return chain, draw and their one number of each of so many places of each draw."""
    chain, draw = (np.repeat(np.asarray(given[name]), count) for name in ("chain", "draw"))
    return chain, draw, draw_id(chain, draw)


def _pieces(given: Mapping[str, Any], at: np.ndarray, values: np.ndarray, x: Any, y: Any) -> hv.Segments:
    """Return the straight pieces of each draw's function."""
    begin, end = (np.tile(part, len(values)) for part in (at[:-1], at[1:]))
    columns = (begin, values[:, :-1].ravel(), end, values[:, 1:].ravel(), *_numbers(given, len(at) - 1))
    return hv.Segments(columns, [x, y, "x1", "y1"], ["chain", "draw", ID])


def _points(given: Mapping[str, Any], at: np.ndarray, values: np.ndarray, x: Any, y: Any) -> hv.Points:
    columns = (np.tile(at, len(values)), values.ravel(), *_numbers(given, len(at)))
    return hv.Points(columns, [x, y], ["chain", "draw", ID])
