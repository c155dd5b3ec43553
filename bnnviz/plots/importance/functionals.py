"""Draw the distributions that a functional sampler has been, beside the points of another sampler."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, style
from bnnviz.views.comparison.functionals import POINT

_MOST = 60  # curves
_BELOW = 0.06  # of the height, where points lie under the axis


def functionals(source: Any, *, dark: bool = False) -> hv.Overlay:
    """Draw each accepted functional as a density over the known one, the newest strong, and the points of HMC.

    Parameters
    ----------
    source : Wells or dict
        What `bnnviz.wells` returned; or the part ``wells`` of a frame, with its scene under ``scene``.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If the source has no functionals, or has not moved yet.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> plots.functionals(bnnviz.wells(moves=5))
    :Overlay...
    """
    scene, part = parts.part(source, "wells", "functionals")
    if any(name not in scene for name in ("x", "truth", "first")) or not len(part.get("y", ())):
        raise BnnvizError("There are no functionals to draw; let the wells move first.", "source")
    palette = style.palette_of(dark)
    x, y = hv.Dimension(("t", "t")), hv.Dimension(("density of t", "density"))
    at, curves = np.asarray(scene["x"]), np.asarray(part["y"])
    accepted = curves[np.asarray(part["accepted"], dtype=bool)][-_MOST:]
    top = 1.15 * max(float(np.max(scene["truth"])), float(np.max(scene["first"])), float(curves.max()))
    lines = hv.Path([np.column_stack([at, curve]) for curve in accepted], [x, y], label="functionals")
    drawn = [style.level(0.0, (float(at[0]), float(at[-1])), (x, y), palette)]
    drawn += [style.line(lines, palette, palette.green, 1.2, alpha=0.45)] if len(accepted) else []
    for values, label, colour, width, dash in (
        (scene["truth"], "the target", palette.ink, 2.8, ()),
        (scene["first"], "first functional", palette.green, 2.0, (7, 5)),
        (curves[-1], "the newest", palette.orange, 2.8, ()),
    ):
        drawn.append(style.line(hv.Curve((at, np.asarray(values)), x, y, label=label), palette, colour, width, dash))
    points = np.asarray(part["points"], dtype=float)
    if len(points):
        marks = hv.Points((points, np.full(len(points), -0.5 * _BELOW * top)), [x, y], label=POINT.label)
        drawn.append(style.kind(marks, palette, POINT, 6, alpha=0.6))
    ends = {"xlim": (float(at[0]), float(at[-1])), "ylim": (-_BELOW * top, top)}
    return style.finish(hv.Overlay(drawn), palette, size=style.WIDE, room=130, legend="right", **ends)
