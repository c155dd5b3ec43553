"""Draw the known density over that of draws, for a functional sampler and for points."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, style
from bnnviz.views.comparison.density_ratio import HIGHEST


def density_ratio(source: Any, *, dark: bool = False) -> hv.Overlay:
    """Draw the ratio of the known density to that of each sampler's draws (KLIEP), which is one where they agree.

    Parameters
    ----------
    source : Wells or dict
        What `bnnviz.wells` returned; or the part ``ratio`` of a frame, with its scene under ``scene``.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If the source has no ratio, or has not moved yet.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> plots.density_ratio(bnnviz.wells(moves=5))
    :Overlay...
    """
    _, part = parts.part(source, "ratio", "density ratio")
    if any(name not in part for name in ("x", "func", "point")):
        raise BnnvizError("There is no density ratio to draw; let the wells move first.", "source")
    palette = style.palette_of(dark)
    x, y = hv.Dimension(("t", "t")), hv.Dimension(("ratio", "truth / draws"))
    at = np.asarray(part["x"], dtype=float)
    drawn = [style.level(1.0, (float(at[0]), float(at[-1])), (x, y), palette)]
    for name, label, colour in (("func", "functionals", palette.green), ("point", "points", palette.purple)):
        values = np.asarray(part[name], dtype=float)
        curve = hv.Curve((at, np.where(values > HIGHEST, np.nan, values)), x, y, label=label)
        drawn.append(style.line(curve, palette, colour, 2.4))
    ends = {"xlim": (float(at[0]), float(at[-1])), "ylim": (0.0, HIGHEST)}
    return style.finish(hv.Overlay(drawn), palette, size=style.WIDE, room=130, legend="right", **ends)
