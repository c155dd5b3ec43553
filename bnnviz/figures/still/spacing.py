"""Separate the panels of a printed figure, and scale the figure to the requested size.

HoloViews gives each panel a cell for its axes alone: a legend next to them is drawn over the next panel, and neither
of Matplotlib's layout engines accepts the grid of HoloViews. This module includes the decorations of axes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.layout_engine import LayoutEngine

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

PAD = 0.04  # inches around a figure
_GAP = 0.12  # inches between panels
_LEAST = 0.3  # of its width or height, that axes are made smaller to
_EQUAL = 1.0  # the aspect of axes with one unit in both directions
_TURNS = 4  # iterations until labels, whose ticks depend on the width, no longer change the size of decorations


class Panel(NamedTuple):
    """One cell of a figure: row, column, and its axes, followed by their colour bar."""

    row: int
    column: int
    axes: list[Axes]


class Extent(NamedTuple):
    """The extent of axes in inches, without and with their decorations."""

    low: float
    high: float
    outer_low: float
    outer_high: float

    @property
    def around(self) -> float:
        """Inches of the decorations."""
        return self.outer_high - self.outer_low - (self.high - self.low)


class PanelPlace(NamedTuple):
    """The new place of axes: ``extent.low`` moves to ``begin``, scaled by ``factor``."""

    extent: Extent
    begin: float
    factor: float

    def moved(self, low: float, high: float) -> tuple[float, float]:
        """Return where two ends go."""
        return tuple(self.begin + self.factor * (end - self.extent.low) for end in (low, high))


class Apart(LayoutEngine):
    """Move panels apart whenever a figure is drawn: `hv.save` and notebooks draw without `bnnviz.plots.save`."""

    _adjust_compatible = _colorbar_gridspec = True

    def execute(self, fig: Figure) -> None:
        """Move the panels of a figure apart."""
        # Measuring draws the figure, which executes its engine.
        fig.set_layout_engine("none")
        try:
            move_apart(fig)
        finally:
            fig.set_layout_engine(self)


def move_apart(figure: Figure, size: tuple[float | None, float | None] = (None, None)) -> None:
    """Separate overlapping panels, and fit them to the requested size."""
    panels = _panels(figure)
    fixed = any(each is not None for each in size)
    if not panels or (len(panels) == 1 and not fixed):
        return
    below = _put_legends_below(figure) if fixed else []
    for _ in range(_TURNS if fixed else 1):
        for axes in below:
            _hang(axes)
        figure.draw_without_rendering()
        _place(figure, panels, size)


def _place(figure: Figure, panels: list[Panel], size: tuple[float | None, float | None]) -> None:
    across = _places(figure, panels, "column", size[0])
    down = _places(figure, panels, "row", size[1])
    width, height = figure.get_size_inches()
    for panel in panels:
        for axes in panel.axes:
            x0, y0, x1, y1 = axes.get_position(original=True).extents * [width, height, width, height]
            x0, x1 = across[panel.column].moved(x0, x1) if across else (x0, x1)
            y0, y1 = down[panel.row].moved(y0, y1) if down else (y0, y1)
            if any(each is not None for each in size) and axes.get_aspect() != _EQUAL:
                axes.set_aspect("auto")  # otherwise narrower axes also become lower
            axes.set_position([x0 / width, y0 / height, (x1 - x0) / width, (y1 - y0) / height])


def _panels(figure: Figure) -> list[Panel]:
    panels = [
        Panel(spec.rowspan.start, spec.colspan.start, [axes])
        for axes in figure.axes
        if (spec := axes.get_subplotspec()) is not None
    ]
    for axes in figure.axes:
        if axes.get_subplotspec() is None and panels:
            _owner(axes, panels).axes.append(axes)
    return panels


def _owner(bar: Axes, panels: list[Panel]) -> Panel:
    """Return the panel nearest to a colour bar."""
    centre = np.mean(bar.get_position().get_points(), axis=0)

    def apart(panel: Panel) -> float:
        x0, y0, x1, y1 = panel.axes[0].get_position().extents
        return float(np.hypot(max(x0 - centre[0], 0, centre[0] - x1), max(y0 - centre[1], 0, centre[1] - y1)))

    return min(panels, key=apart)


def _places(figure: Figure, panels: list[Panel], name: str, size: float | None) -> dict[int, PanelPlace] | None:
    """Return where the axes of each column, or of each row, go; None where all can stay."""
    # From left to right, and from the bottom upwards.
    side, numbers = (0, False) if name == "column" else (1, True)
    extents = {
        number: _extent(
            figure, (axes for panel in panels if getattr(panel, name) == number for axes in panel.axes), side
        )
        for number in sorted({getattr(panel, name) for panel in panels}, reverse=numbers)
    }
    found = list(extents.values())
    if size is None and all(
        after.outer_low >= before.outer_high for before, after in zip(found, found[1:], strict=False)
    ):
        return None
    factor, begin = 1.0, min(each.outer_low for each in found)
    if size is not None:
        around = sum(each.around for each in found) + _GAP * (len(found) - 1) + 2 * PAD
        factor = max((size - around) / sum(each.high - each.low for each in found), _LEAST)
    places = {}
    for number, each in extents.items():
        begin += each.low - each.outer_low
        places[number] = PanelPlace(each, begin, factor)
        begin += factor * (each.high - each.low) + each.outer_high - each.high + _GAP
    return places


def _extent(figure: Figure, axes: Iterable[Axes], side: int) -> Extent:
    """Return how far axes of a column (side 0) or of a row (side 1) reach."""
    size = figure.get_size_inches()[side]
    inner, outer = [], []
    for each in axes:
        inner.append(each.get_position(original=True).get_points()[:, side] * size)
        outer.append(each.get_tightbbox().get_points()[:, side] / figure.dpi)
    (low, high), (outer_low, outer_high) = ((np.min(found), np.max(found)) for found in (inner, outer))
    return Extent(low, high, min(outer_low, low), max(outer_high, high))


def _put_legends_below(figure: Figure) -> list[Axes]:
    """Move legends from the side of axes to below them, where they take no width; return the axes."""
    figure.draw_without_rendering()
    beside = [
        axes
        for axes in figure.axes
        if (legend := axes.get_legend()) is not None and legend.get_window_extent().x0 > axes.get_window_extent().x1
    ]
    for axes in beside:
        _put_below(axes, axes.get_legend())
    return beside


def _hang(axes: Axes) -> None:
    """Hang a legend under the labels of the axis, wherever these are now."""
    axes.figure.draw_without_rendering()
    box, labels = axes.get_window_extent(), axes.xaxis.get_tightbbox()
    under = 0.0 if labels is None else (labels.y0 - box.y0) / box.height
    axes.get_legend().set_bbox_to_anchor((0.5, under), transform=axes.transAxes)


def _put_below(axes: Axes, legend: Legend) -> None:
    texts = legend.get_texts()
    again = axes.legend(
        legend.legend_handles,
        [text.get_text() for text in texts],
        loc="upper center",
        ncols=2,
        frameon=False,
        fontsize=0.85 * texts[0].get_fontsize() if texts else None,
        columnspacing=1.0,
        handlelength=1.6,
    )
    for text in again.get_texts():
        text.set_color(texts[0].get_color())
