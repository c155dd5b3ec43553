"""Scenes: what the files hold is runnable, and what their captions say is true."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bnnviz
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from bnnviz_app.components.guidance import scenes

NAMES = sorted(path.stem for path in scenes.FOLDER.glob("*.json"))
PARTS = {"caption", "path", "envelope", "prediction", "trace", "acf", "table", "transport"}
HIDDEN = PARTS | {"status"}


@pytest.mark.parametrize("name", NAMES)
def test_every_step_can_be_shown(name: str) -> None:
    scene = scenes.load()[name]
    assert len(scene.steps) >= 2
    for step in scene.steps:
        assert step.spec == step.spec.checked()
        assert step.focus <= PARTS
        assert step.hide <= HIDDEN
        assert not step.focus & step.hide
        # A reload shows it again: the spec is within what a link may hold.
        assert Spec(draws=None).read_query(step.spec.to_query()) == (step.spec, [])
        for kind, value in step.actions:
            assert kind in scenes.ACTIONS
            if kind == "change":
                step.spec.replace(settings={**step.spec.settings, **value}).checked()
        if step.ask is not None:
            assert 0 <= step.ask.answer < len(step.ask.choices) <= 4


def test_a_step_is_shown_from_its_runs_beginning() -> None:
    value = {
        "title": "t",
        "summary": "s.",
        "spec": {"target": "banana", "settings": {"refresh_rate": 2.0}},
        "steps": [
            {"text": "1.", "do": ["proposal"]},
            {"text": "2.", "do": [{"event": 2}, {"change": {"alpha": 2.0}}]},
            {"text": "3.", "spec": {"sampler": "boomerang"}, "do": ["play"]},
        ],
    }
    scene = scenes.read("x", value)
    first, actions = scene.beginning(1)
    assert (first.settings["refresh_rate"], first.settings["alpha"]) == (2.0, 1.2)
    assert actions == [("proposal", 1), ("event", 2), ("change", {"alpha": 2.0})]
    assert scene.running(1).settings["alpha"] == 2.0
    spec, actions = scene.beginning(2)
    # Another sampler begins with its own defaults.
    assert (spec.target, spec.sampler, spec.settings["refresh_rate"]) == ("banana", "boomerang", 1.0)
    assert actions == [("play", 1)]
    assert scene.beginning(2, asking=True) == scene.beginning(1)


# --- what the captions say


def captions(spec: Spec, count: int) -> list[str]:
    """Return what the strip says after each of the first evaluations."""
    run = ViewedRun(spec)
    run.prepare()
    statement = []
    for _ in range(count):
        run.step_proposal()
        statement.append(run.frame(["caption"])["caption"]["text"])
    return statement


def test_the_event_scene_shows_what_it_says() -> None:
    scene = scenes.load()["event"]
    statement = captions(scene.steps[0].spec, 6)
    assert "starts" in statement[0]
    assert "look-ahead" in statement[1].lower()
    assert "rejected: its uniform draw 0.68 exceeds rate / envelope = 0.50" in statement[2]
    assert "bounce" in statement[3] and "2nd proposal was accepted" in statement[3]
    assert "a refreshment" in statement[5]
    assert [sum(n for kind, n in step.actions if kind == "proposal") for step in scene.steps[:5]] == [1, 1, 1, 1, 2]


def test_the_violation_scene_shows_what_it_says() -> None:
    statement = captions(scenes.load()["violation"].steps[0].spec, 4)
    assert "1st proposal was rejected" in statement[2]
    assert "3.23" in statement[3] and "2.29" in statement[3]
    assert "violated the envelope" in statement[3]


def test_without_refreshment_the_distance_is_kept() -> None:
    run = ViewedRun(scenes.load()["orbit"].steps[0].spec)
    run.prepare()
    distances = []
    for _ in range(400):
        run.step_proposal()
        x, v = run.state.x[0], run.state.v[0]
        distances.append(float((x[0] * v[1] - x[1] * v[0]).abs() / v.norm()))
    assert np.allclose(distances, distances[0], rtol=1e-6)
    assert f"{distances[0]:.2f}" == "2.02"
    assert f"{(1 + distances[0] ** 2) / 2:.2f}" == "2.54"


def test_the_watched_chain_that_loses_its_clock_has_a_hole() -> None:
    run = ViewedRun(scenes.load()["break-refresh"].steps[1].spec)
    run.prepare()
    run.step_proposal()
    x, v = run.state.x[0], run.state.v[0]
    assert float((x[0] * v[1] - x[1] * v[0]).abs() / v.norm()) > 1


def sampled(spec: Spec, draws: int, chains: int = 64) -> np.ndarray:
    """Return the variances of a scene's spec over the true ones."""
    run = bnnviz.sample(spec.replace(draws=draws, chains=chains, warmup=100))
    cov = run._run.target.cov()
    return run.draws.reshape(-1, run.draws.shape[2]).var(0) / np.diag(cov)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_bounds_bias_as_the_scenes_say() -> None:
    violation, horizon = (scenes.load()[name].steps for name in ("violation", "horizon"))
    wide = sampled(violation[2].spec, 600)
    assert 1.7 < wide[0] < 2.5, "about two"
    assert 2.3 < wide[1] < 4.5, "and three times"
    # The error of 64 chains' variances is about a tenth itself.
    assert (abs(sampled(violation[3].spec, 800, 256) - 1) < 0.1).all(), "within a tenth"
    assert (abs(sampled(violation[4].spec, 800, 256) - 1) < 0.06).all(), "the grid bound is right"
    assert (sampled(horizon[1].spec, 600) > 1.5).all(), "alpha 2 repairs little"
    shares = [bnnviz.sample(horizon[i].spec.replace(draws=500, warmup=50)).summary() for i in (0, 1, 2)]
    assert [share["violation_share"] for share in shares] == pytest.approx([0.43, 0.07, 0.63], abs=0.05)
    assert [share["acceptance"] for share in shares[:2]] == pytest.approx([0.75, 0.5], abs=0.05)
    same = ("alpha", "horizon", "bound", "t_init", "refresh_rate")
    assert all(horizon[2].spec.settings[name] == violation[3].spec.settings[name] for name in same)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_draws_at_events_are_as_wide_as_the_scenes_say() -> None:
    events = scenes.load()["events-or-path"].steps
    rate, mean, cube = 1 / math.sqrt(2 * math.pi), math.sqrt(2 / math.pi), 2 * math.sqrt(2 / math.pi)
    rare, often = ((r + rate * cube) / (r + rate * mean) for r in (0.1, 5.0))
    assert (f"{rare:.2f}", f"{math.sqrt(rare):.2f}", f"{often:.2f}") == ("1.76", "1.33", "1.06")
    assert sampled(events[0].spec, 2000)[0] == pytest.approx(rare, abs=0.03)
    assert sampled(events[1].spec, 2000)[0] == pytest.approx(1, abs=0.03)
    assert sampled(events[2].spec, 4000)[0] == pytest.approx(often, abs=0.05)
    assert events[0].spec.target_settings == scenes.load()["break-events"].steps[1].spec.target_settings
    # Refreshed rarely, a chain keeps its distance from the centre for long: it takes many chains to tell.
    run = bnnviz.sample(scenes.load()["break-events"].steps[2].spec.replace(draws=400, chains=256, warmup=100))
    each = (run.draws**2).mean(axis=(1, 2))
    error = each.std() / math.sqrt(len(each))
    assert error < 0.015
    assert abs(each.mean() - (1 + 1 / 150)) < 4 * error


def test_a_name_that_is_wrong_is_found() -> None:
    value = {"title": "t", "summary": "s.", "spec": {"target": "moon"}, "steps": [{"text": "1."}]}
    with pytest.raises(BnnvizError, match="no target 'moon'"):
        scenes.read("x", value)
