"""The spec of a sweep: what a grid and a list of specs are as runs, and what is refused before anything starts."""

from __future__ import annotations

import json
import re

import pytest

from bnnviz.errors import BnnvizError
from bnnviz.specs.sweep import LONGEST, SweepSpec

GRID = """
base: {target: banana, chains: 2, draws: 50}
grid:
  sampler: [bps, boomerang]
  sampler.refresh_rate: [1e-1, 1]
  target.bend: [0.5]
  seed: 3-5
"""


def test_a_grid_is_all_combinations_of_its_values() -> None:
    runs = SweepSpec.from_text(GRID).runs
    assert len(runs) == 12
    name = "sampler=bps-refresh_rate=0.1-bend=0.5-seed=4"
    spec = runs[name]
    assert (spec.sampler, spec.seed, spec.chains, spec.draws) == ("bps", 4, 2, 50)
    assert spec.settings["refresh_rate"] == 0.1  # YAML 1.1 takes 1e-1 for a text
    assert spec.target_settings["bend"] == 0.5


def test_settings_may_be_written_by_either_name() -> None:
    one = SweepSpec.from_text(
        "grid: {settings.refresh_rate: [2.0], target_settings.size: [3]}\nbase: {target: gaussian}"
    )
    other = SweepSpec.from_text("grid: {sampler.refresh_rate: [2.0], target.size: [3]}\nbase: {target: gaussian}")
    assert one.runs == other.runs


def test_specs_go_over_the_base_and_each_meets_the_whole_grid() -> None:
    text = """
    base: {target: gaussian, draws: 10, settings: {refresh_rate: 0.5}}
    specs:
      - {sampler: bps, name: slow}
      - {sampler: zigzag, sampler.refresh_rate: 3}
    grid: {seed: [0, 1]}
    """
    runs = SweepSpec.from_text(text).runs
    assert list(runs) == ["slow-seed=0", "slow-seed=1", "zigzag-gaussian-seed=0", "zigzag-gaussian-seed=1"]
    assert [spec.settings["refresh_rate"] for spec in runs.values()] == [0.5, 0.5, 3, 3]


def test_a_list_of_specs_as_json_is_a_sweep() -> None:
    specs = [{"target": "gaussian", "seed": seed, "draws": 10} for seed in range(3)]
    assert len(SweepSpec.from_text(json.dumps(specs)).runs) == 3


def test_names_are_safe_unique_and_those_of_a_shorter_grid_stay() -> None:
    short = SweepSpec.from_text(GRID).runs
    longer = SweepSpec.from_text(GRID.replace("3-5", "3-8").replace("[0.5]", "[0.5, 0.7]")).runs
    assert set(short) < set(longer)
    assert all(longer[name] == spec for name, spec in short.items())
    labels = [
        {"name": name, "seed": i} for i, name in enumerate(["../../etc", "a/b", "A/b", ".hidden", "x" * 300, "é"])
    ]
    names = list(SweepSpec.from_json({"base": {"draws": 10}, "specs": labels}).runs)
    assert all(re.fullmatch(r"[A-Za-z0-9_=+-][A-Za-z0-9._=+-]*", name) and len(name) <= LONGEST for name in names)
    assert len({name.casefold() for name in names}) == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("base: {target: bana}", "There is no target 'bana'"),
        ("grid: {sampler.refresh_rate: [1, -1]}", "(refresh_rate=-1): Bouncy Particle: refresh_rate = -1 is out"),
        ("grid: {sampler.friction: [1]}", "(friction=1): Bouncy Particle has no setting"),
        ("grid: {refresh_rate: [1]}", "There is no key 'refresh_rate'; write sampler.refresh_rate."),
        ("grid: {seed: 5}", "The grid's seed is a list of values"),
        ("grid: {seed: []}", "The grid's seed is a list of values"),
        ("grid: {seed: 0-10000}", "The grid's seed has 10,001 values; 10,000 is the most."),
        ("grid: {seed: 0-200, chains: 1-100}", "The sweep is 20,100 runs; 10,000 is the most"),
        ("grid: {seed: [1, 1]}", "The sweep has the run seed=1 twice"),
        ("grid: {seed: [1], seed: [2]}", "The sweep has the key 'seed' twice"),
        ("base: {draws: null}", "say how many draws to make"),
        ("base: {target: network, target.data: own}", "bnnviz sample takes a file of yours"),
        ("base: {target_settings: 3}", "The target_settings of a sweep is an object"),
        ("base: 3", "The base of a sweep is an object"),
        ("specs: []", "The specs of a sweep are a list of objects"),
        ("specs: [{name: 3}]", "The name of the sweep's spec 1 is a text"),
        ("grids: {seed: [1]}", "A sweep has no key 'grids'"),
        ("version: 2", "A sweep of version 2"),
        ("7", "A sweep is a JSON object"),
        ("a: [", "The sweep is neither YAML nor JSON"),
        ("base: !!python/object/apply:os.getcwd []", "The sweep is neither YAML nor JSON"),
        ("? [1]\n: 2", "The sweep is neither YAML nor JSON"),
        ("[" * 3_000, "The sweep is neither YAML nor JSON"),
    ],
)
def test_what_cannot_be_swept_is_said_in_a_sentence_before_anything_starts(text: str, said: str) -> None:
    with pytest.raises(BnnvizError, match=re.escape(said)) as found:
        SweepSpec.from_text(text)
    assert found.value.sentence.endswith(".")
