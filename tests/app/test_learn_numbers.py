"""Numbers that lessons say, by closed forms and by the runs that their steps show."""

from __future__ import annotations

import numpy as np
import pytest

import bnnviz
from bnnviz import diagnostics
from bnnviz.specs.run import Spec
from bnnviz_app.learn import lessons

LESSONS = lessons.load()


def shown(name: str, step: int) -> Spec:
    """Return what a step of a lesson runs; steps are counted from 1, as in its address."""
    spec = LESSONS[name].steps[step - 1].picture.spec
    assert isinstance(spec, Spec)
    return spec


def says(name: str, step: int, *parts: str) -> None:
    text = LESSONS[name].steps[step - 1].text
    assert all(part in text for part in parts), text


def within(found: float, known: float, error: float) -> bool:
    """Tell whether a figure is within four standard errors of what it should be."""
    return abs(found - known) < 4 * error


@pytest.mark.parametrize("steps", [1, 2, 10])  # three of size 1 turn x into -x, and nothing is forgotten
@pytest.mark.parametrize("size", [0.1, 0.5, 1.0, 1.9])
def test_hmc_without_its_test_is_as_wide_as_the_lesson_says(size: float, steps: int) -> None:
    says("step-size", 4, "1 / (1 − h²/4)", "16/15 at h = 0.5", "4/3 at h = 1")
    kick, drift = np.array([[1, 0], [-size / 2, 1]]), np.array([[1, size], [0, 1]])
    move = np.linalg.matrix_power(kick @ drift @ kick, steps)
    # x' = a x + b v with a fresh v: the variance s of x solves s = a^2 s + b^2.
    (a, b), _ = move
    assert np.isclose(b**2 / (1 - a**2), 1 / (1 - size**2 / 4))


def test_most_moves_of_hmc_are_accepted_where_a_blind_step_hardly_ever_is() -> None:
    says("random-walk", 6, "half the width", "most moves are accepted", "0.24 here", "hardly one")
    spec = shown("random-walk", 6)
    assert (spec.settings["step_size"], spec.target_settings["size"]) == (0.5, 100)
    assert f"{2.4 / np.sqrt(100):.2f}" == "0.24"
    run = bnnviz.sample(spec.replace(draws=60))
    assert run.summary()["acceptance_rate"] > 0.7
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 100))
    risen = ((x + 0.5 * rng.normal(size=x.shape)) ** 2 - x**2).sum(1) / 2
    assert np.minimum(1, np.exp(-risen)).mean() < 0.03


def test_batches_widen_sgld_as_the_lesson_says() -> None:
    says("mini-batches", 5, "(1 + h) / (2 − h) = 1", "1 / (2 − h), which is 0.67 here for h = 0.5")
    spec = shown("mini-batches", 5)
    assert (spec.settings["step_size"], spec.settings["batch_size"]) == (0.5, 1)
    for batch, known in ((1, 1.0), (None, 2 / 3)):
        run = bnnviz.sample(spec.replace(settings=spec.settings | {"batch_size": batch}, chains=128, draws=40))
        each = (run.draws**2).mean((1, 2))
        assert within(each.mean(), known, each.std() / np.sqrt(len(each)))


def test_a_clock_that_rings_twenty_times_leaves_one_event_of_41_to_bounces() -> None:
    says("refreshment", 5, "40 of 41 events", "twenty rings")
    spec = shown("refreshment", 5)
    assert spec.settings["refresh_rate"] == 20 and spec.target_settings["size"] == 2
    # The mean rate is E|x| E max(0, z) with z normal, as v has no preferred direction.
    bounces = np.sqrt(np.pi / 2) / np.sqrt(2 * np.pi)
    assert np.isclose(20 / (20 + bounces), 40 / 41)


def test_chains_agree_on_variances_that_are_too_small() -> None:
    says("agreement", 1, "1 − 0.84² = 0.29", "71 % too small", "R-hat is 1.00")
    says("agreement", 2, "−0.84", "about 0.3")
    spec = shown("agreement", 1)
    assert spec.target_settings["correlation"] == 0.84
    run = bnnviz.sample(spec.replace(draws=500))
    x = run.draws.astype(float)
    precision = np.linalg.inv([[1, 0.84], [0.84, 1]])
    slopes = x @ precision
    errors = np.sqrt(2 / x[..., 0].size)
    assert all(within(x[..., i].var() / (1 - 0.84**2), 1, errors) for i in range(2))
    assert max(diagnostics.rhat(x[..., i]) for i in range(2)) < 1.01
    for i, j, known in ((0, 0, 1.0), (1, 1, 1.0), (0, 1, -0.84), (1, 0, -0.84)):
        products = x[..., i] * slopes[..., j]
        assert within(products.mean(), known, products.std() / np.sqrt(products.size))
    potential = (x * slopes).sum(-1) / 2
    found = diagnostics.variance_inflation(x, potential, slopes)
    assert found is not None and 0.24 < 1 + found.share < 0.35


@pytest.mark.slow
def test_no_figure_knows_of_a_mode_that_no_draw_has_met() -> None:
    says("agreement", 4, "at a distance of 10", "is 26, not 1")
    spec = shown("agreement", 4)
    assert spec.target_settings["radius"] == 5
    run = bnnviz.sample(spec.replace(chains=16, draws=300, warmup=20))
    assert (np.sign(run.draws[..., 0]) == np.sign(run.draws[0, 0, 0])).all(), "a chain has crossed"
    summary = run.summary()
    assert summary["rhat_max"] < 1.1
    assert abs(summary["widening"]["share"]) < 4 * summary["widening"]["se"] + 0.05
    assert np.isclose(run._run.target.cov()[0, 0], 26)


@pytest.mark.slow
def test_a_narrow_reference_leaves_variances_too_small_for_long() -> None:
    for name, step in (("boomerang", 5), ("agreement", 3)):
        spec = shown(name, step)
        assert np.isclose(spec.settings["gamma"], 1 / 5**2), "five times too narrow"
    run = bnnviz.sample(spec.replace(chains=64, draws=20))
    wide = run.draws.astype(float).reshape(-1, 2).var(0)
    later = bnnviz.sample(spec.replace(chains=64, draws=80)).draws[:, 60:].astype(float).reshape(-1, 2).var(0)
    assert (wide < 0.5).all() and (later > wide).all() and (later < 1.2).all()
