"""Draw draws in the order in which they were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, sources, style
from bnnviz.plots.points import cloud
from bnnviz.plots.sources import ID, SourceDraws
from bnnviz.views.palette import KINDS, VIOLATION, Palette

_DIVERGENT = KINDS[VIOLATION]


def trace(
    source: Any,
    variables: str | Sequence[str] | None = None,
    *,
    chains: int = 8,
    points: bool = False,
    dark: bool = False,
) -> hv.Overlay | hv.Layout:
    """Draw the draws of each chain in their order.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array, dict or list
        Of one source each chain has a colour; of several each source has one, and its first chain is drawn.
    variables : str or sequence of str, optional
        Default: the first four. ``PC 1`` is the first principal component of all variables.
    chains : int, default 8
        Drawn at most.
    points : bool, default False
        Draw each draw as a point instead of lines: what is brushed in another figure stands out by itself.
    dark : bool, default False

    Returns
    -------
    hv.Overlay, or hv.Layout of several variables

    Raises
    ------
    BnnvizError
        If draws cannot be read from the source, or it has no such variable.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> plots.trace({"mu": np.cumsum(rng.normal(size=(4, 200)), 1) / 5})
    :Overlay...
    """
    palette = style.palette_of(dark)
    if isinstance(source, Mapping) and "values" in source and "index" in source:
        return _of_part(source, palette)
    if chains < 1:
        raise BnnvizError(f"chains = {chains} must be 1 at least.", "chains")
    found = sources.read(source)
    names = sources.shared(found, variables)
    figures = [_one(found, name, names, chains, points, palette) for name in names]
    return style.layout(figures, across=1)


def _one(
    found: Sequence[SourceDraws], name: str, names: Sequence[str], chains: int, points: bool, palette: Palette
) -> hv.Overlay:
    draw, across = hv.Dimension("draw"), (hv.Dimension((name, name)))
    several = len(found) > 1
    lines = []
    for place, draws in enumerate(found):
        columns = draws.table(names)
        for chain in range(1 if several else min(chains, draws.shape[0])):
            own = columns["chain"] == chain
            rows = hv.Dataset({key: values[own] for key, values in columns.items()}, ["chain", "draw", ID], list(names))
            colour = style.series(palette, place if several else chain)[0]
            label = draws.name if several else f"chain {chain + 1}"
            kind = hv.Scatter if points else hv.Curve
            element = kind(rows, draw, [across, "chain", ID], label=label)
            how = {"size": 4.0, "alpha": 0.7, "width": 0.5} if points else {"width": 1.3, "alpha": 0.85}
            lines.append(cloud(element, palette, colour, **how))
    if not several and found[0].diverging is not None and found[0].diverging[:chains].any():
        lines.append(_divergent(found[0], name, chains, palette))
    shown = several or len(lines) > 1
    return style.finish(hv.Overlay(lines), palette, legend="right" if shown else None, bokeh={"active_tools": []})


def _divergent(draws: SourceDraws, name: str, chains: int, palette: Palette) -> hv.Scatter:
    """Mark the draws that a divergent move led to."""
    chain, draw = np.nonzero(draws.diverging[:chains])
    values = draws.of(name)[chain, draw]
    element = hv.Scatter((draws.every * draw, values), "draw", hv.Dimension((name, name)), label="divergent")
    return style.kind(element, palette, _DIVERGENT, 8)


def _of_part(source: Mapping[str, Any], palette: Palette) -> hv.Overlay:
    """Draw the part of a frame: ``index`` (draws,), ``values`` (chains, draws) and the ``label`` of what they are."""
    part = parts.as_arrays(dict(source))
    label = hv.Dimension((part["label"], part["label"]))
    lines = [
        style.line(
            hv.Curve((part["index"], values), "draw", label, label=f"chain {chain + 1}"),
            palette,
            style.series(palette, chain)[0],
            1.3,
            alpha=0.85,
        )
        for chain, values in enumerate(np.atleast_2d(part["values"]))
    ]
    return style.finish(hv.Overlay(lines), palette)
