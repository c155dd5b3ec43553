"""Draw how much each input of a network matters."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.figures import parts
from bnnviz.figures.marks import Axis, Drawing, Points, Segments
from bnnviz.figures.palette import Kind
from bnnviz.figures.ranges import extent, padded

MOST = 25
EFFECT = Kind("effect", "circle", "blue", True)
_LINE, _EDGES = 24, 90  # pixels of height: of an input, and around all


def relevance(source: Any) -> Drawing:
    """Plot the relevance of the columns of a table with 95% intervals, the largest 25 first.

    The relevance of a column is its total effect: the standard deviation of the outputs when its values are exchanged
    between rows. The levels of a category are one column. The output rises or falls with a column, or its effect is
    mixed.

    Parameters
    ----------
    source : Run, Recording, path or Relevance
        A network on a table, or the result of ``run.relevance()``.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> network = {"data": "concrete", "hidden": "10", "prior": "learned"}
    >>> run = bnnviz.sample("network", "hmc", target_settings=network, draws=5, warmup=5, chains=1)
    >>> plots.relevance(run)
    :Overlay...
    """
    from bnnviz.engine.evaluation import relevance as measured

    found = source if isinstance(source, measured.Relevance) else measured.relevance(parts.network_draws(source))
    order = np.argsort(-found.effect)[:MOST]
    effect, low, high = (values[order] for values in (found.effect, found.low, found.high))
    place = np.arange(len(order))
    marks = [
        Segments(low, place, high - low, np.zeros(len(order)), 1.8, colour="blue", label="95% interval"),
        Points(effect, place, EFFECT, 8, label="mean"),
    ]
    x = Axis("total effect on the output", padded(extent([0.0], high), 0.04), "exact")
    ways = [f" ({way})" if way else "" for way in found.direction]
    names = {k: f"{found.names[i]}{ways[i]}" for k, i in enumerate(order)}
    y = Axis(" ", (len(order) - 0.5, -0.5), "exact", ticks=names)
    left_out = len(found.effect) - len(order)
    note = f"{left_out} columns of less relevance are left out" if left_out else ""
    return Drawing(
        marks, x=x, y=y, title="Relevance of the columns", note=note, size=(600, _EDGES + _LINE * len(order))
    )
