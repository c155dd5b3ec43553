"""Draw how effective sample size and R-hat change with the number of draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.diagnostics.packages import array_stats
from bnnviz.errors import BnnvizError
from bnnviz.figures import sources
from bnnviz.figures.marks import Axis, Drawing, Line, Mark, Rule, chain, dash_of, extent
from bnnviz.figures.sources import SourceDraws

if TYPE_CHECKING:
    import holoviews as hv

_LEAST = 8  # draws of each chain
GOOD = 1.01  # R-hat, of Vehtari et al. 2021


def mixing(
    source: Any, variables: str | Sequence[str] | None = None, *, points: int = 15, dark: bool = False
) -> hv.Layout:
    """Draw the smallest effective sample size and the largest R-hat of some variables against the draws so far.

    The first grows in proportion to the draws where chains mix; the second falls towards 1, and the dashed line is at
    1.01 (Vehtari et al. 2021, https://doi.org/10.1214/20-BA1221).

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array, dict or list
        Several sources have a line each.
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
        If draws cannot be read from the source, a chain has fewer than eight, they have weights or are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> plots.mixing(np.random.default_rng(0).normal(size=(4, 500, 1)), points=12)
    :Layout...
    """
    from bnnviz.figures.still.render import layout

    if points < 2:
        raise BnnvizError(f"points = {points} must be 2 at least.", "points")
    array_stats()
    found = sources.read(source)
    names = sources.shared(found, variables)
    ess: list[Mark] = []
    rhat: list[Mark] = [Rule([GOOD], width=1.4, dash=(6, 4), colour="magenta", label=f"{GOOD}")]
    for place, draws in enumerate(found):
        at, *both = curves(draws, names, points)
        for values, marks in zip(both, (ess, rhat), strict=True):
            marks.append(Line(at, values, 2.2, dash_of(place), colour=chain(place), label=draws.name))
    x = Axis("draws of each chain", (0.0, float(max(draws.shape[1] for draws in found))))
    heights = [
        extent(*(mark.y for mark in marks if isinstance(mark, Line)), least)
        for marks, least in ((ess, 0.0), (rhat, GOOD))
    ]
    labels = "smallest bulk ESS", "largest R-hat"
    drawings = [
        Drawing(marks, x=x, y=Axis(label, up)) for marks, label, up in zip((ess, rhat), labels, heights, strict=True)
    ]
    return layout(drawings, across=2, dark=dark)


def curves(draws: SourceDraws, names: Sequence[str], points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return numbers of draws, and for each the smallest bulk ESS and the largest R-hat of variables."""
    if draws.log_weights is not None:
        raise BnnvizError(f"The draws of {draws.name} have weights; draw their weight_ess instead.", "source")
    if draws.shape[1] < _LEAST:
        raise BnnvizError(f"{draws.name} has {draws.shape[1]} draws of each chain; give {_LEAST} at least.", "source")
    at = np.unique(np.linspace(max(_LEAST, draws.shape[1] / points), draws.shape[1], points).astype(int))
    values = [draws.finite(name) for name in names]
    ess = [np.nanmin([diagnostics.ess(each[:, :count]) for each in values]) for count in at]
    rhat = [np.nanmax([diagnostics.rhat(each[:, :count]) for each in values]) for count in at]
    return at, np.array(ess), np.array(rhat)
