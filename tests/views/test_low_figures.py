"""Figures that are low, as in a projector's type: numbers that do not touch, marks that are whole and hide little."""

from __future__ import annotations

import numpy as np
import pytest
from bokeh.models import BasicTicker
from example_frames import example_frame, example_scene

from bnnviz.views import BY_NAME, View, of_lane
from bnnviz.views.base import TICK_SIZE
from bnnviz.views.chain.trajectory import TrajectoryView
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


def test_a_figure_that_grows_has_all_its_numbers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    view = BY_NAME["acf"](example_scene("banana"))
    ticker, wanted = view.root.yaxis[0].ticker, view.root.yaxis[0].ticker.desired_num_ticks
    monkeypatch.setattr(type(view), "frame_size", (400, 30))
    view.update(example_frame(example_scene("banana"), 2))
    assert ticker.desired_num_ticks < wanted
    monkeypatch.setattr(type(view), "frame_size", (400, 300))
    view.root.trigger("inner_height", 30, 300)
    assert ticker.desired_num_ticks == wanted


@pytest.mark.parametrize("name", ["digit", "reliability", "attack"])
def test_a_mark_of_no_or_of_all_rows_is_seen_whole(name: str) -> None:
    view: View = BY_NAME[name]({})
    size = max(glyph.size for glyph in view.canvas.glyphs)
    low, high = view.root.y_range.start, view.root.y_range.end
    room = min(-low, high - 1) / (high - low) * LOW
    assert room >= size / 2


def test_the_marks_of_a_lane_are_smaller_than_those_of_a_run_alone() -> None:
    alone, lane = (kind(dark=False).canvas.glyphs for kind in (TrajectoryView, of_lane(TrajectoryView, 0, "HMC")))
    sizes = [(one.size, other.size) for one, other in zip(alone, lane, strict=True) if one.size]
    assert sizes
    assert all(small <= 2 / 3 * large for large, small in sizes)
    widths = [[glyph.width for glyph in glyphs if glyph.kind == "trail"] for glyphs in (alone, lane)]
    assert widths[1] < widths[0]


def test_a_first_figure_alone_does_not_make_an_axis_of_hundred_thousandths() -> None:
    view = BY_NAME["course"]({})
    view.update(
        {"course": {"lanes": [{"name": "MAP", "seconds": [4.2], "accuracy": [0.85], "nll": [0.4], "ece": [0.1]}]}}
    )
    assert view.root.y_range.end - view.root.y_range.start >= 0.03
