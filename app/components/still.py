"""Put figures of finished runs on a page."""

from __future__ import annotations

from typing import Any

import panel as pn
from bokeh.models import GridPlot, Plot, Toolbar

_LARGE = 1.25  # type, for a projector
# A figure shrinks to its place: to this share of its width, or to these pixels where that is less.
_SHARE, _LEAST = 0.6, 260


def still(figure: Any, large: bool = False) -> pn.pane.Bokeh:
    """Return a pane with a figure of `bnnviz.plots`."""
    from bnnviz.figures.still.output import rendered  # HoloViews, which takes a second, once a figure is shown

    made = _shrinking(rendered(figure, _LARGE if large else 1.0))
    for toolbar in made.select({"type": Toolbar}):
        toolbar.active_scroll = None  # the wheel moves the page; who wants to zoom by it presses its tool
    # A row that is wider than its place even so is scrolled.
    return pn.pane.Bokeh(made, sizing_mode="stretch_width", margin=(2, 0, 6, 0), styles={"overflow": "auto hidden"})


def narrowest(width: int) -> int:
    """Return the smallest width in pixels of a figure of the given width."""
    return min(_LEAST, round(_SHARE * width))


def _shrinking(made: Any) -> Any:
    """Let the figures of a model shrink to the width of their place; return the model."""
    for figure in made.select({"type": Plot}):
        least, most = narrowest(figure.width), figure.width
        # WebGL graphics cannot be copied to paper.
        figure.update(sizing_mode="stretch_width", min_width=least, max_width=most, output_backend="canvas")
    for grid in made.select({"type": GridPlot}):
        widths: dict[int, int] = {}
        for child, _, column in grid.children:
            widths[column] = max(widths.get(column, 0), getattr(child, "max_width", None) or 0)
        grid.cols = {column: f"minmax({narrowest(width)}px, {width}px)" for column, width in widths.items()}
        grid.sizing_mode = "stretch_width"
    return made
