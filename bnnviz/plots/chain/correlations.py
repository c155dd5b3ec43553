"""Draw how the coordinates of draws are correlated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, sources, style
from bnnviz.views.palette import Palette

MOST = 60  # coordinates
_FEW = 12  # coordinates that each have a tick


def weights(
    source: Any,
    variables: str | Sequence[str] | None = None,
    *,
    most: int = MOST,
    dark: bool = False,
) -> hv.Image:
    """Draw the correlations of the weights of a network, or of the variables of any draws, as a map.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array or dict
        Draws; or the part ``weights`` of a frame.
    variables : str or sequence of str, optional
        Default: the first ones.
    most : int, default 60
        Coordinates that are shown where none are asked for.
    dark : bool, default False

    Returns
    -------
    hv.Image
        Coordinates are numbered in the order of their variables.

    Raises
    ------
    BnnvizError
        If draws cannot be read from the source, or there are fewer than two variables.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> mixed = np.eye(8) + 0.5 * rng.normal(size=(8, 8))
    >>> plots.weights(rng.normal(size=(4, 100, 8)) @ mixed)
    :Image...
    """
    palette = style.palette_of(dark)
    if isinstance(source, Mapping) and "correlation" in source:
        part = parts.as_arrays(dict(source))
        return _map(np.atleast_2d(part["correlation"]), int(part["first"]), f"coordinate ({part['block']})", palette)
    draws = sources.one(source)
    names = draws.chosen(variables, most)
    if len(names) < 2:
        raise BnnvizError("Correlations need two variables at least.", "variables")
    return _map(correlations(draws, names), 0, "coordinate", palette)


def correlations(draws: sources.SourceDraws, names: Sequence[str]) -> np.ndarray:
    """Return the correlations (variables, variables) of draws, by their weights where they have such."""
    columns = np.column_stack([draws.finite(name).ravel() for name in names])
    if draws.log_weights is None:
        return diagnostics.correlation(columns)
    cov = diagnostics.weighted_moments(columns, draws.log_weights.ravel()).cov
    sd = np.sqrt(np.diag(cov))
    with np.errstate(invalid="ignore", divide="ignore"):
        return cov / np.outer(sd, sd)


def _map(found: np.ndarray, first: int, label: str, palette: Palette) -> hv.Image:
    size = len(found)
    bounds = (first - 0.5, first - 0.5, first + size - 0.5, first + size - 0.5)
    dims = [hv.Dimension(("across", label)), hv.Dimension(("up", label))]
    element = hv.Image(found[::-1], dims, hv.Dimension(("correlation", "correlation")), bounds=bounds)
    ramp = [palette.blue, palette.surface, palette.orange]
    element = style.image(element, palette, ramp, (-1.0, 1.0), "r")
    numbers = list(range(first, first + size))
    ticks = {"xticks": numbers, "yticks": numbers} if size <= _FEW else {}
    return style.finish(element, palette, size=(style.SQUARE[0] + 60, style.SQUARE[1]), **ticks)
