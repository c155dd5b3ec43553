"""Draw one quantity of several recordings in one figure each, a colour for each recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from bokeh.layouts import column
from bokeh.models import Column, Range1d
from bokeh.plotting import figure

from bnnviz.views.palette import DARK, LIGHT, Palette, legend, line_html
from bnnviz.views.still import paint

MOST = 8  # recordings that have a colour of their own
_WIDTH = 2.2


class RecordingCurves(NamedTuple):
    """Hold what is drawn of one recording: its name, and pairs of arrays (x, y).

    Attributes
    ----------
    name : str
    density, trace, acf : (ndarray, ndarray)
        Value and density; draw and value of the first chain; lag and autocorrelation.
    """

    name: str
    density: tuple[np.ndarray, np.ndarray]
    trace: tuple[np.ndarray, np.ndarray]
    acf: tuple[np.ndarray, np.ndarray]


def overlays(courses: Sequence[RecordingCurves], label: str, dark: bool = False, large: bool = False) -> Column:
    """Draw density, trace and autocorrelation of up to eight recordings over each other.

    Parameters
    ----------
    courses : sequence of RecordingCurves
    label : str
        Of the quantity.
    dark, large : bool, default False
        Colours for a dark page, and type for a projector.
    """
    palette = DARK if dark else LIGHT
    figures = [
        _lines(courses, "density", label, "density", palette, large),
        _lines(courses, "trace", "draw of the first chain", label, palette, large),
        _lines(courses, "acf", "lag (draws)", f"ACF of {label}", palette, large),
    ]
    figures[2].y_range = Range1d(-0.25, 1.05)
    return column(*figures, sizing_mode="stretch_width", spacing=10)


def legend_html(names: Sequence[str], dark: bool = False) -> str:
    """Give the legend: which colour is which recording."""
    palette = DARK if dark else LIGHT
    return legend(
        *(line_html(name, colour, palette) for name, colour in zip(names, palette.chains[:MOST], strict=False))
    )


def _lines(
    courses: Sequence[RecordingCurves], part: str, x_label: str, y_label: str, palette: Palette, large: bool
) -> figure:
    fig = figure(
        height=270 if large else 225, sizing_mode="stretch_width", tools="pan,wheel_zoom,box_zoom,reset,save",
        toolbar_location="right", x_axis_label=x_label, y_axis_label=y_label,
    )  # fmt: skip
    fig.toolbar.logo, fig.toolbar.autohide, fig.toolbar.active_scroll = None, True, None
    thin = part == "trace"
    for course, colour in zip(courses, palette.chains[:MOST], strict=False):
        x, y = getattr(course, part)
        fig.line(x, y, line_color=colour, line_width=1.2 if thin else _WIDTH, line_alpha=0.8 if thin else 1.0)
    paint(fig, palette, 1.25 if large else 1.0)
    return fig
