"""Panels beside each other: nothing of one lies over another, in print and on a page."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import holoviews as hv
import matplotlib.pyplot as plt
import pytest

from bnnviz import plots
from tests.figures.plot_examples import draws, made_tree, part

BESIDE: dict[str, Callable[[], Any]] = {
    "legends": lambda: plots.trace(draws(), "x[0]") + plots.acf(draws(), "x[0]"),
    "two rows": lambda: (
        plots.pair(made_tree(), ["a", "b"])
        + plots.trace(made_tree(), "a")
        + plots.density(made_tree(), "a")
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
    """Return where each panel reaches, with its legend, which is beyond its bar of colours."""
    figure.draw_without_rendering()
    return [axes.get_tightbbox() for axes in figure.axes if axes.get_subplotspec() is not None]


def overlapping(figure: Any) -> list[tuple[int, int]]:
    """Return the pairs of panels that lie over each other by more than a pixel."""
    found = boxes(figure)
    return [
        (i, k)
        for (i, one), (k, other) in itertools.combinations(enumerate(found), 2)
        if min(one.x1, other.x1) - max(one.x0, other.x0) > 1 and min(one.y1, other.y1) - max(one.y0, other.y0) > 1
    ]


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.slow] * (each != "legends")) for each in BESIDE]
)
def test_nothing_lies_over_the_next_panel(name: str) -> None:
    drawn = hv.render(BESIDE[name](), backend="matplotlib")
    try:
        assert not overlapping(drawn)
    finally:
        plt.close(drawn)
