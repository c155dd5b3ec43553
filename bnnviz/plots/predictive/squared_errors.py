"""Draw how the squared errors of test rows are spread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, style
from bnnviz.views.palette import Palette

_BOX, _VIOLIN = 0.1, 0.4  # half of their heights
_LINE, _EDGES = 62, 90  # pixels of height: of a box, and around all


def squared_errors(source: Any, *, dark: bool = False) -> hv.Overlay:
    """Draw violins and boxes of squared errors on a logarithmic axis; the cross is their mean.

    A box is the middle half, its whiskers end at the last error within 1.5 of its width.

    Parameters
    ----------
    source : array_like or dict
        Squared errors (rows,); a dict of such by names; or the part ``errors2`` of a frame.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If there are none above zero.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> plots.squared_errors({"HMC": rng.normal(size=300) ** 2, "SGLD": (1.5 * rng.normal(size=300)) ** 2})
    :Overlay...
    """
    boxes = parts.lanes(source, "boxes") or _boxes(source)
    palette = style.palette_of(dark)
    x, y = hv.Dimension(("log squared error", "squared error")), hv.Dimension(("method", " "))
    drawn = [piece for place, box in enumerate(boxes) for piece in _one(box, place, x, y, palette)]
    low = min(min([float(b["low"]), float(b["mean"]), *map(float, np.ravel(b["outside"]))]) for b in boxes)
    high = max(max([float(b["high"]), float(b["mean"]), *map(float, np.ravel(b["outside"]))]) for b in boxes)
    room = 0.04 * (high - low) + 1e-9
    first, step = int(np.ceil(low)), max(1, int(np.ceil((high - low) / 5)))
    ticks = [(power, f"1e{power}") for power in range(first, int(np.floor(high)) + 1, step)]
    how = {"yticks": [(place, box["name"]) for place, box in enumerate(boxes)], "invert_yaxis": True}
    how |= {"xlim": (low - room, high + room), "ylim": (-0.6, len(boxes) - 0.4)} | ({"xticks": ticks} if ticks else {})
    size = (style.WIDE[0] + 80, _EDGES + _LINE * len(boxes))
    return style.finish(hv.Overlay(drawn), palette, size=size, **how)


def _boxes(source: Any) -> list[dict[str, Any]]:
    named = source.items() if isinstance(source, Mapping) else [("", source)]
    boxes = []
    for name, values in named:
        found = diagnostics.error_spread(np.asarray(values, dtype=float))
        if found is None:
            raise BnnvizError(f"No squared error of {name or 'the rows'} is above zero.", "source")
        boxes.append(found._asdict() | {"name": str(name)})
    return boxes


def _one(box: dict[str, Any], place: int, x: hv.Dimension, y: hv.Dimension, palette: Palette) -> list[Any]:
    colour = style.series(palette, place)[0]
    low, q1, median, q3, high = (float(box[name]) for name in ("low", "q1", "median", "q3", "high"))
    drawn = []
    heights = np.asarray(box["density"], dtype=float)
    if heights.size:
        half = _VIOLIN * heights / heights.max()
        violin = hv.Area((np.asarray(box["y"]), place - half, place + half), x, [y, "high"])
        drawn.append(style.band(violin, palette, colour, 0.3))
    middle = hv.Rectangles([(q1, place - _BOX, q3, place + _BOX)], [x, y, "x1", "y1"])
    glyphs = [(low, place, q1, place), (q3, place, high, place), (median, place - 2 * _BOX, median, place + 2 * _BOX)]
    drawn.append(style.region(middle, palette, colour, 0.65))
    drawn.append(style.line(hv.Segments(glyphs, [x, y, "x1", "y1"]), palette, colour, 1.8))
    outside = np.ravel(np.asarray(box["outside"], dtype=float))
    if outside.size:
        points = hv.Points((outside, np.full(len(outside), float(place))), [x, y])
        drawn.append(style.marks(points, palette, colour, size=3))
    mean = hv.Points([(float(box["mean"]), float(place))], [x, y])
    drawn.append(style.marks(mean, palette, palette.ink, "x", size=10))
    return drawn
