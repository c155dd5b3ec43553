"""Draw how draws are spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz import diagnostics
from bnnviz.diagnostics.packages import array_stats
from bnnviz.plots import parts, sources, style
from bnnviz.plots.sources import SourceDraws
from bnnviz.views.palette import Palette


def density(
    source: Any,
    variables: str | Sequence[str] | None = None,
    *,
    each_chain: bool = False,
    dark: bool = False,
) -> hv.Overlay | hv.Layout:
    """Draw ArviZ's kernel estimate of the density of draws.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array, dict or list
        Of several each has a colour. SourceDraws with weights are chosen evenly by them first.
    variables : str or sequence of str, optional
        Default: the first four.
    each_chain : bool, default False
        Draw each chain's density, too.
    dark : bool, default False

    Returns
    -------
    hv.Overlay, or hv.Layout of several variables

    Raises
    ------
    BnnvizError
        If draws cannot be read from the source or are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> plots.density({"NUTS": {"mu": rng.normal(size=(4, 500))}, "SGLD": {"mu": 1.4 * rng.normal(size=(4, 500))}})
    :Overlay...
    """
    palette = style.palette_of(dark)
    if isinstance(source, Mapping) and {"x", "y", "label"} <= set(source):
        return _of_part(source, palette)
    array_stats()  # without ArviZ there is no density, and that is said
    found = sources.read(source)
    names = sources.shared(found, variables)
    return style.layout([_one(found, name, each_chain, palette) for name in names], across=2)


def _one(found: Sequence[SourceDraws], name: str, each_chain: bool, palette: Palette) -> hv.Overlay:
    along, up = hv.Dimension((name, name)), hv.Dimension((f"density of {name}", "density"))
    drawn = []
    several = len(found) > 1
    for place, draws in enumerate(found):
        x, y = diagnostics.density(draws.representative(name))
        colour, dash, _ = style.series(palette, place)
        if not several:
            area = hv.Area((x, np.zeros(len(x)), y), along, [up, "top"])
            drawn.append(style.band(area, palette, colour))
        if each_chain and draws.log_weights is None and draws.shape[0] > 1:
            for chain, values in enumerate(draws.finite(name)):
                own = hv.Curve(diagnostics.density(values), along, up, label=f"{draws.name}, chain {chain + 1}")
                tone = colour if several else style.series(palette, chain)[0]
                drawn.append(style.line(own, palette, tone, 1.1, alpha=0.75))
        curve = hv.Curve((x, y), along, up, label=draws.name)
        drawn.append(style.line(curve, palette, colour, 2.4, dash if several else ()))
    return style.finish(hv.Overlay(drawn), palette, legend="top_right" if several else None)


def _of_part(source: Mapping[str, Any], palette: Palette) -> hv.Overlay:
    """Draw the part of a frame: the density ``y`` at ``x`` of what ``label`` says."""
    part = parts.as_arrays(dict(source))
    along, up = hv.Dimension((part["label"], part["label"])), hv.Dimension((f"density of {part['label']}", "density"))
    area = hv.Area((part["x"], np.zeros(len(part["x"])), part["y"]), along, [up, "top"])
    curve = hv.Curve((part["x"], part["y"]), along, up)
    drawn = [style.band(area, palette, palette.blue), style.line(curve, palette, palette.blue, 2.4)]
    return style.finish(hv.Overlay(drawn), palette)
