"""Draw how the rate over its envelope was spread over all proposals."""

from __future__ import annotations

from typing import Any

import holoviews as hv

from bnnviz.plots import parts, style
from bnnviz.views.palette import KINDS, VIOLATION

_HALF, _CAP = 0.3, 0.16  # of the box, and of the ends of its whiskers
_FARTHEST = 4.0  # of the axis


def ratios(source: Any, *, dark: bool = False) -> hv.Overlay:
    """Draw a box plot of rate over envelope of all proposals: above 1 the envelope was no bound.

    The box holds the middle half, the whiskers reach from the least ratio to the 99 % quantile, the mark is the
    largest.

    Parameters
    ----------
    source : Run, Recording, path or dict
        A run of a sampler of events, a recording of one that has kept frames, or the part ``ratios`` of a frame.
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
    >>> paper = {"bound": "interpolated", "alpha": 1.0, "horizon": 1.0}
    >>> run = bnnviz.sample("banana", "bps", draws=50, warmup=0, chains=2, settings=paper)
    >>> plots.ratios(run)
    :Overlay...
    """
    part = parts.part(source, "ratios", "ratios of rate and envelope").part
    palette = style.palette_of(dark)
    along, up = hv.Dimension(("ratio", "rate / envelope")), hv.Dimension(("place", " "))
    least, low, median, high, end, most = (float(part[k]) for k in ("least", "q25", "median", "q75", "q99", "most"))
    box = hv.Rectangles([(low, -_HALF, high, _HALF)], [along, up, "x1", "y1"], label="middle half")
    whiskers = [(least, 0, low, 0), (high, 0, end, 0), (least, -_CAP, least, _CAP), (end, -_CAP, end, _CAP)]
    middle = hv.Segments([(median, -_HALF, median, _HALF)], [along, up, "x1", "y1"], label="median")
    shown = min(most, _FARTHEST)
    largest = hv.Points([(shown, 0.0)], [along, up], label="largest")
    drawn = [
        style.region(box, palette, palette.blue, 0.35),
        style.line(hv.Segments(whiskers, [along, up, "x1", "y1"], label="least to 99 %"), palette, palette.blue),
        style.line(middle, palette, palette.ink, 3.4),
        style.line(hv.VLine(1.0), palette, palette.ink, 1.6, (6, 4)),
        style.kind(largest, palette, KINDS[VIOLATION], 11)
        if most > 1
        else style.marks(largest, palette, palette.blue, size=10),
    ]
    ends = {"xlim": (0.0, max(1.25, 1.1 * shown)), "ylim": (-0.5, 0.5), "yaxis": None}
    return style.finish(hv.Overlay(drawn), palette, size=(style.WIDE[0], 200), room=120, legend="right", **ends)
