"""Draw whether intervals of predicted numbers hold what they should, and on which side they are wrong."""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, style
from bnnviz.plots.parts import NumberTransforms
from bnnviz.views.palette import Palette

_BAND, _SHADE = 0.16, 0.35
_FILLED = 0.8  # of a bin's width
_RIGHT = "right predictions, 95 %"


def pit(source: Any, *, bins: int = 10, dark: bool = False) -> hv.Overlay:
    """Draw a histogram of probability integral transforms: how probable no more than what was observed had been.

    Right predictions have a flat one, within the band with a probability of 95 % in each bin. A valley tells that
    predictions are too sure, a hill that they are too wide, and a slope that they are too high or too low.

    Parameters
    ----------
    source : Run, Recording, path, array, list or dict
        Networks that predict numbers, by their test rows; or transforms (rows,); or a dict of such by their names.
    bins : int, default 10
        Of equal width from 0 to 1.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If the source predicts no numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> plots.pit(rng.beta(0.6, 0.6, size=500))  # too sure
    :Overlay...
    """
    palette = style.palette_of(dark)
    found = parts.number_transforms(source)
    if found is None:
        raise BnnvizError("These are classes; plots.calibration draws whether their probabilities come true.", "source")
    x = hv.Dimension(("transform", "probability of no more than what was observed"))
    y = hv.Dimension(("density", "density"))
    made = [(each.name, diagnostics.coverage(each.transforms, bins=bins)) for each in found]
    drawn = [_flat(one, x, y, palette) for one in {one.rows: one for _, one in made}.values()]
    for place, (name, one) in enumerate(made):
        drawn += _bars(name, one, place, len(made), x, y, palette)
    top = 1.08 * max(max(float(one.density.max()), one.density_high) for _, one in made)
    return style.finish(hv.Overlay(drawn), palette, legend="right", room=170, xlim=(0, 1), ylim=(0, top))


def covered(found: list[NumberTransforms], palette: Palette) -> hv.Overlay:
    """Draw what share of the rows central intervals hold, by their level."""
    x, y = hv.Dimension(("level", "level of the interval")), hv.Dimension(("share", "share of the rows within"))
    made = [(each.name, diagnostics.coverage(each.transforms)) for each in found]
    drawn: list[Any] = [
        style.band(
            hv.Area((one.levels, one.low, one.high), x, [y, "high"], label=_RIGHT), palette, palette.muted, _BAND
        )
        for one in {one.rows: one for _, one in made}.values()
    ]
    diagonal = hv.Curve(([0, 1], [0, 1]), x, y, label="as many as said")
    drawn.append(style.line(diagonal, palette, palette.muted, 1.2, (4, 4)))
    for place, (name, one) in enumerate(made):
        colour, dash, marker = style.series(palette, place)
        label = f"{name}, {one.rows:,} rows"
        drawn.append(style.line(hv.Curve((one.levels, one.share), x, y, label=label), palette, colour, 2.0, dash))
        points = hv.Scatter((one.levels, one.share), x, y, label=label)
        drawn.append(style.marks(points, palette, colour, marker, size=6.0))
    ends = {"xlim": (0, 1), "ylim": (-0.02, 1.02)}
    return style.finish(hv.Overlay(drawn), palette, size=style.SQUARE, room=190, legend="right", **ends)


def _flat(one: diagnostics.Coverage, x: Any, y: Any, palette: Palette) -> Any:
    """Return the band in which bins of right predictions are."""
    low, high = (np.full(2, each) for each in (one.density_low, one.density_high))
    area = hv.Area((np.array([0.0, 1.0]), low, high), x, [y, "high"], label=_RIGHT)
    return style.band(area, palette, palette.muted, _BAND)


def _bars(name: str, one: diagnostics.Coverage, place: int, of: int, x: Any, y: Any, palette: Palette) -> list[Any]:
    """Return the bars of one source, beside those of the others, and a line along their tops for the legend."""
    colour, dash, _ = style.series(palette, place)
    width = _FILLED * np.diff(one.edges) / of
    middles = (one.edges[1:] + one.edges[:-1]) / 2
    left = middles + (place - of / 2) * width
    boxes = hv.Rectangles((left, np.zeros(len(left)), left + width, one.density), [x, y, "x1", "y1"])
    tops = hv.Curve((middles, one.density), x, y, label=f"{name}, {one.rows:,} rows")
    return [style.region(boxes, palette, colour, _SHADE), style.line(tops, palette, colour, 1.6, dash)]
