"""Draw small multiples of predictions: a row for each data set, a column for each sampler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bokeh.layouts import column, gridplot
from bokeh.models import Column, Div
from bokeh.plotting import figure

from bnnviz.views.base import extent
from bnnviz.views.palette import DARK, LIGHT, Palette
from bnnviz.views.predictive.prediction import DATA, NARROW, ROOM, WIDE
from bnnviz.views.still import paint

WIDTH, HEIGHT = 270, 230
_KEY = (
    "Red: data. Of the first run: the mean of the functions, and where the middle 50 and 95 % of them lie."
    " Thin lines: the means of the other runs."
)


class BandPanel(NamedTuple):
    """Hold one place in the grid.

    Attributes
    ----------
    row, column : str
        What it is of: a data set and a sampler.
    data : dict
        The scene's data (x, y, x_range, y_range, labels).
    parts : sequence of dict
        The prediction of each run (x, mean, lo50, hi50, lo95, hi95): the first one's band is drawn, and every mean.
    """

    row: str
    column: str
    data: dict[str, Any]
    parts: Sequence[dict[str, Any]]


def band_multiples(panels: Sequence[BandPanel], dark: bool = False, width: int = WIDTH) -> Column:
    """Draw predictions; the panels of a row share their axes.

    Parameters
    ----------
    panels : sequence of BandPanel
    dark : bool, default False
    width : int, default 270
        Of a panel, in pixels.
    """
    palette = DARK if dark else LIGHT
    across = list(dict.fromkeys(panel.column for panel in panels))
    grid: dict[str, list[figure | None]] = {panel.row: [None] * len(across) for panel in panels}
    for panel in panels:
        place = across.index(panel.column)
        reach = _reach([other for other in panels if other.row == panel.row])
        grid[panel.row][place] = _draw(panel, reach, palette, width, first=place == 0)
    return column(
        Div(text=_KEY, styles={"color": palette.muted}, width_policy="max"),
        gridplot(list(grid.values()), toolbar_location=None),
    )


def _reach(panels: Sequence[BandPanel]) -> tuple[float, float]:
    """Return what all panels of a row show: their data and bands, as far as these stay in sight of the data."""
    low, high = panels[0].data["y_range"]
    room = ROOM * (high - low)
    bands = [panel.parts[0][edge] for panel in panels for edge in ("lo95", "hi95")]
    least, most = extent(panels[0].data["y"], *bands)
    edge = 0.05 * (most - least)
    return max(least - edge, low - room), min(most + edge, high + room)


def _draw(panel: BandPanel, reach: tuple[float, float], palette: Palette, width: int, first: bool) -> figure:
    data, (band, *others) = panel.data, panel.parts
    fig = figure(
        width=width,
        height=HEIGHT,
        title=f"{panel.column}, {panel.row}",
        x_range=(float(data["x_range"][0]), float(data["x_range"][1])),
        y_range=reach,
        tools="",
    )
    paint(fig, palette)
    fig.xaxis.axis_label, fig.yaxis.axis_label = data["x_label"], data["y_label"] if first else None
    fig.varea(band["x"], band["lo95"], band["hi95"], color=palette.blue, alpha=WIDE)
    fig.varea(band["x"], band["lo50"], band["hi50"], color=palette.blue, alpha=NARROW)
    for other in others:
        fig.line(other["x"], other["mean"], color=palette.blue, line_width=1, alpha=0.8)
    colour = getattr(palette, DATA.role)
    fig.scatter(data["x"], data["y"], marker=DATA.marker, size=3, fill_color=None, line_color=colour, line_alpha=0.5)
    fig.line(band["x"], band["mean"], color=palette.ink, line_width=2)
    return fig
