"""Draw how the ranks of each chain's draws are spread among those of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz.diagnostics.packages import array_stats
from bnnviz.errors import BnnvizError
from bnnviz.figures import sources
from bnnviz.figures.marks import Axis, Band, Drawing, Line, Mark, Rule, chain, dash_of, extent
from bnnviz.figures.sources import SourceDraws

if TYPE_CHECKING:
    import holoviews as hv

_LEVEL = 0.95


def rank(
    source: Any, variables: str | Sequence[str] | None = None, *, bins: int = 20, dark: bool = False
) -> hv.Overlay | hv.Layout:
    r"""Draw how many draws of each chain have a rank in each bin; chains that mix have about as many everywhere.

    The band holds 95 % of the counts of independent draws, which are binomial :math:`B(n, 1 / \mathrm{bins})`
    (Vehtari et al. 2021, https://doi.org/10.1214/20-BA1221). Correlated draws leave it more often.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array, dict or list
        Several sources have a figure each.
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
    >>> apart = rng.normal(size=(4, 500)) + [[0.0], [0.0], [0.0], [0.5]]  # the last chain has another mean
    >>> plots.rank({"mu": apart})
    :Overlay...
    """
    from bnnviz.figures.still.render import layout

    if bins < 2:
        raise BnnvizError(f"bins = {bins} must be 2 at least.", "bins")
    found = sources.read(source)
    names = sources.shared(found, variables)
    drawings = [_drawing(draws, name, bins, titled=len(found) > 1) for name in names for draws in found]
    return layout(drawings, across=len(found), dark=dark)


def counts(draws: SourceDraws, name: str, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges (bins + 1,) of bins of ranks, and the counts of each chain (chains, bins)."""
    if draws.log_weights is not None:
        raise BnnvizError(f"The draws of {draws.name} have weights, and their ranks mean nothing.", "source")
    values = draws.finite(name)
    ranks = array_stats().compute_ranks(values, axis=(0, 1))
    edges = np.linspace(0.5, values.size + 0.5, bins + 1)
    return edges, np.array([np.histogram(each, edges)[0] for each in ranks])


def _drawing(draws: SourceDraws, name: str, bins: int, titled: bool) -> Drawing:
    import scipy.stats

    edges, found = counts(draws, name, bins)
    each = draws.shape[1]
    low, high = scipy.stats.binom.ppf([(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], each, 1 / bins)
    marks: list[Mark] = [
        Band(edges[[0, -1]], [low] * 2, [high] * 2, colour="muted", opacity=0.2, label="95 % of independent draws"),
        Rule([each / bins], width=1.2, dash=(4, 4), colour="muted", label="expected"),
    ]
    for number, heights in enumerate(found):
        steps = np.repeat(edges, 2)[1:-1], np.repeat(heights, 2)
        marks.append(Line(*steps, 1.8, dash_of(number), colour=chain(number), label=f"chain {number + 1}"))
    x = Axis(f"rank of {name}", (float(edges[0]), float(edges[-1])), follow="exact")
    return Drawing(
        marks, x=x, y=Axis("draws in the bin", extent(found, [low, high])), title=draws.name if titled else ""
    )
