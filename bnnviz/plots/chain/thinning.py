"""Draw one segment of a path: the rate of events, its envelope, and what was proposed under it."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np

from bnnviz.plots import parts, style
from bnnviz.views.chain.thinning import MARKS, least_height
from bnnviz.views.palette import UNIFORM, Palette

_BELOW = 0.3  # of the height is shown under zero, where the signed rate may go far


def thinning(source: Any, *, dark: bool = False) -> hv.Overlay:
    """Draw a segment of a path by its time: the rate, the envelope over it, and each proposal with its uniform draw.

    A proposal at a point of the envelope is accepted where u times the envelope lies under the rate; where the rate
    lies over the envelope, that is no bound.

    Parameters
    ----------
    source : Run, Recording, path or dict
        A run of a sampler of events, a recording of one that has kept frames, or the part ``envelope`` of a frame.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If the sampler proposes no events, or has not moved yet.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> paper = {"bound": "interpolated", "alpha": 2.0, "refresh_rate": 0.1, "metric": "unit"}
    >>> run = bnnviz.sample("gaussian", "bps", draws=10, warmup=0, chains=1, seed=10, settings=paper)
    >>> plots.thinning(run)
    :Overlay...
    """
    part = parts.part(source, "envelope", "proposals under an envelope").part
    palette = style.palette_of(dark)
    t = hv.Dimension(("segment time", "time since the last event (path time)"))
    up = hv.Dimension(("rate", f"rate ({part['unit']})"))
    rate_t, rate = np.asarray(part["rate_t"]), np.asarray(part["rate"])
    drawn = [style.level(0.0, (0.0, float(part["t_max"])), (t, up), palette), *_stems(part, t, up, palette)]
    negative = hv.Curve((rate_t, np.where(rate < 0, rate, np.nan)), t, up)
    drawn.append(style.line(negative, palette, palette.pale, 1.6, (6, 4)))
    drawn.append(style.line(hv.Curve((rate_t, np.maximum(rate, 0)), t, up, label="rate"), palette, palette.blue, 2.4))
    for name, label, colour, width in (("past", "used", palette.red, 2.2), ("now", "envelope", palette.orange, 3.6)):
        ends = tuple(part[f"{name}_{end}"] for end in ("t0", "h0", "t1", "h1"))
        if len(ends[0]):
            pieces = hv.Segments(ends, [t, up, "t1", "h1"], label=label)
            drawn.append(style.line(pieces, palette, colour, width))
    drawn += _proposals(part, t, up, palette)
    refresh = part["refresh_t"]  # None in a record, where a frame has nan
    if refresh is not None and np.isfinite(refresh):
        drawn.append(style.line(hv.VLine(float(refresh)), palette, palette.purple, 1.8, (6, 4)))
    highest = max(float(part["y_max"]), float(np.nanmax(part["proposal_height"], initial=0.0)))
    top = max(1.08 * highest, least_height(part["t_max"]))
    low = max(float(rate.min(initial=0.0)), -_BELOW * top)
    ends = {"xlim": (0.0, float(part["t_max"])), "ylim": (low, top)}
    return style.finish(hv.Overlay(drawn), palette, size=style.WIDE, room=110, legend="right", **ends)


def _stems(part: dict[str, Any], t: hv.Dimension, up: hv.Dimension, palette: Palette) -> list[Any]:
    """Draw a line from zero to each proposal."""
    if not len(part["proposal_t"]):
        return []
    top = np.fmax(part["proposal_height"], part["proposal_rate"])
    ends = (part["proposal_t"], np.zeros(len(top)), part["proposal_t"], top)
    return [style.line(hv.Segments(ends, [t, up, "t1", "h1"]), palette, palette.grey, 1.2, (2, 4))]


def _proposals(part: dict[str, Any], t: hv.Dimension, up: hv.Dimension, palette: Palette) -> list[Any]:
    """Mark each proposal at its rate, and the uniform draw that it was held against."""
    at, rate = np.asarray(part["proposal_t"]), np.maximum(part["proposal_rate"], 0)
    drawn = []
    for code, of in MARKS.items():
        own = np.asarray(part["proposal_kind"]) == code
        if own.any():
            drawn.append(style.kind(hv.Points((at[own], rate[own]), [t, up], label=of.label), palette, of, 10))
    if len(at):
        uniform = np.asarray(part["proposal_u"]) * np.asarray(part["proposal_height"])
        drawn.append(style.kind(hv.Points((at, uniform), [t, up], label=UNIFORM.label), palette, UNIFORM, 8))
    return drawn
