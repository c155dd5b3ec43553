"""Draw how effective sample size and R-hat change as draws come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz import diagnostics
from bnnviz.diagnostics.packages import array_stats
from bnnviz.errors import BnnvizError
from bnnviz.plots import sources, style
from bnnviz.plots.sources import SourceDraws

_LEAST = 8  # draws of each chain
GOOD = 1.01  # R-hat, of Vehtari et al. 2021


def mixing(
    source: Any,
    variables: str | Sequence[str] | None = None,
    *,
    points: int = 15,
    dark: bool = False,
) -> hv.Layout:
    """Draw the smallest effective sample size and the largest R-hat of some variables against the draws so far.

    The first grows in proportion to the draws where chains mix; the second falls towards 1, and the dashed line is at
    1.01 (Vehtari et al. 2021, https://doi.org/10.1214/20-BA1221).

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array, dict or list
        Of several each has a line.
    variables : str or sequence of str, optional
        Default: the first four.
    points : int, default 15
        Numbers of draws at which both are computed.
    dark : bool, default False

    Returns
    -------
    hv.Layout

    Raises
    ------
    BnnvizError
        If draws cannot be read from the source, they are fewer than eight of a chain, have weights or are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> plots.mixing(np.random.default_rng(0).normal(size=(4, 500, 1)), points=12)
    :Layout...
    """
    if points < 2:
        raise BnnvizError(f"points = {points} must be 2 at least.", "points")
    array_stats()
    found = sources.read(source)
    names = sources.shared(found, variables)
    palette = style.palette_of(dark)
    draw = hv.Dimension(("draws of each chain", "draws of each chain"))
    size, ratio = hv.Dimension(("ess", "smallest bulk ESS")), hv.Dimension(("rhat", "largest R-hat"))
    longest = max(draws.shape[1] for draws in found)
    good = style.level(GOOD, (0, longest), (draw, ratio), palette, colour=palette.magenta, width=1.4, dash=(6, 4))
    above, below = [], [good]
    for place, draws in enumerate(found):
        at, ess, rhat = curves(draws, names, points)
        colour, dash, _ = style.series(palette, place)
        for values, dimension, drawn in ((ess, size, above), (rhat, ratio, below)):
            curve = hv.Curve((at, values), draw, dimension, label=draws.name)
            drawn.append(style.line(curve, palette, colour, 2.2, dash))
    legend = "top_left" if len(found) > 1 else None
    figures = [style.finish(hv.Overlay(above), palette, legend=legend), style.finish(hv.Overlay(below), palette)]
    return style.layout(figures, across=2)


def curves(draws: SourceDraws, names: Sequence[str], points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return numbers of draws, and of so many the smallest bulk ESS and the largest R-hat of variables."""
    if draws.log_weights is not None:
        raise BnnvizError(f"The draws of {draws.name} have weights; draw their weight_ess instead.", "source")
    if draws.shape[1] < _LEAST:
        raise BnnvizError(f"{draws.name} has {draws.shape[1]} draws of each chain; give {_LEAST} at least.", "source")
    at = np.unique(np.linspace(max(_LEAST, draws.shape[1] / points), draws.shape[1], points).astype(int))
    values = [draws.finite(name) for name in names]
    ess = [np.nanmin([diagnostics.ess(each[:, :count]) for each in values]) for count in at]
    rhat = [np.nanmax([diagnostics.rhat(each[:, :count]) for each in values]) for count in at]
    return at, np.array(ess), np.array(rhat)
