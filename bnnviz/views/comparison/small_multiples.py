"""Draw a sweep: a column for each setting, a row for each measure, a line for each series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bokeh.embed import file_html
from bokeh.layouts import gridplot
from bokeh.models import ColumnDataSource, GridPlot, LayoutDOM, Whisker
from bokeh.plotting import figure
from bokeh.resources import INLINE

from bnnviz.views.base import extent
from bnnviz.views.palette import DARK, LIGHT, Palette
from bnnviz.views.still import paint

WIDTH, HEIGHT = 330, 200
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle")
_LEAST = 1e-3  # of an axis, above and below what is drawn


def small_multiples(
    rows: Sequence[dict[str, Any]],
    measures: dict[str, str],
    *,
    column: str = "setting",
    x: str = "value",
    series: str = "sampler",
    dark: bool = False,
) -> GridPlot:
    """Draw a sweep.

    Parameters
    ----------
    rows : sequence of dict
        Points: each with the keys below, each measure, and its standard error as ``<measure>_se`` (None: unknown).
    measures : dict of str to str
        What is drawn, with the label of its axis.
    column, x, series : str
        Keys of what a column is for, of the place on the axis, and of what a line is for.
    dark : bool, default False

    Returns
    -------
    GridPlot
        A row of panels for each measure, which share their height.
    """
    palette = DARK if dark else LIGHT
    columns = list(dict.fromkeys(row[column] for row in rows))
    lines = list(dict.fromkeys(row[series] for row in rows))
    grid: list[list[figure]] = []
    # One legend is enough, in the first column that has all lines.
    first = next((name for name in columns if {row[series] for row in rows if row[column] == name} == set(lines)), None)
    for measure, label in measures.items():
        low, high = _reach(rows, measure)
        panels = []
        for name in columns:
            shown = [row for row in rows if row[column] == name]
            panel = figure(width=WIDTH, height=HEIGHT, x_axis_type="log", y_range=(low, high), tools="")
            panel.toolbar.logo = None
            panel.xaxis.axis_label, panel.yaxis.axis_label = name.replace("_", " "), label
            panel.xaxis.ticker = sorted({row[x] for row in shown})
            for number, line in enumerate(lines):
                _draw(panel, [row for row in shown if row[series] == line], x, measure, line, number, palette)
            paint(panel, palette)
            panel.legend.visible = not grid and name == first
            panel.legend.background_fill_alpha = 0.6
            panels.append(panel)
        grid.append(panels)
    return gridplot(grid, toolbar_location=None)


def _reach(rows: Sequence[dict[str, Any]], measure: str) -> tuple[float, float]:
    values = [(row[measure], row.get(f"{measure}_se") or 0.0) for row in rows if row[measure] is not None]
    low, high = extent([v - se for v, se in values], [v + se for v, se in values]) or (0.0, 1.0)
    edge = max(0.08 * (high - low), _LEAST * max(abs(low), abs(high), _LEAST))
    return low - edge, high + edge


def _draw(
    panel: figure, rows: list[dict[str, Any]], x: str, measure: str, line: str, number: int, palette: Palette
) -> None:
    rows = [row for row in rows if row[measure] is not None]
    if not rows:
        return
    colour = palette.chains[number % len(palette.chains)]
    errors = [row.get(f"{measure}_se") or math.nan for row in rows]
    y = [row[measure] for row in rows]
    source = ColumnDataSource(
        {
            "x": [row[x] for row in rows],
            "y": y,
            "low": [value - error for value, error in zip(y, errors, strict=True)],
            "high": [value + error for value, error in zip(y, errors, strict=True)],
        }
    )
    panel.line("x", "y", source=source, color=colour, line_width=2, legend_label=line)
    marker = MARKERS[number % len(MARKERS)]
    panel.scatter("x", "y", source=source, color=colour, size=7, marker=marker, legend_label=line)
    panel.add_layout(Whisker(base="x", lower="low", upper="high", source=source, line_color=colour))


def page(layout: LayoutDOM, title: str) -> str:
    """Return a page of its own that needs no network."""
    return file_html(layout, INLINE, title)
