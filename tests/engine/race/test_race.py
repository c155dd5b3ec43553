"""Races: budget, pace, start, what befalls an entry that diverges, the calls and the command."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import numpy as np
import pytest
import torch
from families import race_of
from hypothesis import given
from hypothesis import strategies as st

import bnnviz
from bnnviz.engine.host import Host
from bnnviz.engine.race.race import Race
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue
from bnnviz.specs.race import MOST, RaceSpec
from bnnviz.specs.run import Spec
from tests.driven import finished

SAMPLERS = [item["name"] for item in catalogue.load()["samplers"]]
WILD = {"step_size": 100.0}  # far beyond where the scheme is stable
PARTS = ["status", "caption", "table", "curves", "path.0", "prediction.0", "path.1", "path.7"]


# --- the spec


@given(
    entries=st.lists(
        st.tuples(st.sampled_from(SAMPLERS), st.integers(0, 500), st.sampled_from(["eager", "compiled"])),
        min_size=2,
        max_size=MOST,
    ),
    target=st.sampled_from([item["name"] for item in catalogue.load()["targets"]]),
    chains=st.integers(1, 64),
    seed=st.integers(0, 2**31 - 1),
    budget=st.integers(1_000, 10**12),
)
def test_a_spec_is_the_same_after_a_round_trip(entries, target, chains, seed, budget):
    shared = {"target": target, "chains": chains, "seed": seed}
    specs = tuple(Spec(sampler=name, warmup=warmup, kernel=kernel, **shared) for name, warmup, kernel in entries)
    race = RaceSpec(specs, budget).checked()
    assert RaceSpec.from_json(json.dumps(race.to_json())) == race
    assert len(set(race.names())) == len(entries)
    assert all(entry.draws is None for entry in race.entries)


def entries_of(**changes: Any) -> dict[str, Any]:
    return {"target": "banana", "entries": [{"sampler": "bps"}, {"sampler": "hmc"} | changes]}


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        ("{", None, "not JSON"),
        ({"target": "banana"}, "entries", "a list of samplers"),
        ({"target": "banana", "entries": [{"sampler": "bps"}]}, "entries", "2 to 6 samplers, not 1"),
        ({"target": "banana", "entries": [{"sampler": "bps"}] * 7}, "entries", "2 to 6 samplers, not 7"),
        (entries_of() | {"version": 9}, "version", "version 9"),
        (entries_of() | {"colour": 1}, "colour", "no key 'colour'"),
        (entries_of() | {"target": "moon"}, "target", "no target 'moon'"),
        (entries_of() | {"budget": 10}, "budget", "from 1,000 to"),
        (entries_of() | {"budget": 2e6}, "budget", "whole number"),
        (entries_of() | {"chains": 0}, "chains", "from 1 to"),
        (entries_of(target="banana"), "target", "A sampler of a race has no key 'target'"),
        (entries_of(sampler="magic"), "1.sampler", "Sampler 2: There is no sampler 'magic'"),
        (entries_of(settings={"num_leapfrog_steps": 0}), "1.num_leapfrog_steps", "Sampler 2: HMC: num_leapfrog_steps"),
        (entries_of(settings={"start": "mode"}), "start", "one start"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_field(value, field, words):
    with pytest.raises(BnnvizError) as refused:
        RaceSpec.from_json(value)
    assert refused.value.field == field
    assert words in refused.value.sentence


# --- budget and pace


ALL = race_of("bps", "hmc", "sgld", "zigzag", budget=4_001)


@pytest.mark.slow
def test_no_entry_spends_more_than_its_budget_and_each_spends_all_that_whole_steps_allow():
    race = Race(ALL)
    race.prepare()
    while not race.finished:
        race.advance(0.01)
        assert all(entry.gradients <= ALL.budget for entry in race.entries)
    for entry, recorded in zip(race.entries, race.measure.recorded, strict=True):
        assert entry.gradients + entry.step_cost > ALL.budget
        assert recorded[-1].gradients == entry.gradients, "what it came to is noted"
    assert race.progress == 1.0


@pytest.mark.slow
def test_entries_advance_together():
    """Whenever somebody looks, no entry is further ahead of another than a block, or one step where that is more."""
    race = Race(race_of("bps", "hmc", "sgld", budget=8_000))
    race.prepare()
    slack = 8_000 / 500 + 2 * max(entry.step_cost for entry in race.entries)
    while any(not entry.over for entry in race.entries):
        race.advance(0.004)
        spent = [entry.gradients for entry in race.entries if not entry.over]
        if len(spent) == len(race.entries):
            assert max(spent) - min(spent) <= slack


# --- start and seed


@pytest.mark.parametrize(
    ("target", "entries", "one"),
    [
        ({"target": "banana"}, ("bps", "hmc", "boomerang"), False),
        ({"target": "network", "target_settings": {"data": "toy_c", "hidden": "3"}}, ("bps", "hmc"), False),
        ({"target": "network", "target_settings": {"data": "toy_c", "hidden": "3"}}, ("bps", "boomerang"), False),
    ],
)
def test_all_entries_set_out_from_the_same_points_bit_for_bit(tmp_path, monkeypatch, target, entries, one):
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    race = Race(race_of(*((name, {"mode_steps": 40}) for name in entries), **target))
    race.prepare()
    first = race.entries[0].state.x
    assert all(torch.equal(entry.state.x, first) for entry in race.entries)
    assert all(entry.gradients == 0 for entry in race.entries), "the search for the start is charged to nobody"
    assert torch.equal(first[0], first[1]) is one
    assert ("one mode" in race.start_sentence) is one


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["bps", "hmc", "sgld"])
def test_a_entry_makes_the_draws_that_the_run_alone_makes(sampler):
    # A run that somebody looks at warms up for 200 moves at least; what a race charges is what was asked for.
    race = finished(Race(race_of(sampler, "zigzag", warmup=200, budget=8_000)))
    entry = race.entries[0]
    alone = ViewedRun(entry.spec)
    while alone.steps < entry.steps:
        alone.step_proposal()
    assert np.array_equal(alone.draws, entry.draws)


@pytest.mark.slow
def test_draws_and_curves_are_the_same_however_it_is_driven():
    spec = race_of("bps", "hmc", "sgld")
    played, stepped = finished(Race(spec)), Race(spec)
    count = 0
    while not stepped.finished:
        stepped.step_proposal()
        count += 1
        if count % 40 == 0:
            stepped.frame(PARTS)
        if count == 200:
            saved = stepped.checkpoint()
    resumed = Race.restore(saved)
    assert 0 < resumed.steps < stepped.steps
    for other in (stepped, finished(resumed), Race.restore(stepped.checkpoint())):
        assert other.finished
        for one, two in zip(played.entries, other.entries, strict=True):
            assert np.array_equal(one.draws, two.draws)
        for one, two in zip(played.measure.recorded, other.measure.recorded, strict=True):
            assert [note.gradients for note in one] == [note.gradients for note in two]
            assert all(np.array_equal(a.moments.mean, b.moments.mean) for a, b in zip(one, two, strict=True))
        assert [row["ranks"] for row in other.table()] == [row["ranks"] for row in played.table()]


# --- divergence


@pytest.mark.slow
def test_a_entry_that_diverges_is_named_and_last_and_the_others_finish():
    race = finished(Race(race_of(("sgld", WILD), "hmc", "bps", target="gaussian")))
    rows = race.table()
    assert rows[-1]["name"] == "SGLD" and rows[-1]["diverged"] and rows[-1]["rank"] is None
    assert rows[-1]["state"] == "diverged"
    figures = ("error", "error_mean", "error_sd", "rhat", "ess", "ess_per_s", "ess_per_million")
    assert all(math.isnan(rows[-1][name]) for name in figures)
    assert [row["rank"] for row in rows[:2]] == [1, 2]
    assert all(math.isfinite(row["error"]) and row["gradients"] > 3900 for row in rows[:2])
    caption = race.frame(["caption"])["caption"]
    assert "SGLD diverged and is not ranked." in caption["warning"]
    assert "SGLD" not in caption["text"]
    curve = next(curve for curve in race.measure.curves() if curve["name"] == "SGLD")
    assert curve["diverged"] == race.entries[0].gradients


# --- the calls and the command


def test_race_returns_table_curves_and_a_figure(tmp_path):
    race = bnnviz.race(
        "gaussian", ["bps", ("hmc", {"num_leapfrog_steps": 4})], budget=5_000, chains=2, seed=1, warmup=10
    )
    assert [row["rank"] for row in race.table] == [1, 2]
    assert {row["sampler"]: row["settings"] for row in race.table} == {"bps": {}, "hmc": {"num_leapfrog_steps": 4}}
    assert all(curve["gradients"][-1] <= 5000 for curve in race.curves)
    assert "HMC" in race._repr_html_() and race.statement in repr(race)
    assert race.entry_draws(1).shape[0] == 2
    text = race.figure(tmp_path / "race.html").read_text()
    assert "Race on" in text and len(text) > 500_000, "the page brings its own BokehJS"
    with pytest.raises(BnnvizError, match="diverged"):
        bnnviz.race("gaussian", [("sgld", WILD), ("sghmc", WILD)], budget=5_000, chains=2)


def test_frames_at_full_speed_show_the_table_again_and_again() -> None:
    """Frames of the moving parts alone come between; they must not postpone the complete ones."""
    host = Host(Race(race_of("bps", "hmc", budget=1_000_000)), playing=True)
    complete, end = 0, time.monotonic() + 60
    while complete < 3 and time.monotonic() < end:
        host.advance(0.01)
        complete += "table" in host.frame(PARTS)
    assert complete == 3
