"""Every live figure: what it sends, that it leaves alone what did not change, and how it moves its axes."""

from __future__ import annotations

import numpy as np
import pytest
from bokeh.events import RangesUpdate, Reset
from example_frames import KINDS as EXAMPLES
from example_frames import example_frame, example_scene

from bnnviz.figures.base import Figure
from bnnviz.figures.listing import BY_NAME, figures_for
from bnnviz.figures.live.view import View
from bnnviz.figures.marks import Mark

#: Each figure with the first run that shows it, and that of predictions with each kind of data.
PAIRS = list(
    {
        figure.name: (kind, type(figure)) for kind in reversed(EXAMPLES) for figure in figures_for(example_scene(kind))
    }.values()
) + [(kind, BY_NAME["prediction"]) for kind in EXAMPLES[2:]]


def view_of(kind: str, figure: type[Figure], dark: bool = False) -> View:
    return View(figure(), example_scene(kind), dark)


def mark_of(view: View, label: str) -> Mark:
    """Return the mark of a label."""
    return next(mark for mark in view.drawing.marks if mark.label == label)


def packed(view: View) -> list[np.ndarray]:
    return [sheet.packed for sheet in view.canvas.sheets]


def ranges(view: View) -> list[float]:
    return [end for each in (view.root.x_range, view.root.y_range) for end in (each.start, each.end)]


@pytest.mark.parametrize(("kind", "figure"), PAIRS)
def test_an_unchanged_part_is_not_sent_again(kind: str, figure: type[Figure]) -> None:
    scene = example_scene(kind)
    view = View(figure(), scene)
    assert view.update(example_frame(scene, 5)) is True
    held = packed(view)
    assert view.update(example_frame(scene, 5)) is False
    assert all(now is before for now, before in zip(packed(view), held, strict=True))


@pytest.mark.parametrize(("kind", "figure"), PAIRS)
def test_a_reset_forgets_the_run_before(kind: str, figure: type[Figure]) -> None:
    scene = example_scene(kind)
    view = View(figure(), scene)
    view.update(example_frame(scene, 5))
    view.reset(scene)
    fresh = View(figure(), scene)
    assert view.note == fresh.note
    for now, expected in zip(packed(view), packed(fresh), strict=True):
        np.testing.assert_array_equal(now, expected)
    assert ranges(view) == ranges(fresh)


@pytest.mark.parametrize(("kind", "figure"), PAIRS)
def test_the_theme_changes_every_colour_in_place(kind: str, figure: type[Figure]) -> None:
    frame = example_frame(example_scene(kind), 5)
    view, dark = view_of(kind, figure), view_of(kind, figure, dark=True)
    for each in (view, dark):
        each.update(frame)
    models = {model.id for model in view.root.references()}
    view.theme(True)
    assert _colours(view) == _colours(dark)
    assert view.legend_html() == dark.legend_html()
    assert {model.id for model in view.root.references()} == models


def _colours(view: View) -> list:
    marks = [[tag.get(name) for name in ("colour", "fill", "ramp", "colours")] for tag in view.canvas.model.tags]
    return [*marks, *(axis.axis_label_text_color for axis in view.root.axis)]


@pytest.mark.parametrize(("kind", "figure"), PAIRS)
def test_numbers_that_are_missing_draw_nothing_and_move_no_axis(kind: str, figure: type[Figure]) -> None:
    scene = example_scene(kind)
    view = View(figure(), scene)
    view.update(example_frame(scene, 5))
    frame = example_frame(scene, 6)
    part = frame[view.needs[0]]
    for name, held in part.items():
        if isinstance(held, np.ndarray) and held.dtype.kind == "f":
            part[name] = np.full_like(held, np.nan)
    view.update(frame)
    assert np.isfinite(ranges(view)).all()


# --- figures


def test_a_trace_has_a_colour_for_each_chain_and_marks_what_is_picked() -> None:
    scene = example_scene("banana")
    view, frame = View(BY_NAME["trace"](), scene), example_frame(scene, 20)
    view.update(frame)
    part = frame["trace"]
    for number, values in enumerate(np.atleast_2d(part["values"])):
        line = mark_of(view, f"chain {number + 1}")
        np.testing.assert_array_equal(line.y, values)
        assert line.colour == f"chain {number}"
    view.mark({"kind": "box", "trace_index": [3.0], "trace_value": [0.5]})
    assert view.drawing.marks[-1].x == [3.0]
    view.mark({"kind": "none"})
    assert view.drawing.marks[-1].empty


def test_a_trace_scrolls_where_old_draws_leave() -> None:
    scene = example_scene("banana")
    view, frame = View(BY_NAME["trace"](), scene), example_frame(scene, 20)
    view.update(frame)
    frame["trace"] |= {"index": frame["trace"]["index"] + 10_000, "warmup": frame["trace"]["warmup"][:, :0]}
    view.update(frame)
    first, last = frame["trace"]["index"][[0, -1]]
    assert view.root.x_range.start == first and view.root.x_range.end >= last


def test_an_axis_that_does_not_follow_stays_and_catches_up() -> None:
    scene = example_scene("banana")
    view, frame = View(BY_NAME["trace"](), scene), example_frame(scene, 20)
    view.update(frame)
    statement: list[bool] = []
    view.listen(statement.append)
    view.root._trigger_event(RangesUpdate(view.root, x0=0, x1=1, y0=0, y1=1))
    before = ranges(view)
    frame["trace"]["values"] = 10 * frame["trace"]["values"]
    assert view.update(frame) and ranges(view) == before
    view.root._trigger_event(Reset(view.root))
    assert statement == [False, True] and view.root.y_range.end >= frame["trace"]["values"].max()
