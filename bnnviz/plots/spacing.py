"""Move the panels of a figure for print apart, until what stands around one does not lie over the next.

HoloViews gives each panel a cell for its axes alone: a legend beside them is drawn over the next panel, and neither
of Matplotlib's layout engines takes the grid that HoloViews makes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GAP = 0.12  # inches between panels
_EQUAL = 1.0  # the aspect of axes with one unit in both directions
_LEAST = 0.4  # of its width or height, that axes are made smaller to


class Panel(NamedTuple):
    """Hold one cell of a figure: its row and column, its axes first, and the bar of colours that belongs to them."""

    row: int
    column: int
    axes: list[Axes]


class Extent(NamedTuple):
    """Hold from where to where axes reach in inches, without and with what stands around them."""

    low: float
    high: float
    outer_low: float
    outer_high: float


def move_apart(figure: Figure, *, fixed: bool) -> None:
    """Move panels apart that lie over each other.

    Parameters
    ----------
    figure : Figure
        Of Matplotlib, drawn by HoloViews.
    fixed : bool
        Whether somebody asked for its size, so that axes become smaller; else they keep theirs, and it grows.
    """
    panels = _panels(figure)
    if len(panels) < 2:
        return
    figure.draw_without_rendering()
    columns = sorted({panel.column for panel in panels})
    across = _stretched({column: _extent(figure, _of(panels, "column", column), 0) for column in columns}, fixed)
    # From the top downwards.
    rows = sorted({panel.row for panel in panels}, reverse=True)
    down = _stretched({row: _extent(figure, _of(panels, "row", row), 1) for row in rows}, fixed)
    if across is None and down is None:
        return
    width, height = figure.get_size_inches()
    for panel in panels:
        for axes in panel.axes:
            x0, y0, x1, y1 = axes.get_position(original=True).extents * [width, height, width, height]
            (x0, x1), (y0, y1) = _moved((x0, x1), across, panel.column), _moved((y0, y1), down, panel.row)
            if fixed and axes.get_aspect() != _EQUAL:  # else axes that become narrower become lower, too
                axes.set_aspect("auto")
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
    """Return the panel that a bar of colours stands nearest to."""
    centre = np.mean(bar.get_position().get_points(), axis=0)

    def apart(panel: Panel) -> float:
        x0, y0, x1, y1 = panel.axes[0].get_position().extents
        return float(np.hypot(max(x0 - centre[0], 0, centre[0] - x1), max(y0 - centre[1], 0, centre[1] - y1)))

    return min(panels, key=apart)


def _of(panels: list[Panel], name: str, number: int) -> list[Axes]:
    return [axes for panel in panels if getattr(panel, name) == number for axes in panel.axes]


def _extent(figure: Figure, axes: Iterable[Axes], side: int) -> Extent:
    """Return how far axes of a column (side 0) or of a row (side 1) reach."""
    size = figure.get_size_inches()[side]
    inner, outer = [], []
    for each in axes:
        inner.append(each.get_position(original=True).get_points()[:, side] * size)
        outer.append(each.get_tightbbox().get_points()[:, side] / figure.dpi)
    (low, high), (outer_low, outer_high) = ((np.min(found), np.max(found)) for found in (inner, outer))
    return Extent(low, high, min(outer_low, low), max(outer_high, high))


def _stretched(extents: dict[int, Extent], fixed: bool) -> dict[int, tuple[Extent, float, float]] | None:
    """Return for each number its extent, where it is to begin and its factor; None where nothing lies over another."""
    found = list(extents.values())
    if all(after.outer_low >= before.outer_high for before, after in zip(found, found[1:], strict=False)):
        return None
    around = sum(each.outer_high - each.outer_low - (each.high - each.low) for each in found) + _GAP * (len(found) - 1)
    inside = sum(each.high - each.low for each in found)
    whole = max(each.high for each in found) - min(each.low for each in found)
    factor = float(np.clip((whole - around) / inside, _LEAST, 1.0)) if fixed else 1.0
    places, begin = defaultdict(tuple), min(each.low for each in found)
    for number, each in extents.items():
        begin += each.low - each.outer_low
        places[number] = (each, begin, factor)
        begin += factor * (each.high - each.low) + each.outer_high - each.high + _GAP
    return dict(places)


def _moved(
    ends: tuple[float, float], places: dict[int, tuple[Extent, float, float]] | None, number: int
) -> tuple[float, float]:
    if places is None:
        return ends
    extent, begin, factor = places[number]
    low, high = (begin + factor * (end - extent.low) for end in ends)
    return low, high
