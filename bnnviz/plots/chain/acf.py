"""Draw how long draws remember."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz import diagnostics
from bnnviz.diagnostics.packages import array_stats
from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, sources, style
from bnnviz.plots.sources import SourceDraws
from bnnviz.views.palette import Palette


def acf(
    source: Any,
    variables: str | Sequence[str] | None = None,
    *,
    lags: int = 100,
    dark: bool = False,
) -> hv.Overlay | hv.Layout:
    """Draw the autocorrelation of draws, which their effective sample size is about.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array, dict or list
        Or the part ``acf`` of a frame, with the autocorrelation of all chains. Of one source with several chains thin
        curves are each chain's own (ArviZ), and the strong one is that of all chains, each centred at the mean of all
        (`bnnviz.diagnostics.autocorrelation`): chains that sit apart keep it up. Of several sources that of all chains
        is drawn.
    variables : str or sequence of str, optional
        Default: the first four.
    lags : int, default 100
        At most.
    dark : bool, default False

    Returns
    -------
    hv.Overlay, or hv.Layout of several variables

    Raises
    ------
    BnnvizError
        If draws cannot be read from the source, they have weights or are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=(4, 500))
    >>> chains = np.array([[sum(0.8**k * row[t - k] for k in range(min(t, 30))) for t in range(500)] for row in noise])
    >>> plots.acf({"mu": chains}, lags=30)
    :Overlay...
    """
    if lags < 1:
        raise BnnvizError(f"lags = {lags} must be 1 at least.", "lags")
    if isinstance(source, Mapping) and {"lag", "acf", "label"} <= set(source):
        return _of_part(source, style.palette_of(dark))
    found = sources.read(source)
    names = sources.shared(found, variables)
    for draws in found:
        if draws.log_weights is not None:
            raise BnnvizError(
                f"The draws of {draws.name} have weights and no order; draw their weight_ess instead.", "source"
            )
    palette = style.palette_of(dark)
    return style.layout([_one(found, name, lags, palette) for name in names], across=2)


def _of_part(source: Mapping[str, Any], palette: Palette) -> hv.Overlay:
    """Draw the part of a frame: ``acf`` (lags,) at ``lag`` (lags,) of what ``label`` names."""
    part = parts.as_arrays({name: source[name] for name in ("lag", "acf", "label")})
    up = hv.Dimension((f"acf of {part['label']}", f"autocorrelation of {part['label']}"))
    lag = hv.Dimension(("lag", "lag (draws)"))
    curve = style.line(hv.Curve((part["lag"], part["acf"]), lag, up), palette, palette.ink, 2.6)
    level = style.level(0.0, (0, len(part["lag"]) - 1), (lag, up), palette)
    return style.finish(hv.Overlay([level, curve]), palette, ylim=(-0.3, 1.05))


def _one(found: Sequence[SourceDraws], name: str, lags: int, palette: Palette) -> hv.Overlay:
    lag, up = hv.Dimension(("lag", "lag (draws)")), hv.Dimension((f"acf of {name}", f"autocorrelation of {name}"))
    drawn = [style.level(0.0, (0, lags), (lag, up), palette)]
    for place, draws in enumerate(found):
        values = draws.finite(name)
        alone = len(found) == 1 and len(values) > 1
        if alone:
            for chain, own in enumerate(array_stats().autocorr(values, axis=1)):
                curve = hv.Curve(
                    (np.arange(len(own))[: lags + 1], own[: lags + 1]), lag, up, label=f"chain {chain + 1}"
                )
                drawn.append(style.line(curve, palette, style.series(palette, chain)[0], 1.1, alpha=0.75))
        together = diagnostics.autocorrelation(values, lags)
        curve = hv.Curve((np.arange(len(together)), together), lag, up, label="all chains" if alone else draws.name)
        colour, dash, _ = (palette.ink, (), "") if alone else style.series(palette, place)
        drawn.append(style.line(curve, palette, colour, 2.6, dash))
    named = len(drawn) > 2
    return style.finish(hv.Overlay(drawn), palette, legend="top_right" if named else None, ylim=(-0.3, 1.05))
