"""Draw the error of each sampler of a race against the gradients it has spent."""

from __future__ import annotations

import math
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, style
from bnnviz.views.comparison.curves import BAND, DIVERGED
from bnnviz.views.palette import Palette

_HIGHEST = 100.0  # sd: what is further from the truth runs out of the picture


def race(source: Any, *, dark: bool = False) -> hv.Overlay:
    """Draw errors of mean and sd against the truth, the lower the better, both axes logarithmic.

    Parameters
    ----------
    source : Race or dict
        What `bnnviz.race` returned; or the part ``curves`` of a frame: ``lanes``, dicts with ``name``, ``gradients``,
        ``error`` and ``diverged``, the gradients at which a lane was lost, nan of the others; ``error_low`` and
        ``error_high``, where they are known, are the edges of a band: two standard errors by the jackknife over chains.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If the source is no race, or has not begun.

    Examples
    --------
    >>> from bnnviz import plots
    >>> spent = [1e3, 1e4, 1e5, 1e6]
    >>> never = float("nan")
    >>> hmc = {"name": "HMC", "gradients": spent, "error": [0.5, 0.2, 0.06, 0.02], "diverged": never}
    >>> sgld = {"name": "SGLD", "gradients": spent, "error": [0.4, 0.2, 0.15, 0.14], "diverged": never}
    >>> plots.race({"lanes": [hmc, sgld]})
    :Overlay...
    """
    lanes = parts.lanes(source)
    if lanes is None:
        lanes = parts.lanes(parts.part(source, "curves", "curves of a race").part)
    if not lanes:
        raise BnnvizError("A race needs lanes with curves; let it begin first.", "source")
    palette = style.palette_of(dark)
    x, y = hv.Dimension(("gradients", "gradients of each sampler")), hv.Dimension(("error", "error (sd)"))
    bands: list[hv.Area] = []
    drawn, seen = [], []
    for place, lane in enumerate(lanes):
        at, error = np.asarray(lane["gradients"], dtype=float), np.asarray(lane["error"], dtype=float)
        known = np.isfinite(error) & (error > 0) & (at > 0)
        at, error = at[known], error[known]
        seen.append(error)
        colour, dash, marker = style.series(palette, place)
        name = str(lane["name"])
        bands += _band(lane, known, at, palette, colour)
        drawn.append(style.line(hv.Curve((at, error), x, y, label=name), palette, colour, 2.4, dash))
        lost = float(lane.get("diverged", math.nan))
        if math.isfinite(lost):
            where = (max(lost, 1.0), min(float(error[-1]), _HIGHEST) if len(error) else _HIGHEST)
            cross = hv.Scatter([where], x, y, label=f"{name} diverged")
            drawn.append(style.marks(cross, palette, colour, DIVERGED.marker, size=12, width=3))
        elif len(at):
            drawn.append(
                style.marks(hv.Scatter([(at[-1], error[-1])], x, y, label=name), palette, colour, marker, size=9)
            )
    values = np.concatenate(seen)
    values = values[values <= _HIGHEST]
    ends = {"ylim": (0.75 * float(values.min()), 1.35 * float(values.max()))} if len(values) else {}
    size = (style.WIDE[0] + 140, style.WIDE[1] + 80)
    return style.finish(
        hv.Overlay([*bands, *drawn]), palette, size=size, room=160, legend="right", logx=True, logy=True, **ends
    )


def _band(lane: dict[str, Any], known: np.ndarray, at: np.ndarray, palette: Palette, colour: str) -> list[hv.Area]:
    """Return the band of a lane's errors (points,) where these are known; none where its edges are not."""
    if "error_low" not in lane:
        return []
    low, high = (np.asarray(lane[f"error_{end}"], dtype=float)[known] for end in ("low", "high"))
    fit = np.isfinite(low) & np.isfinite(high) & (low > 0)
    if not fit.any():
        return []
    area = hv.Area((at[fit], low[fit], high[fit]), "gradients", ["error", "error_high"])
    return [style.band(area, palette, colour, BAND)]
