"""Separate the panels of a printed figure with their legends; Matplotlib's engines reject the grid of HoloViews."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.layout_engine import LayoutEngine

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GAP = 0.12  # inches between panels


class Apart(LayoutEngine):
    """Move panels apart whenever a figure is drawn, by whomever."""

    _adjust_compatible = _colorbar_gridspec = True

    def execute(self, fig: Figure) -> None:
        """Move the panels of a figure apart: columns to the right, rows upwards."""
        panels = _panels(fig)
        if len(panels) < 2:
            return
        # Measuring draws the figure, which executes its engine.
        fig.set_layout_engine("none")
        try:
            fig.draw_without_rendering()
            columns = [spec.colspan.start for spec, _ in panels]
            rows = [-spec.rowspan.start for spec, _ in panels]
            moves = np.column_stack([_moves(fig, panels, columns, 0), _moves(fig, panels, rows, 1)])
            for (_, together), move in zip(panels, moves, strict=True):
                for axes in together:
                    x, y, width, height = axes.get_position(original=True).bounds
                    axes.set_position([x + move[0], y + move[1], width, height])
        finally:
            fig.set_layout_engine(self)


def _panels(figure: Figure) -> list[tuple[object, list[Axes]]]:
    """Return the cell of each panel, and its axes with their colour bar."""
    panels = [(spec, [axes]) for axes in figure.axes if (spec := axes.get_subplotspec()) is not None]
    for bar in figure.axes:
        if bar.get_subplotspec() is None and panels:
            x, y = np.mean(bar.get_position().get_points(), axis=0)
            # A bar is next to its axes, at the right.
            gaps = [
                (abs(x - box.x1), abs(y - (box.y0 + box.y1) / 2)) for box in (p[1][0].get_position() for p in panels)
            ]
            panels[int(np.argmin(np.sum(gaps, axis=1)))][1].append(bar)
    return panels


def _moves(figure: Figure, panels: list, lines: list[int], side: int) -> np.ndarray:
    """Return the move of each panel along one side, in sizes of the figure; ``lines`` are columns or rows."""
    size = figure.get_size_inches()[side]
    reach = np.array(
        [
            [
                np.min([axes.get_tightbbox().get_points()[0, side] for axes in together]),
                np.max([axes.get_tightbbox().get_points()[1, side] for axes in together]),
            ]
            for _, together in panels
        ]
    ) / (figure.dpi * size)
    moves, end = np.zeros(len(panels)), -np.inf
    for line in sorted(set(lines)):
        own = np.array(lines) == line
        moves[own] = max(0.0, end + _GAP / size - reach[own, 0].min())
        end = reach[own, 1].max() + moves[own][0]
    return moves
