"""Panels beside each other: nothing of one lies over another, in print and on a page."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import holoviews as hv
import matplotlib.pyplot as plt
import numpy as np
import pytest

from bnnviz import plots
from bnnviz.figures.still.spacing import move_apart
from tests.figures.plot_examples import draws, made_tree, part

BESIDE: dict[str, Callable[[], Any]] = {
    "legends": lambda: plots.trace(draws(), "x[0]") + plots.rank(draws(), "x[0]"),
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


def printed(figure: Any, size: tuple[float | None, float | None] = (None, None)) -> Any:
    drawn = hv.render(figure, backend="matplotlib")
    drawn.draw_without_rendering()
    move_apart(drawn, size)
    drawn.draw_without_rendering()
    return drawn


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.slow] * (each != "legends")) for each in BESIDE]
)
def test_nothing_lies_over_the_next_panel(name: str) -> None:
    drawn = printed(BESIDE[name]())
    try:
        assert not overlapping(drawn)
    finally:
        plt.close(drawn)


SIZED = {
    "two, 7 inches": (lambda: BESIDE["legends"](), hv.Layout, (7.0, 2.4)),
    "one with a legend": (lambda: plots.trace(draws(), "x[0]"), hv.Overlay, (3.3, 2.4)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZED)
def test_a_figure_has_the_size_that_was_asked_for(name: str, tmp_path: Path) -> None:
    make, kind, (width, height) = SIZED[name]
    asked = getattr(hv.opts, kind.__name__)(fig_inches=(width, height), backend="matplotlib")
    figure = make().opts(asked)
    drawn = printed(figure, (width, height))
    try:
        assert not overlapping(drawn)
        for axes in drawn.axes:
            across, down = axes.get_window_extent().size / drawn.dpi
            assert across > 0.5 * width / len(drawn.axes) and down > 0.35 * height
    finally:
        plt.close(drawn)
    page = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", plots.save(figure, tmp_path / "a.pdf").read_bytes())
    # Labels may change a little where axes become narrower: to a twentieth of an inch.
    np.testing.assert_allclose([float(each) / 72 for each in page.groups()], [width, height], atol=0.05)
