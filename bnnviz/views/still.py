"""Style figures that are drawn once and stay."""

from __future__ import annotations

from bokeh.plotting import figure

from bnnviz.views.base import FONT, LABEL_SIZE, TICK_SIZE
from bnnviz.views.palette import Palette


def paint(fig: figure, palette: Palette, scale: float = 1.0) -> None:
    """Colour a figure's surface, axes, grid and title, and set their type.

    Parameters
    ----------
    fig : figure
    palette : Palette
    scale : float, default 1
        Of the type.
    """
    size, small = f"{scale * LABEL_SIZE:g}px", f"{scale * TICK_SIZE:g}px"
    fig.update(
        background_fill_color=palette.surface,
        border_fill_color=palette.surface,
        outline_line_color=palette.grid,
    )
    fig.grid.grid_line_color = palette.grid
    fig.title.update(text_color=palette.ink, text_font=FONT, text_font_size=size, text_font_style="bold")
    for axis in fig.axis:
        axis.update(
            axis_line_color=palette.axis,
            major_tick_line_color=palette.axis,
            minor_tick_line_color=None,
            major_label_text_color=palette.muted,
            major_label_text_font=FONT,
            major_label_text_font_size=small,
            axis_label_text_color=palette.ink,
            axis_label_text_font=FONT,
            axis_label_text_font_size=size,
            axis_label_text_font_style="normal",
        )
    for legend in fig.legend:
        legend.update(
            label_text_color=palette.ink,
            label_text_font=FONT,
            label_text_font_size=small,
            background_fill_color=palette.surface,
            border_line_color=palette.grid,
        )
