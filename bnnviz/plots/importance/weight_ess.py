"""Draw the effective sample size of weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, sources, style
from bnnviz.views.importance.weight_ess import ALARM, FINE, LEAST, LOW


def weight_ess(source: Any, *, dark: bool = False) -> hv.Overlay:
    r"""Draw the effective sample size of weights, :math:`1 / \sum_i \bar w_i^2`, as a share of the draws.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array or dict
        A run of a sampler with a population, by its iterations; other draws with weights, by the draws so far; or
        logarithms of weights as an array (iterations, draws).
    dark : bool, default False

    Returns
    -------
    hv.Overlay
        Under the dashed line, at 5 %, estimates rest on few draws.

    Raises
    ------
    BnnvizError
        If the draws have no weights.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> spread = np.linspace(4, 0.5, 20)[:, None]  # of the logarithms, by iteration
    >>> plots.weight_ess(spread * rng.normal(size=(20, 100)))
    :Overlay...
    """
    label, at, share = _shares(source)
    palette = style.palette_of(dark)
    percent = np.maximum(100 * share, LEAST)
    x, y = hv.Dimension((label, label)), hv.Dimension(("weight ess", "weight ESS (% of draws)"))
    drawn = [
        style.level(ALARM, (at[0], at[-1]), (x, y), palette, colour=palette.magenta, width=1.8, dash=(7, 5)),
        style.line(hv.Curve((at, percent), x, y), palette, palette.muted, 1.6),
    ]
    low = percent < ALARM
    for of, own, name in ((FINE, ~low, f"{ALARM:g} % or more"), (LOW, low, f"under {ALARM:g} %")):
        if own.any():
            drawn.append(style.kind(hv.Scatter((at[own], percent[own]), x, y, label=name), palette, of, 7))
    ends = {"logy": True, "ylim": (min(0.5, 0.7 * float(percent.min())), 140.0)}
    return style.finish(hv.Overlay(drawn), palette, size=style.WIDE, room=110, legend="right", **ends)


def _shares(source: Any) -> tuple[str, np.ndarray, np.ndarray]:
    """Return what counts up, its numbers, and the share of the draws that is effective at each."""
    if isinstance(source, Mapping) and "share" in source:
        return "iteration", np.asarray(source["iteration"]), np.asarray(source["share"], dtype=float)
    if hasattr(source, "frame"):
        part = parts.part(source, "gauge", "weights of draws").part
        return "iteration", np.asarray(part["iteration"]), np.asarray(part["share"], dtype=float)
    if sources.is_array(source):
        logs = np.asarray(source, dtype=float)
        if logs.ndim != 2 or not logs.size:
            raise BnnvizError(f"Give log weights as (iterations, draws), not of the shape {logs.shape}.", "source")
        shares = [diagnostics.weight_ess(row) / logs.shape[1] for row in logs]
        return "iteration", np.arange(1, len(logs) + 1), np.array(shares)
    draws = sources.one(source)
    if draws.log_weights is None:
        raise BnnvizError(f"The draws of {draws.name} have no weights; draw their mixing instead.", "source")
    counts = np.unique(np.linspace(1, draws.shape[1], min(50, draws.shape[1])).astype(int))
    logs = draws.log_weights
    return (
        "draws of each chain",
        counts,
        np.array([diagnostics.weight_ess(logs[:, :n]) / logs[:, :n].size for n in counts]),
    )
