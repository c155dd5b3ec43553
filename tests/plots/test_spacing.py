"""Panels beside each other: nothing of one lies over another, in print and on a page."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import holoviews as hv
import matplotlib.pyplot as plt
import numpy as np
import pytest
from bokeh.models import GridPlot, Plot

from bnnviz import plots
from bnnviz.plots.output import rendered
from bnnviz.plots.spacing import move_apart
from tests.plots.examples import draws, made_tree, part

BESIDE: dict[str, Callable[[], Any]] = {
    "legends": lambda: plots.trace(draws(), "x[0]") + plots.rank(draws(), "x[0]"),
    "three": lambda: (
        plots.trace(draws(), "x[0]") + plots.rank(draws(), "x[0]") + plots.prediction(part("network1d", "prediction"))
    ),
    "two rows": lambda: (
        plots.pair(made_tree(), ["a", "b"])
        + plots.trace(made_tree(), "a")
        + plots.rank(made_tree(), "a")
        + plots.acf(made_tree(), "a")
    ).cols(2),
    "bars of colours": lambda: (
        plots.prediction(part("network2d", "prediction"))
        + plots.spread(part("network2d", "spread"))
        + plots.trace(draws(), "x[0]")
    ),
}


@pytest.fixture(autouse=True)
def both() -> None:
    plots.use("bokeh", "matplotlib")


def boxes(figure: Any) -> list[Any]:
    """Return where each panel reaches, with all that stands around it and the bar of colours beside it."""
    figure.draw_without_rendering()
    return [axes.get_tightbbox() for axes in figure.axes]


def overlapping(figure: Any) -> list[tuple[int, int]]:
    """Return the pairs of panels that lie over each other by more than a pixel."""
    found = boxes(figure)
    return [
        (i, k)
        for (i, one), (k, other) in itertools.combinations(enumerate(found), 2)
        if min(one.x1, other.x1) - max(one.x0, other.x0) > 1 and min(one.y1, other.y1) - max(one.y0, other.y0) > 1
    ]


def printed(figure: Any, *, fixed: bool = False, moved: bool = True) -> Any:
    drawn = hv.render(figure, backend="matplotlib")
    drawn.draw_without_rendering()
    if moved:
        move_apart(drawn, fixed=fixed)
        drawn.draw_without_rendering()
    return drawn


@pytest.mark.parametrize("name", BESIDE)
def test_nothing_lies_over_the_next_panel(name: str) -> None:
    drawn = printed(BESIDE[name]())
    try:
        assert not overlapping(drawn)
    finally:
        plt.close(drawn)


def test_panels_of_holoviews_alone_do_so() -> None:
    drawn = printed(BESIDE["legends"](), moved=False)
    try:
        assert overlapping(drawn)
    finally:
        plt.close(drawn)


@pytest.mark.parametrize("width", [7.0, 10.0])
def test_a_figure_has_the_width_that_was_asked_for(width: float) -> None:
    asked = hv.opts.Layout(fig_inches=(width, 2.4), backend="matplotlib")
    drawn = printed(BESIDE["legends"]().opts(asked), fixed=True)
    try:
        assert not overlapping(drawn)
        found = boxes(drawn)
        whole = (max(each.x1 for each in found) - min(each.x0 for each in found)) / drawn.dpi
        # Labels of the first axes stand in the margin that HoloViews leaves, which is cut where it is empty.
        assert 0.75 * width < whole < 1.05 * width
        heights = [axes.get_window_extent().height / drawn.dpi for axes in drawn.axes]
        assert min(heights) > 0.5 * 2.4
    finally:
        plt.close(drawn)


def test_axes_that_nobody_sized_keep_their_size() -> None:
    before, after = (printed(BESIDE["legends"](), moved=moved) for moved in (False, True))
    try:
        sizes = [[axes.get_window_extent().size for axes in drawn.axes] for drawn in (before, after)]
        np.testing.assert_allclose(sizes[0], sizes[1], rtol=0.02)
    finally:
        plt.close(before)
        plt.close(after)


def test_panels_of_a_page_become_narrower_with_the_window() -> None:
    figure = BESIDE["legends"]()
    grid, _ = rendered(figure), plots.page(figure, "two")
    assert isinstance(grid, GridPlot)
    text = plots.page(figure, "two")
    assert text.count('"sizing_mode":"stretch_width"') >= 1 + len(list(grid.select({"type": Plot})))
