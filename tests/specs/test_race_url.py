"""Races as links, scripts and commands, and the views that show them: reading never fails, writing loses nothing."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bnnviz.specs import catalogue, url
from bnnviz.specs.race import RaceSpec
from bnnviz.specs.run import Spec

SAMPLERS = [item["name"] for item in catalogue.load()["samplers"]]
TARGETS = [item["name"] for item in catalogue.load()["targets"]]
OPENING = RaceSpec((Spec(chains=8), Spec(sampler="hmc", chains=8))).checked()


@given(
    target=st.sampled_from(TARGETS),
    names=st.lists(st.sampled_from(SAMPLERS), min_size=2, max_size=6),
    chains=st.integers(1, 16),
    seed=st.integers(0, 2**31 - 1),
    warmup=st.integers(0, 500),
    budget=st.integers(1000, 10**9),
    step=st.sampled_from([None, 0.001, 0.25]),
)
def test_a_link_brings_the_same_race(target, names, chains, seed, warmup, budget, step):
    shared = {"target": target, "chains": chains, "seed": seed, "warmup": warmup}
    own = {name: {"step_size": step} if name in ("sgld", "hmc") else {} for name in names}
    race = RaceSpec(tuple(Spec(sampler=name, settings=own[name], **shared) for name in names), budget).checked()
    query = url.query_text(race.to_query())
    read, sentences = OPENING.read_query(dict(part.split("=", 1) for part in query.split("&")))
    assert (read, sentences) == (race, [])


KEYS = ["target", "entries", "budget", "chains", "device", "seed", "x", ".", "1.", "t.size", "s.bound", "²"]
KEYS += [f"{number}.{name}" for number in "0129" for name in ("leaps", "start", "warmup", "bound", "mode_steps", "x")]
TEXTS = ["", "hmc", "hmc,bps", "bps,nobody,hmc", ",,", "1e400", "nan", "-3", "2", "banana", "mode", "ü" * 50, "%00"]


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(TEXTS) | st.text(max_size=20), max_size=8))
def test_reading_never_fails(query):
    race, sentences = OPENING.read_query(query)
    assert race == race.checked()
    assert all(isinstance(sentence, str) and sentence for sentence in sentences)
    assert len(sentences) <= url.MOST_SENTENCES


def test_the_command_and_the_script_say_the_same_race(monkeypatch):
    from bnnviz.api import race as module
    from bnnviz.cli.main import main

    shared = {"target": "gaussian", "target_settings": {"size": 3}, "chains": 2, "seed": 5, "warmup": 7}
    entries = (Spec(sampler="sgld", settings={"step_size": 0.01}, **shared), Spec(sampler="hmc", **shared))
    race = RaceSpec(entries, 50_000).checked()
    asked: list[RaceSpec] = []
    monkeypatch.setattr("bnnviz.cli.race._race", lambda spec, figure, as_json: asked.append(spec) or 0)
    with pytest.raises(SystemExit):
        main(shlex.split(race.as_command())[1:])

    class Asked:
        statement, table = "", ()

        def __init__(self, race, callback):
            asked.append(race.spec)

        def listen(self, listener):
            pass

        def begin(self):
            return self

        run_to_end = begin

    monkeypatch.setattr(module, "BackgroundRace", Asked)
    exec(race.as_python(), {})
    assert asked == [race, race]
