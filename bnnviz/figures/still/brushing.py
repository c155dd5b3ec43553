"""Link figures whose points know the chain and the number of their draw."""

from __future__ import annotations

from typing import Any

import holoviews as hv
from holoviews.selection import link_selections

from bnnviz.errors import BnnvizError
from bnnviz.figures.still import style
from bnnviz.figures.still.render import ID

_TOOLS = {"tools": ["lasso_select"], "active_tools": ["box_select"]}


def linked(*figures: hv.Overlay | hv.Layout, dark: bool = False) -> list[hv.DynamicMap]:
    """Link figures so that draws selected in one figure are highlighted in all.

    Parameters
    ----------
    *figures : hv.Overlay
        Figures of `pair`, `trace` (with ``points=True``) or `functions` of the same draws.
    dark : bool, default False

    Returns
    -------
    list of hv.DynamicMap
        Linked figures in the same order. Selection requires a server or a notebook. Saved pages show all draws.

    Raises
    ------
    BnnvizError
        If a figure does not contain the indices of its draws.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> draws = np.random.default_rng(0).normal(size=(2, 50, 2))
    >>> both = plots.linked(plots.pair(draws), plots.trace(draws, "x[0]", points=True))
    >>> len(both)
    2
    """
    style.loaded()
    palette = style.PAINTS[dark].palette
    chosen = link_selections.instance(
        index_cols=[ID], selected_color=palette.orange, unselected_color=palette.pale, unselected_alpha=0.3
    )
    linked = []
    for figure in figures:
        ours: list[Any] = []
        others: list[Any] = []
        for each in list(figure) if isinstance(figure, hv.Overlay) else [figure]:
            (ours if ID in {dimension.name for dimension in each.dimensions()} else others).append(each)
        if not ours:
            raise BnnvizError(
                "Only figures with indices of draws can be linked: pair, functions, or trace with points=True.",
                "figures",
            )
        made = chosen(hv.Overlay(ours))
        made = made * hv.Overlay(others) if others else made
        own = figure.opts.get("plot", backend="bokeh", defaults=False).kwargs
        linked.append(made.opts(hv.Options("Overlay", **{**own, **_TOOLS}, backend="bokeh")))
    return linked
