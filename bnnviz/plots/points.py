"""Draw clouds of points: each point while they are few, their density where they are many."""

from __future__ import annotations

from typing import Any

import holoviews as hv

from bnnviz import optional
from bnnviz.plots import style
from bnnviz.views.palette import Palette

MOST = 100_000


def cloud(element: Any, palette: Palette, colour: str, **how: Any) -> Any:
    """Style points; of more than 100,000 return a picture of how many lie where, by Datashader."""
    if len(element) > MOST:
        return counted(element, palette, colour)
    if isinstance(element, hv.Curve):
        return style.line(element, palette, colour, **how)
    return style.marks(element, palette, colour, **how)


def counted(element: Any, palette: Palette, colour: str) -> Any:
    """Return a picture of how many points lie where; places without any are clear."""
    purpose = f"A figure of {len(element):,} points (more than {MOST:,}) needs"
    shading = optional.require("datashader", purpose)
    from holoviews.operation.datashader import rasterize

    picture = rasterize(element, dynamic=False, aggregator=shading.count(), width=600, height=400)
    ramp = style.blended([palette.grid, colour])
    return style.apply(style.image(picture, palette, ramp, None), cnorm="log", nodata=0)
