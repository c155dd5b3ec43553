"""Draw how the ranks of each chain's draws are spread among those of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np
import scipy

from bnnviz.diagnostics.packages import array_stats
from bnnviz.errors import BnnvizError
from bnnviz.plots import sources, style
from bnnviz.plots.sources import SourceDraws
from bnnviz.views.palette import Palette

_LEVEL = 0.95


def rank(
    source: Any,
    variables: str | Sequence[str] | None = None,
    *,
    bins: int = 20,
    dark: bool = False,
) -> hv.Overlay | hv.Layout:
    r"""Draw how many draws of each chain have a rank in each bin; chains that mix have about as many everywhere.

    The band holds 95 % of the counts of independent draws, which are binomial :math:`B(n, 1 / \mathrm{bins})`
    (Vehtari et al. 2021, https://doi.org/10.1214/20-BA1221). SourceDraws that depend on each other leave it more often.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array, dict or list
        Of several each has a figure of its own.
    variables : str or sequence of str, optional
        Default: the first four.
    bins : int, default 20
    dark : bool, default False

    Returns
    -------
    hv.Overlay, or hv.Layout of several variables or sources

    Raises
    ------
    BnnvizError
        If draws cannot be read from the source, they have weights or are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> apart = rng.normal(size=(4, 500)) + [[0.0], [0.0], [0.0], [0.5]]  # the last chain has a level of its own
    >>> plots.rank({"mu": apart})
    :Overlay...
    """
    if bins < 2:
        raise BnnvizError(f"bins = {bins} must be 2 at least.", "bins")
    found = sources.read(source)
    names = sources.shared(found, variables)
    palette = style.palette_of(dark)
    figures = [_one(draws, name, bins, palette, titled=len(found) > 1) for name in names for draws in found]
    return style.layout(figures, across=len(found))


def counts(draws: SourceDraws, name: str, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges (bins + 1,) of bins of ranks, and how many draws of each chain lie in them (chains, bins)."""
    if draws.log_weights is not None:
        raise BnnvizError(f"The draws of {draws.name} have weights, and their ranks mean nothing.", "source")
    values = draws.finite(name)
    ranks = array_stats().compute_ranks(values, axis=(0, 1))
    edges = np.linspace(0.5, values.size + 0.5, bins + 1)
    return edges, np.array([np.histogram(each, edges)[0] for each in ranks])


def _one(draws: SourceDraws, name: str, bins: int, palette: Palette, titled: bool) -> hv.Overlay:
    edges, found = counts(draws, name, bins)
    middle = (edges[1:] + edges[:-1]) / 2
    along, up = (
        hv.Dimension((f"rank of {name}", f"rank of {name}")),
        hv.Dimension((f"{name} ranks", "draws in the bin")),
    )
    each = draws.shape[1]
    low, high = scipy.stats.binom.ppf([(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], each, 1 / bins)
    ends = edges[[0, -1]]
    band = hv.Area((ends, [low] * 2, [high] * 2), along, [up, "high"], label="95 % of independent draws")
    drawn = [style.band(band, palette, palette.muted, 0.2)]
    drawn.append(style.line(hv.Curve((ends, [each / bins] * 2), along, up), palette, palette.muted, 1.2, (4, 4)))
    for chain, heights in enumerate(found):
        colour, dash, _ = style.series(palette, chain)
        curve = hv.Curve((middle, heights), along, up, label=f"chain {chain + 1}")
        stepped = style.apply(style.line(curve, palette, colour, 1.8, dash), interpolation="steps-mid")
        drawn.append(stepped)
    title = draws.name if titled else ""
    few = len(found) <= len(palette.chains)
    legend = "right" if few else None
    return style.finish(hv.Overlay(drawn), palette, title=title, room=190, legend=legend, padding=(0, 0.1))
