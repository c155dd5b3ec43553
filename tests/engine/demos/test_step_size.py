"""The grid as a live run: its spec, its links, what it says, and that it goes on from a checkpoint."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bnnviz import diagnostics, views
from bnnviz.engine.demos.step_size import StepSizeDemo, _falls
from bnnviz.engine.demos.step_size_grid import _BLOCK, _with_a_step_size
from bnnviz.errors import BnnvizError
from bnnviz.specs import demo
from bnnviz.specs.demo import TARGETS, StepSizeSpec, with_a_step_size

PARTS = ["status", "caption", "table", "errors", "cell"]
SMALL = {"sizes": 4, "chains": 32}


def begun(**values: object) -> StepSizeDemo:
    scope = StepSizeDemo(StepSizeSpec(SMALL | values))
    scope.step_event()
    return scope


def test_the_choice_is_of_the_samplers_that_have_lenses() -> None:
    assert set(with_a_step_size()) == {cls.registered for cls in _with_a_step_size()}


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_is_looked_at(target: str) -> None:
    scope = begun(target=target, place=4)
    scene, frame = scope.scene(), scope.frame(PARTS)
    assert scope.steps >= 8 and scope.gradients > 0 and not scope.finished
    classes = views.views_for(scene)
    assert {view.name for view in classes} == {"errors", "cell"}
    cell = frame["cell"]
    counts = not (cell["wait"] or cell["tuned"] or cell["diverged"])
    assert ("is not known" in frame["caption"]["warning"]) == (counts and cell["guessed"])
    assert len(frame["table"]["rows"]) >= 1 + len(scene["samplers"])
    for view in [cls(scene, dark=True) for cls in classes]:
        view.update(frame)
        assert view.legend_html() and view.description
    assert scene["density"]["label"] == ("x2" if target == "narrow" else "x1")


def test_another_density_is_chosen_while_it_works() -> None:
    scope = begun()
    for name in with_a_step_size():
        scope.change({"sampler": name})
        scope.change({"place": 4})
        seen = scope.frame(["cell", "caption"])
        assert seen["cell"]["name"] == name
        assert seen["caption"]["text"].startswith(seen["cell"]["title"])
        known = next(found["known"] for found in scope.scene()["samplers"] if found["name"] == name)
        assert ("limit of stability" in seen["caption"]["warning"]) == (known is not None)
        scope.change({"place": 1})
        said = scope.frame(["caption"])["caption"]["text"]
        assert "moves to go" in said or "still tuned" in said
    assert len(scope.changes) == 3 * len(with_a_step_size())
    for changed in ({"seed": 1}, {"place": 5}):
        with pytest.raises(BnnvizError) as caught:
            scope.change(changed)
        assert caught.value.field == next(iter(changed))


def test_what_diverges_is_named() -> None:
    scope = begun(place=4)
    while scope.frame(["cell"])["cell"]["wait"]:
        scope.step_proposal()
    lost = scope.grid.cells[scope.spec.settings["sampler"]][3]
    lost.state = lost.state._replace(alive=lost.state.alive & False)
    cell = scope.frame(["cell"])["cell"]
    assert cell["diverged"]
    caption = scope.frame(["caption"])["caption"]
    assert "have diverged" in caption["text"]
    assert f"{cell['title']} at {cell['size']:.3g}" in caption["warning"]


def test_a_sampler_that_is_tuned_for_long_does_not_keep_the_others_from_being_seen() -> None:
    grid = StepSizeDemo(StepSizeSpec({"chains": 64})).grid
    quick = [cell for name in ("sgld", "sghmc") for cell in grid.cells[name]]
    while not all(cell.counted for cell in quick):
        grid._next()
    # Each of these has made so many moves, its tuning included; none of the others three times as many.
    longest = max(cell.tuned + cell.wait for cell in quick)
    assert max(cell.tuned + cell.moves for cell in grid._everyone) <= 3 * longest
    assert not any(cell.counted for cell in grid.cells["sgfuncrld"])
    rounds = grid._turn / len(grid._everyone)
    assert rounds < longest / _BLOCK / 3


def test_a_slope_in_words() -> None:
    for value, words in (
        (1.05, "in proportion"),
        (2.0, "its square"),
        (0.0, "does not fall"),
        (0.5, "more slowly"),
        (1.5, "a power"),
    ):
        assert words in _falls(diagnostics.LogSlope(value, 0.02))
    for unclear in (None, diagnostics.LogSlope(1.0, 0.5)):
        assert "not clear enough" in _falls(unclear)


def test_it_goes_on_from_a_checkpoint_with_the_same_draws() -> None:
    scope = begun(target="narrow")
    again = StepSizeDemo.restore(scope.checkpoint())
    assert again.spec == scope.spec and again.steps == scope.steps
    for each in (scope, again):
        for _ in range(3):
            each.step_proposal()
    assert str(again.figures()) == str(scope.figures())
    assert again.frame(["errors"])["errors"]["reference"] is not None or scope.grid._reference_error() is None
    with pytest.raises(BnnvizError):
        StepSizeDemo.restore(b"nothing")


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"target": "none"}, "target"),
        ({"sizes": 3}, "sizes"),
        ({"sizes": 5, "place": 6}, "place"),
        ({"pace": 3}, "pace"),
    ],
)
def test_bad_values_are_refused_by_name(values: dict, field: str) -> None:
    with pytest.raises(BnnvizError) as caught:
        StepSizeSpec(values).checked()
    assert caught.value.field == field


def values() -> st.SearchStrategy:
    def of(setting: dict) -> st.SearchStrategy:
        return st.sampled_from(setting["choices"]) if setting["choices"] else st.integers(*setting["bounds"])

    free = {setting["name"]: of(setting) for setting in StepSizeSpec.described() if setting["name"] != "place"}
    # Each sampler has at least four step sizes.
    return st.fixed_dictionaries({}, optional={**free, "place": st.integers(1, 4)})


@settings(max_examples=40)
@given(values())
def test_links_and_json_carry_everything(chosen: dict) -> None:
    spec = StepSizeSpec(chosen).checked()
    assert StepSizeSpec.from_json(json.dumps(spec.to_json())) == spec
    assert StepSizeSpec().read_query(spec.to_query()) == (spec, [])


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from([*SMALL, "place", "sampler"]) | st.text(max_size=8), st.text(max_size=30)))
def test_reading_a_link_never_fails(query: dict) -> None:
    spec, sentences = StepSizeSpec().read_query(query)
    assert spec == spec.checked()
    assert all(sentences)


def test_the_script_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SECONDS", 0.05)
    spec = StepSizeSpec({**SMALL, "target": "narrow"}).checked()
    scope: dict = {}
    exec(spec.as_python(), scope)
    assert scope["step_size"].spec == spec
