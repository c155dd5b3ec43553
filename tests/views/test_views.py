"""The live figures: what they push, that they leave alone what did not change, and how they look."""

from __future__ import annotations

import numpy as np
import pytest
from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document
from bokeh.events import RangesUpdate, Reset
from bokeh.models import ColumnDataSource
from example_frames import KINDS as EXAMPLES
from example_frames import example_frame, example_scene

from bnnviz.views import View, views_for
from bnnviz.views.base import columns
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.chain.density import DensityView
from bnnviz.views.chain.thinning import ThinningView
from bnnviz.views.chain.trajectory import TrajectoryView
from bnnviz.views.predictive.prediction import PredictionView
from bnnviz.views.predictive.spread import SpreadView

#: Each view with the first run that shows it, and the views of predictions with each kind of data.
PAIRS = list(
    {view: (kind, view) for kind in reversed(EXAMPLES) for view in views_for(example_scene(kind))}.values()
) + [(kind, PredictionView) for kind in EXAMPLES[2:]]


def sources(view: View) -> list[ColumnDataSource]:
    """Give the data sources that frames change (the contours' polygons are drawn once per plane)."""
    return [s for s in view.sources if "xs" not in s.data]


# ---- what is common to every view ------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "view"), PAIRS)
def test_frames_are_pushed_as_float32_columns_of_one_length(kind: str, view: type[View]) -> None:
    scene = example_scene(kind)
    built = view()
    built.reset(scene)
    for seq in (1, 8, 30):
        built.update(example_frame(scene, seq))
        for source in sources(built):
            assert {a.dtype for a in source.data.values()} == {np.dtype(np.float32)}
            assert len({len(a) for a in source.data.values()}) == 1
    assert any(len(next(iter(s.data.values()))) for s in sources(built))
    assert _as_json(built)


@pytest.mark.parametrize(("kind", "view"), PAIRS)
def test_an_unchanged_part_is_not_pushed_again(kind: str, view: type[View]) -> None:
    scene = example_scene(kind)
    built = view(scene)
    assert built.update(example_frame(scene, 5)) is True
    held = [source.data for source in sources(built)]
    assert built.update(example_frame(scene, 5)) is False
    assert all(source.data is data for source, data in zip(sources(built), held, strict=True))


@pytest.mark.parametrize(("kind", "view"), PAIRS)
def test_a_reset_forgets_the_run_before(kind: str, view: type[View]) -> None:
    scene = example_scene(kind)
    built = view(scene)
    built.update(example_frame(scene, 5))
    built.reset(scene)
    assert built.note == ""
    fresh = view(scene)
    for old, new in zip(sources(built), sources(fresh), strict=True):
        assert all(np.array_equal(old.data[name], new.data[name], equal_nan=True) for name in new.data)


@pytest.mark.parametrize(("kind", "view"), PAIRS)
def test_the_theme_changes_every_colour_in_place(kind: str, view: type[View]) -> None:
    scene = example_scene(kind)
    built, dark = view(scene), view(scene, dark=True)
    models = built.root.references()
    light = _colours(built)
    built.theme(True)
    assert _colours(built) == _colours(dark)
    assert built.legend_html() == dark.legend_html()
    # Axes, grids and glyphs all changed; nothing was built anew.
    assert all(before != after for before, after in zip(light, _colours(built), strict=True))
    assert {m.id for m in models} == {m.id for m in built.root.references()}
    built.theme(False)
    assert _colours(built) == light


@pytest.mark.parametrize(("kind", "view"), PAIRS)
def test_numbers_that_are_missing_draw_nothing_and_move_no_range(kind: str, view: type[View]) -> None:
    scene = example_scene(kind)
    built = view(scene)
    built.update(example_frame(scene, 5))
    frame = example_frame(scene, 6)
    part = frame[view.needs[0]]
    for name, held in part.items():
        if isinstance(held, np.ndarray) and held.dtype.kind == "f":
            part[name] = np.full_like(held, np.nan)
    built.update(frame)
    ends = [(r.start, r.end) for r in (built.root.x_range, built.root.y_range)]
    assert np.isfinite(ends).all()


# ---- looks ------------------------------------------------------------------------------------------------


# ---- each view --------------------------------------------------------------------------------------------


def test_a_range_that_does_not_follow_stays_and_catches_up() -> None:
    view = TrajectoryView(example_scene("banana"))
    view.follow = False
    before = (view.root.x_range.start, view.root.x_range.end)
    frame = example_frame(example_scene("banana"), 3)
    frame["path"]["x"] = frame["path"]["x"] * 10
    assert view.update(frame)
    assert (view.root.x_range.start, view.root.x_range.end) == before
    view.follow = True
    assert view.root.x_range.start <= frame["path"]["x"].min()
    assert view.root.x_range.end >= frame["path"]["x"].max()


def test_a_users_zoom_stops_following_and_a_reset_goes_on() -> None:
    view, said = TrajectoryView(example_scene("banana")), []
    view.listen(said.append)
    view.root._trigger_event(RangesUpdate(view.root, x0=0, x1=1, y0=0, y1=1))
    assert not view.follow
    view.root._trigger_event(Reset(view.root))
    assert view.follow and said == [False, True]


def test_the_arrow_points_where_the_chain_is_going() -> None:
    scene = example_scene("network1d")
    view = TrajectoryView(scene)
    frame = example_frame(scene, 3)
    view.update(frame)
    marks = {name: values[-1] for name, values in view.marks.data.items()}
    assert (marks["x"], marks["now"]) == pytest.approx((frame["path"]["now_x"], frame["path"]["now_y"]), rel=1e-6)
    assert (marks["dx"], marks["dy"]) == pytest.approx((frame["path"]["now_dx"], frame["path"]["now_dy"]), rel=1e-6)
    assert np.isnan(view.marks.data["dx"][:-1]).all()


def test_the_draws_of_one_coordinate_are_seen_beside_its_density() -> None:
    x = np.linspace(-3, 3, 301)
    density = {"label": "x1", "x": x, "y": np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), "curved": False}
    view = DensityView({**example_scene("banana"), "density": density})
    assert view.root.yaxis[0].axis_label == "density"
    assert np.allclose(view.known.data["y"], density["y"])
    part = {"x": np.array([-1.0, 0.0, 1.0]), "y": np.array([0.2, 0.9, 0.2]), "width": 1.0, "draws": 1300}
    part["curves"] = None
    assert view.update({"seq": 0, "density": part})
    assert view.note == "1,300 draws"
    assert 0.6 < view.root.y_range.end < 0.8, "a tower of few draws does not flatten the rest"
    assert view._bars.width == 1.0
    view.forget()
    assert view.source.data["x"].size == 0 and view.known.data["x"].size == 301


def test_functionals_are_drawn_over_the_density_but_for_those_that_were_rejected() -> None:
    x = np.linspace(-3, 3, 31)
    density = {"label": "x1", "x": x, "y": np.exp(-(x**2) / 2), "curved": True}
    view = DensityView({**example_scene("banana"), "density": density})
    assert "functionals" in view.legend_html()
    curves = {"x": x, "y": np.ones((3, 31)), "accepted": np.array([True, False, True]), "number": np.arange(3)}
    part = {"x": x, "y": x * 0, "width": 0.2, "draws": 10, "curves": curves}
    assert view.update({"seq": 0, "density": part})
    assert np.isnan(view.curves.data["y"]).sum() == 2 and len(view.newest.data["x"]) == 31


def test_the_path_is_drawn_whole_with_every_event_on_it() -> None:
    scene = example_scene("banana")
    view, frame = TrajectoryView(scene), example_frame(scene, 20)
    view.update(frame)
    part = frame["path"]
    assert np.array_equal(view.source.data["x"], part["x"].astype(np.float32))
    assert np.array_equal(view.marks.data["kind"][:-1], part["event_kind"])
    assert np.isfinite(view.marks.data["now"]).sum() == 1


def test_a_proposal_is_accepted_where_its_uniform_mark_is_under_the_rate() -> None:
    scene = example_scene("banana")
    view = ThinningView(scene)
    checked = 0
    for seq in range(60):
        view.update(example_frame(scene, seq))
        data = view.source.data
        for kind, under in ((1, False), (2, True)):
            at = data["kind"] == kind
            assert np.array_equal(data["uniform"][at] < data["rate"][at], np.full(at.sum(), under))
            checked += at.sum()
    assert checked > 15


def test_intervals_that_miss_are_marked_and_the_rmse_stands_in_the_note() -> None:
    scene = example_scene("network_many")
    view, frame = PredictionView(scene), example_frame(scene, 30)
    view.update(frame)
    part = frame["prediction"]
    missed = (part["observed"] < part["lo"]) | (part["observed"] > part["hi"])
    assert np.isfinite(view.against.data["outside"]).sum() == missed.sum()
    assert view.note.startswith(f"RMSE {part['rmse']:.2f}")
    assert view.title == "Predicted against observed"
    view.reset(example_scene("network1d"))
    assert view.title == "Prediction"


def test_a_map_has_its_boundary_where_the_chance_is_one_half() -> None:
    scene = example_scene("network2d")
    view, frame = PredictionView(scene), example_frame(scene, 30)
    view.update(frame)
    side = np.linspace(*scene["data"]["x_range"], scene["data"]["columns"])
    x, y = np.meshgrid(side, side)
    frame["prediction"]["mean"] = 1 / (1 + np.exp(-3 * (x - 0.3)).ravel())
    assert view.update(frame)
    edge = view.edges.data["x"]
    assert np.allclose(edge[np.isfinite(edge)], 0.3, atol=0.01)
    assert np.isfinite(view.edges.data["y"]).sum() > 20
    assert view._map_glyph.box == [side[0], side[-1]] * 2
    spread = SpreadView(scene)
    assert spread.update(frame) and spread.source.data["sd"].size == side.size**2


def test_rows_of_classes_are_ordered_and_the_wrong_ones_marked() -> None:
    scene = example_scene("network_classes")
    view, frame = PredictionView(scene), example_frame(scene, 30)
    view.update(frame)
    part, data = frame["prediction"], view.probabilities.data
    assert np.isfinite(data["wrong"]).sum() == (~part["right"]).sum()
    assert (np.diff(np.sort(part["mean"])[::-1]) <= 0).all() and np.nanmax(data["right"]) == data["right"][0]
    assert view.note == f"accuracy {100 * part['accuracy']:.1f} % · NLL {part['nll']:.2f}"


def test_what_is_picked_is_marked_in_every_view_and_taken_back() -> None:
    scene = example_scene("network1d")
    frame, shown = example_frame(scene, 30), {view.name: view(scene) for view in views_for(scene)}
    for view in shown.values():
        view.update(frame)
    picked = {
        "kind": "draws",
        "text": "2 of 9 draws picked",
        "path_x": np.array([1.0, 2.0]),
        "path_y": np.array([0.0, 1.0]),
        "trace_index": np.array([3.0, 4.0]),
        "trace_value": np.array([0.5, 0.6]),
        "functions": np.ones((2, len(frame["prediction"]["x"]))),
    }
    changed = {name for name, view in shown.items() if view.mark(picked)}
    assert changed == {"trajectory", "trace", "prediction"}
    assert shown["trajectory"].note == picked["text"]
    lines = shown["prediction"].picked.data["y"]
    assert np.isnan(lines).sum() == 2 and lines.size == picked["functions"].size + 2
    assert {name for name, view in shown.items() if view.mark({"kind": "none"})} == changed
    assert shown["trace"].picked.data["x"].size == 0


def test_a_sheet_travels_as_one_array() -> None:
    packed = PackedColumns(("x", "y"))
    packed.push(columns(y=[3, 4], x=[1, 2]))
    assert packed.model.tags == [["x", "y"]]
    assert np.array_equal(packed.model.data["packed"], np.array([1, 2, 3, 4], np.float32))


# ---- help -------------------------------------------------------------------------------------------------


def _as_json(view: View) -> str:
    document = Document()
    document.add_root(view.root)
    written = serialize_json(document.to_json(deferred=False))
    document.clear()
    return written


def _colours(view: View) -> list[tuple[str, str]]:
    return [getattr(model, name) for model, roles in view._paints for name in roles]
