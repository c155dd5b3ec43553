"""Figures that are low, as in a projector's type: numbers that do not touch, marks that are whole and hide little."""

from __future__ import annotations

import numpy as np
import pytest
from bokeh.models import BasicTicker

from bnnviz.views import BY_NAME
from bnnviz.views.base import TICK_SIZE
from bnnviz.views.demos.energy import EnergyView

LARGE = 1.4  # type in projector mode
LOW = 72  # pixels: a figure of the second row of images, on a projector of 1280x720


def intervals(ticker: BasicTicker, span: float) -> float:
    """Return how many steps of a ticker lie in a span: of all steps 1, 2 and 5 times a power of ten the likest."""
    steps = np.array([m * 10.0**k for k in range(-4, 5) for m in (1, 2, 5)])
    return span / steps[np.argmin(np.abs(span / steps - ticker.desired_num_ticks))]


@pytest.mark.parametrize("scale", [1.0, LARGE])
@pytest.mark.parametrize("height", [LOW, 110, 160])
@pytest.mark.parametrize("span", [0.7, 1.0, 1.14, 3.1, 4.0, 9.4, 12.0])
def test_numbers_do_not_touch(monkeypatch: pytest.MonkeyPatch, span: float, height: int, scale: float) -> None:
    monkeypatch.setattr(EnergyView, "frame_size", (400, height))
    view = EnergyView()
    view.magnify(scale)
    assert height / intervals(view.root.yaxis[0].ticker, span) >= scale * TICK_SIZE


def test_a_first_figure_alone_does_not_make_an_axis_of_hundred_thousandths() -> None:
    view = BY_NAME["course"]({})
    view.update(
        {"course": {"lanes": [{"name": "MAP", "seconds": [4.2], "accuracy": [0.85], "nll": [0.4], "ece": [0.1]}]}}
    )
    assert view.root.y_range.end - view.root.y_range.start >= 0.03
