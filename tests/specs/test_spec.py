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
    ("value", "field"),
    [
        ("{", None),
        ("[]", None),
        ({"version": 9}, "version"),
        ({"colour": 1}, "colour"),
        ({"target": "moon"}, "target"),
        ({"target": 3}, "target"),
        ({"sampler": "magic"}, "sampler"),
        ({"settings": [1]}, "settings"),
        ({"settings": {"speed": 1}}, "speed"),
        ({"settings": {"refresh_rate": -1}}, "refresh_rate"),
        ({"settings": {"refresh_rate": float("nan")}}, "refresh_rate"),
        ({"settings": {"bound": "loose"}}, "bound"),
        ({"settings": {"clip_points": 1}}, "clip_points"),
        ({"target_settings": {"size": 2.5}}, "size"),
        ({"target_settings": {"mean_list": 5}}, "mean_list"),
        ({"target_settings": {"mean_list": "1" * 300}}, "mean_list"),
        ({"chains": 0}, "chains"),
        ({"chains": "four"}, "chains"),
        ({"seed": -1}, "seed"),
        ({"dtype": "float16"}, "dtype"),
        *((drawn(points), "points") for points in ("many", [1, 2], [[0, 1], "ab"], [[0, 1, 1, 1]], [[0, 1]] * 201)),
        *((drawn([[0, y]]), "points") for y in ("1", float("nan"), 1e9, 10**400)),
        (drawn([[0, 1], [0, 1, 1]]), "points"),
    ],
)
def test_what_does_not_fit_gets_one_sentence(value, field):
    with pytest.raises(BnnvizError) as caught:
        Spec.from_json(value)
    assert "\n" not in caught.value.sentence
    assert field is None or caught.value.field == field


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
