"""Spec and catalogue: round trips, defaults, and one sentence for whatever does not fit."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from bnnviz import samplers, settings
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue
from bnnviz.specs.run import Spec


def drawn(points) -> dict:
    return {"target": "network", "target_settings": {"points": points}}


def test_the_shipped_catalogue_is_true():
    assert catalogue.generate() == catalogue.load(), "run python -m bnnviz.specs.catalogue"
    types = Path(samplers.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert catalogue.stub() == types, "run python -m bnnviz.specs.catalogue"


@pytest.mark.parametrize(
    ("sampler", "target"),
    [
        *((item["name"], "banana") for item in catalogue.load()["samplers"]),
        *(("nuts", item["name"]) for item in catalogue.load()["targets"]),
    ],
)
def test_round_trip(sampler, target):
    spec = Spec(target=target, sampler=sampler).checked()
    text = json.dumps(spec.to_json())
    assert Spec.from_json(text) == spec
    assert Spec.from_json(json.loads(text)).to_json() == spec.to_json()


@pytest.mark.parametrize(
    ("sampler", "own"),
    [
        ("bps", {"metric": "unit"}),
        ("sigma_bps", {"variant": "paper", "warmup_events": 1000}),
        ("boomerang", {"reference": "prior", "curvature": "hessian", "learn_reference": False}),
    ],
)
def test_a_preset_as_in_the_paper_sets_all_that_is_the_papers(sampler, own):
    (item,) = (item for item in catalogue.load()["samplers"] if item["name"] == sampler)
    (preset,) = (preset for preset in item["presets"] if preset["name"] == "paper")
    algorithm = {"bound": "interpolated", "alpha": 1.0, "reject_above": 2.0, "horizon": 1000.0, "clip_points": False}
    assert preset["settings"].items() >= (algorithm | {"samples": "events", "batch": "event"} | own).items()


def test_what_belongs_to_a_run_is_not_taken_for_a_setting():
    assert {field.name for field in fields(Spec)} >= settings.OF_RUNS
    with pytest.raises(BnnvizError, match="warmup is a setting of the run"):
        Spec(sampler="hmc", settings={"warmup": 5}).checked()


def test_presets_fit():
    for item in catalogue.load()["samplers"]:
        for preset in item["presets"]:
            Spec(sampler=item["name"], settings=preset["settings"]).checked()


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        ("{", None, "not JSON"),
        ("[]", None, "JSON object"),
        ({"version": 9}, "version", "version 9"),
        ({"colour": 1}, "colour", "no key 'colour'"),
        ({"target": "moon"}, "target", "no target 'moon'"),
        ({"target": 3}, "target", "must be a name"),
        ({"sampler": "magic"}, "sampler", "no sampler 'magic'"),
        ({"settings": [1]}, "settings", "JSON object of names"),
        ({"settings": {"speed": 1}}, "speed", "no setting 'speed'"),
        ({"settings": {"refresh_rate": -1}}, "refresh_rate", "from 0 to 20"),
        ({"settings": {"refresh_rate": "fast"}}, "refresh_rate", "must be a number"),
        ({"settings": {"refresh_rate": float("nan")}}, "refresh_rate", "must be a number"),
        ({"settings": {"bound": "loose"}}, "bound", "grid, interpolated"),
        ({"settings": {"clip_points": 1}}, "clip_points", "true or false"),
        ({"target_settings": {"size": 2.5}}, "size", "whole number"),
        ({"target_settings": {"size": 0}}, "size", "from 1 to 2000"),
        ({"target_settings": {"mean_list": 5}}, "mean_list", "must be a text"),
        ({"target_settings": {"mean_list": "1" * 300}}, "mean_list", "200 characters"),
        ({"chains": 0}, "chains", "from 1 to 16384"),
        (drawn("many"), "points", "must be a list of rows"),
        (drawn([1, 2]), "points", "row 1 of points must be"),
        (drawn([[0, 1], "ab"]), "points", "row 2 of points must be"),
        (drawn([[0, 1, 1, 1]]), "points", "row 1 of points must be"),
        (drawn([[0, 1], [0, 1, 1]]), "points", "some rows of points have 2 numbers and some 3"),
        (drawn([[0, "1"]]), "points", "row 1 of points has '1'"),
        (drawn([[0, float("nan")]]), "points", "row 1 of points has nan"),
        (drawn([[0, 1e9]]), "points", "numbers from -1e.06 to 1e.06"),
        (drawn([[0, 10**400]]), "points", "row 1 of points has 1000"),
        (drawn([[0, 1]] * 201), "points", "201 rows; give at most 200"),
        ({"chains": "four"}, "chains", "whole number"),
        ({"seed": -1}, "seed", "from 0"),
        ({"dtype": "float16"}, "dtype", "float32, float64"),
    ],
)
def test_what_does_not_fit_gets_one_sentence(value, field, words):
    with pytest.raises(BnnvizError, match=words) as caught:
        Spec.from_json(value)
    assert "\n" not in caught.value.sentence
    assert field is None or caught.value.field in (field, "settings")


@pytest.mark.parametrize("points", [None, [], [[0.5, -1.0]], [[0.0, 1.0, 1.0]] * 200])
def test_points_travel_as_json(points):
    spec = Spec.from_json(drawn(points))
    assert spec.target_settings["points"] == points
    assert Spec.from_json(json.dumps(spec.to_json())) == spec


def test_whole_numbers_of_points_become_numbers():
    assert Spec.from_json(drawn([[0, 1]])) == Spec.from_json(drawn([[0.0, 1.0]]))


def test_open_ended_draws():
    assert Spec.from_json({"draws": None}).draws is None
    with pytest.raises(BnnvizError):
        Spec.from_json({"warmup": None})
