"""Put figures of finished runs on a page."""

from __future__ import annotations

from importlib import import_module
from threading import Thread
from typing import Any

import panel as pn

_LARGE = 1.25  # type, for a projector
_DRAW = ("bnnviz.plots.output", "holoviews.plotting.bokeh")  # what draws


def prepare() -> None:
    """Import what draws figures, which takes seconds, while the page and others go on."""
    Thread(target=lambda: [import_module(name) for name in _DRAW], daemon=True).start()


def still(figure: Any, large: bool = False) -> pn.pane.Bokeh:
    """Return a pane with a figure of `bnnviz.plots`.

    Parameters
    ----------
    figure : HoloViews object
    large : bool, default False
        Type for a projector.
    """
    from bnnviz.plots.output import rendered

    made = rendered(figure, _LARGE if large else 1.0)
    # A grid that is wider than its place is scrolled.
    return pn.pane.Bokeh(made, sizing_mode="stretch_width", margin=(2, 0, 6, 0), styles={"overflow": "auto hidden"})
