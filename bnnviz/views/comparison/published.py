"""Draw measured figures beside published ones: a panel for each measure, a line for each case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bokeh.layouts import row
from bokeh.models import ColumnDataSource, FactorRange, HoverTool, Row
from bokeh.plotting import figure

from bnnviz.views.base import TICK_SIZE, extent
from bnnviz.views.palette import DARK, LIGHT, Palette
from bnnviz.views.still import paint

ERRORS = 2.0  # standard errors on either side that a whisker shows
LINE, EDGES = 27, 74  # pixels of height: of a case, and of what is above and below all of them
LETTER, MOST_LETTERS = 0.56, 30  # of a label, in sizes of its type; and how many there are room for
_SPAN = 60.0  # a wider range of positive figures is drawn on a logarithmic axis
_MARK = 11


@dataclass(frozen=True)
class Dot:
    """Hold one figure of one case.

    Parameters
    ----------
    case, measure : str
        Its line and its panel.
    published, measured, error : float or None
        The paper's figure, ours and its standard error; None where there is none.
    off : bool
        Whether they differ by more than chance would explain.
    """

    case: str
    measure: str
    published: float | None
    measured: float | None
    error: float | None
    off: bool = False

    @property
    def reach(self) -> tuple[float, float]:
        """The ends of the whisker; NaN where there is none."""
        half = ERRORS * self.error if self.error is not None else math.nan
        return (math.nan, math.nan) if self.measured is None else (self.measured - half, self.measured + half)


def beside(dots: Sequence[Dot], dark: bool = False, scale: float = 1.0) -> Row:
    """Draw published figures as hollow marks and measured ones as filled marks with two standard errors.

    Parameters
    ----------
    dots : sequence of Dot
        In the order of their lines and panels.
    dark : bool, default False
    scale : float, default 1
        Of the type.

    Returns
    -------
    Row
        As wide as its place.
    """
    palette = DARK if dark else LIGHT
    cases = list(dict.fromkeys(dot.case for dot in dots))
    measures = list(dict.fromkeys(dot.measure for dot in dots))
    height = round(scale * (LINE * len(cases) + EDGES))
    names = _names(cases, palette, scale, height)
    panels = [_panel([d for d in dots if d.measure == m], cases, palette, scale, height) for m in measures]
    return row(names, *panels, sizing_mode="stretch_width", spacing=0)


def _names(cases: Sequence[str], palette: Palette, scale: float, height: int) -> figure:
    """Draw the cases' names: an axis without a panel."""
    longest = min(max(map(len, cases)), MOST_LETTERS)
    width = round(scale * TICK_SIZE * LETTER * longest) + 26
    fig = _figure(cases, palette, scale, height, "")
    fig.update(width=width, min_border_left=width - 2, sizing_mode="fixed", outline_line_color=None)
    fig.yaxis.visible, fig.xaxis.visible, fig.grid.visible = True, False, False
    fig.x_range.update(start=0, end=1)
    fig.yaxis.major_label_overrides = {case: _short(case) for case in cases}
    return fig


def _short(name: str) -> str:
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"


def _figure(cases: Sequence[str], palette: Palette, scale: float, height: int, title: str, log: bool = False) -> figure:
    fig = figure(
        height=height,
        y_range=FactorRange(*reversed(cases)),
        x_axis_type="log" if log else "linear",
        x_range=(0.1, 1.0),
        title=title,
        tools="",
        toolbar_location=None,
        sizing_mode="stretch_width",
        min_border_left=8,
        min_border_right=8,
        min_border_top=round(34 * scale),
        min_border_bottom=round(34 * scale),
    )
    paint(fig, palette, scale)
    fig.title.align, fig.yaxis.visible = "center", False
    fig.axis.axis_line_color = fig.axis.major_tick_line_color = None
    fig.yaxis.major_label_text_color = palette.ink
    fig.xaxis.ticker.desired_num_ticks = 3
    return fig


def _panel(dots: Sequence[Dot], cases: Sequence[str], palette: Palette, scale: float, height: int) -> figure:
    values = [v for dot in dots for v in (dot.published, dot.measured, *dot.reach) if v is not None]
    low, high = extent(values) or (0.0, 1.0)
    log = low > 0 and high > _SPAN * low
    fig = _figure(cases, palette, scale, height, dots[0].measure, log)
    room = 0.09
    if log:
        factor = (high / low) ** room
        fig.x_range.update(start=low / factor, end=high * factor)
    else:
        edge = room * (high - low) or 0.1 * abs(high) or 1.0
        fig.x_range.update(start=low - edge, end=high + edge)
    source = _source(dots, palette)
    fig.segment("low", "case", "high", "case", source=source, line_color="colour", line_width=2.5, line_alpha=0.75)
    ours = fig.scatter(
        "measured", "case", source=source, marker="mark", size=_MARK, fill_color="colour", line_color="colour"
    )
    theirs = fig.scatter(
        "published",
        "case",
        source=source,
        marker="diamond",
        size=_MARK + 4,
        fill_color=None,
        line_color=palette.ink,
        line_width=1.8,
    )
    tips = [("", "@case"), ("published", "@text_published"), ("measured", "@text_measured")]
    fig.add_tools(HoverTool(renderers=[ours, theirs], tooltips=tips))
    return fig


def _source(dots: Sequence[Dot], palette: Palette) -> ColumnDataSource:
    return ColumnDataSource(
        {
            "case": [dot.case for dot in dots],
            "published": [_number(dot.published) for dot in dots],
            "measured": [_number(dot.measured) for dot in dots],
            "low": [dot.reach[0] for dot in dots],
            "high": [dot.reach[1] for dot in dots],
            "colour": [palette.magenta if dot.off else palette.blue for dot in dots],
            "mark": ["square" if dot.off else "circle" for dot in dots],
            "text_published": [_text(dot.published, None) for dot in dots],
            "text_measured": [_text(dot.measured, dot.error) for dot in dots],
        }
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _text(value: float | None, error: float | None) -> str:
    text = "none" if value is None else f"{value:.4g}"
    return text if error is None else f"{text} ± {error:.2g} s.e."


def legend_html(dark: bool = False) -> str:
    """Return what the marks mean."""
    palette = DARK if dark else LIGHT
    marks = (
        ("◇", palette.ink, "published"),
        ("●", palette.blue, "measured, ± 2 standard errors"),
        ("■", palette.magenta, "differs by more than that"),
    )
    return "".join(
        f"<span><i style='color:{colour};font-style:normal' aria-hidden='true'>{mark}</i> {what}</span>"
        for mark, colour, what in marks
    )
