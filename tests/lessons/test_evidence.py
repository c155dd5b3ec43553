"""Claims of lessons: every number of a text is in its interval, in the film and with every recorded seed."""

from __future__ import annotations

import dataclasses
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from bnnviz.lessons import content, evidence, films, site
from bnnviz.lessons.content import SEEDS

LESSONS = content.load()


def test_every_recorded_value_is_in_its_interval() -> None:
    assert evidence.check(LESSONS) == []
    assert set(evidence.read()) == {name for name, _, _ in evidence.claims(LESSONS)}


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_every_claim_holds_with_all_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = shutil.copy(evidence.RECORDS, tmp_path / "records.json")
    monkeypatch.setattr(evidence, "RECORDS", Path(kept))
    evidence.record(LESSONS, SEEDS, lambda line: None)
    assert evidence.check(LESSONS) == []
    counts = {name: claim.seeds for name, _, claim in evidence.claims(LESSONS)}
    assert all(len(evidence.read()[name]["values"]) == count in (1, SEEDS) for name, count in counts.items())


@pytest.mark.parametrize("name", LESSONS)
def test_films_are_rendered_and_show_what_the_text_states(name: str) -> None:
    lesson = LESSONS[name]
    assert films.outdated(lesson) == []
    for step in lesson.steps:
        frames = films.take(lesson, step.film, step.place).frames
        for claim in step.claims:
            value = frames[site.opening_frame(lesson, step)]["measured"][claim.quantity]
            assert claim.interval[0] <= value <= claim.interval[1], (step.title, claim.name, value)


def test_a_broken_claim_is_reported() -> None:
    lesson = next(each for each in LESSONS.values() if any(step.claims for step in each.steps))
    number = next(i for i, step in enumerate(lesson.steps) if step.claims)
    step = lesson.steps[number]
    wrong = dataclasses.replace(step.claims[0], interval=(1e6, 2e6))
    other = dataclasses.replace(step.claims[0], quantity="steps")
    for claim in (wrong, other):
        steps = list(lesson.steps)
        steps[number] = dataclasses.replace(step, claims=(claim,))
        broken = dataclasses.replace(lesson, steps=tuple(steps))
        assert evidence.check({lesson.name: broken})


def test_one_claim_is_measured_again() -> None:
    name, step, claim = next(each for each in evidence.claims(LESSONS) if each[2].seeds == 1)
    value = evidence.sample(step, [claim.quantity], step.film.spec.seed)[0]
    assert value == pytest.approx(evidence.read()[name]["values"][0], rel=1e-3)


def test_kept_arrays_are_exact_to_a_part_in_four_thousand() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.standard_normal(1000) * 10.0 ** rng.integers(-8, 8, 1000), [0.0, np.nan, np.inf]])
    kept = films._small({"x": values})["x"]
    finite = np.isfinite(values)
    assert np.allclose(kept[finite], values[finite], rtol=1 / 4000, atol=0)
    assert math.isnan(kept[-2]) and math.isinf(kept[-1])
