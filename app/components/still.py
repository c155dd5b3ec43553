"""Put figures of finished runs on a page."""

from __future__ import annotations

from typing import Any

import panel as pn
from bokeh.models import Toolbar

_LARGE = 1.25  # type, for a projector


def still(figure: Any, large: bool = False) -> pn.pane.Bokeh:
    """Return a pane with a figure of `bnnviz.plots`."""
    from bnnviz.figures.still.output import rendered  # HoloViews, which takes a second, once a figure is shown

    made = rendered(figure, _LARGE if large else 1.0)
    for toolbar in made.select({"type": Toolbar}):
        toolbar.active_scroll = None  # the wheel moves the page; who wants to zoom by it presses its tool
    # A row that is wider than its place even so is scrolled.
    return pn.pane.Bokeh(made, sizing_mode="stretch_width", margin=(2, 0, 6, 0), styles={"overflow": "auto hidden"})
