"""Numbers that lessons say, by closed forms and by the runs that their steps show."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz import diagnostics, targets
from bnnviz.specs.run import Spec
from bnnviz_app.learn import exchange, lessons, small_posterior

LESSONS = lessons.load()


def shown(name: str, step: int) -> Spec:
    """Return what a step of a lesson runs; steps are counted from 1, as in its address."""
    spec = LESSONS[name].steps[step - 1].picture.spec
    assert isinstance(spec, Spec)
    return spec


def within(found: float, known: float, error: float) -> bool:
    """Tell whether a figure is within four standard errors of what it should be."""
    return abs(found - known) < 4 * error


@pytest.mark.parametrize("steps", [1, 2, 10])  # three of size 1 turn x into -x, and nothing is forgotten
@pytest.mark.parametrize("size", [0.1, 0.5, 1.0, 1.9])
def test_hmc_without_its_test_is_as_wide_as_the_lesson_says(size: float, steps: int) -> None:
    kick, drift = np.array([[1, 0], [-size / 2, 1]]), np.array([[1, size], [0, 1]])
    move = np.linalg.matrix_power(kick @ drift @ kick, steps)
    # x' = a x + b v with a fresh v: the variance s of x solves s = a^2 s + b^2.
    (a, b), _ = move
    assert np.isclose(b**2 / (1 - a**2), 1 / (1 - size**2 / 4))


def test_most_moves_of_hmc_are_accepted_where_a_blind_step_hardly_ever_is() -> None:
    spec = shown("random-walk", 6)
    assert (spec.settings["step_size"], spec.target_settings["size"]) == (0.5, 100)
    assert f"{2.4 / np.sqrt(100):.2f}" == "0.24"
    run = bnnviz.sample(spec.replace(draws=60))
    assert run.summary()["acceptance_rate"] > 0.7
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 100))
    risen = ((x + 0.5 * rng.normal(size=x.shape)) ** 2 - x**2).sum(1) / 2
    assert np.minimum(1, np.exp(-risen)).mean() < 0.03


def test_a_trajectory_of_hmc_ends_where_its_beginning_is_nearly_forgotten() -> None:
    spec = shown("random-walk", 3)
    assert spec.settings["num_leapfrog_steps"] == 12
    x = bnnviz.sample(spec.replace(draws=400, warmup=20)).draws[:, :, 0]
    near = [np.corrcoef(chain[:-1], chain[1:])[0, 1] for chain in x]
    assert abs(np.mean(near)) < 0.2, "neither where it began nor opposite"


def test_violations_are_noticed_where_there_are_some() -> None:
    biased, noticed = (LESSONS["bounds"].steps[step - 1].picture for step in (3, 6))
    assert (noticed.spec, noticed.from_start) == (biased.spec, biased.from_start)


def test_batches_widen_sgld_as_the_lesson_says() -> None:
    spec = shown("mini-batches", 6)
    assert (spec.settings["step_size"], spec.settings["batch_size"]) == (0.5, 1)
    for batch, known in ((1, 1.0), (None, 2 / 3)):
        run = bnnviz.sample(spec.replace(settings=spec.settings | {"batch_size": batch}, chains=128, draws=40))
        each = (run.draws**2).mean((1, 2))
        assert within(each.mean(), known, each.std() / np.sqrt(len(each)))


def test_a_clock_that_rings_twenty_times_leaves_one_event_of_41_to_bounces() -> None:
    spec = shown("refreshment", 5)
    assert spec.settings["refresh_rate"] == 20 and spec.target_settings["size"] == 2
    # The mean rate is E|x| E max(0, z) with z normal, as v has no preferred direction.
    bounces = np.sqrt(np.pi / 2) / np.sqrt(2 * np.pi)
    assert np.isclose(20 / (20 + bounces), 40 / 41)


def test_chains_agree_on_variances_that_are_too_small() -> None:
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


@pytest.mark.parametrize("seed", range(4))
def test_a_flight_uphill_meets_no_event_as_often_as_the_density_falls(seed: int) -> None:
    target, rng = targets.REGISTRY.get("banana")(), np.random.default_rng(seed)
    x, v = (torch.from_numpy(rng.normal(size=2)) for _ in range(2))
    times = torch.linspace(0, 3, 30_001, dtype=torch.float64)
    along = x + times[:, None] * v
    a = (target.gradient(along)[1] @ v).numpy()
    rising = a > 0
    ends = np.flatnonzero(np.diff(rising.astype(int)))
    first, last = (ends[0] + 1 if not rising[0] else 0), next((end for end in ends if rising[end]), len(times) - 1)
    missed = np.exp(-np.trapezoid(np.maximum(0, a[first : last + 1]), times[first : last + 1].numpy()))
    rise = target.potential(along[[first, last]])
    assert rise[1] - rise[0] > 0.1 and np.isclose(missed, np.exp(float(rise[0] - rise[1])), rtol=1e-6)
    # A bounce at x turns v into w, of which v comes by another one: what it brings has the rate of w.
    gradient = target.gradient(x[None])[1][0]
    w = v - 2 * (v @ gradient) / (gradient @ gradient) * gradient
    away, brought = max(0.0, float(v @ gradient)), max(0.0, float(w @ gradient))
    assert np.isclose(brought, max(0.0, -float(v @ gradient))) and np.isclose(away - brought, float(v @ gradient))


def test_batches_keep_the_balance_and_not_the_rate() -> None:
    spec = shown("mini-batches", 4)
    assert spec.target == "two_data" and spec.target_settings["apart"] == 1
    for theta in (-2.0, 0.3, 0.8):
        a = np.array([2 * (theta - datum) for datum in (1.0, -1.0)])  # of each datum, counted twice, for v = 1
        assert np.isclose((np.maximum(0, a) - np.maximum(0, -a)).mean(), 2 * theta)
    assert np.maximum(0, a).mean() > max(0, 2 * theta), "where data disagree, events are more"


def test_the_sure_bounds_of_the_lesson_lie_above_the_rates() -> None:
    spec, rng = shown("bounds", 7), np.random.default_rng(0)
    assert (spec.target, spec.settings["bound"]) == ("gaussian", "exact")
    x, v = rng.normal(size=(2, 200, 2))
    times = np.linspace(0, 5, 101)
    along = torch.from_numpy(x[:, None] + times[:, None] * v[:, None]).reshape(-1, 2)
    target = targets.REGISTRY.get("gaussian")(**spec.target_settings)
    rates = (target.gradient(along)[1].numpy().reshape(200, 101, 2) * v[:, None]).sum(2)
    precision = np.linalg.inv([[1, 0.84], [0.84, 1]])
    lines = (v * (x @ precision)).sum(1)[:, None] + (v * (v @ precision)).sum(1)[:, None] * times
    assert np.allclose(rates, lines)

    logistic = targets.REGISTRY.get("logistic_regression")()
    w, v = rng.normal(size=(2, 200, 3))
    along = torch.from_numpy(w[:, None] + times[:, None] * v[:, None]).reshape(-1, 3)
    rates = (logistic.gradient(along)[1].numpy().reshape(200, 101, 3) * v[:, None]).sum(2)
    slope = ((v @ logistic.design.numpy().T) ** 2).sum(1) / 4 + logistic.prior_precision * (v**2).sum(1)
    assert (rates <= rates[:, :1] + slope[:, None] * times + 1e-9).all()
    assert (rates > rates[:, :1] + slope[:, None] / 4 * times)[:, 1:].any(), "a quarter of the slope is no bound"


def test_a_sure_bound_rejects_nothing_and_is_right() -> None:
    spec = shown("bounds", 7)
    run = bnnviz.sample(spec.replace(chains=64, draws=200))
    each = (run.draws.astype(float) ** 2).mean(1)
    assert all(within(each[:, i].mean(), 1, each[:, i].std() / np.sqrt(64)) for i in range(2))


def test_an_importance_weight_is_the_density_of_the_target_by_that_of_the_proposal() -> None:
    x = 1.3 * np.random.default_rng(0).normal(size=(200_000, 2))
    weights = np.exp(-(x**2).sum(1) / 2) / (np.exp(-(x**2).sum(1) / 2 / 1.3**2) / 1.3**2)
    for values, known in ((np.ones(len(x)), 1), (x[:, 0] ** 2, 1), (x[:, 0], 0)):
        products = weights * values
        assert within(products.mean(), known, products.std() / np.sqrt(len(x)))
    assert abs(10_000 * weights.mean() ** 2 / (weights**2).mean() - 8300) < 100


@pytest.mark.slow
def test_in_one_order_chains_agree_once_there_are_more_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_posterior, "DRAWS", 10_000)
    draws = small_posterior.flat(small_posterior.draws.__wrapped__())
    ordered = diagnostics.canonical(draws, small_posterior.LAYERS, reference=small_posterior.flat(exchange.START))
    assert max(diagnostics.rhat(ordered[:, :, i]) for i in range(12)) < 1.01
    assert diagnostics.rhat(draws[:, :, 0]) > 1.05, "more draws alone would do"


@pytest.mark.slow
def test_no_figure_knows_of_a_mode_that_no_draw_has_met() -> None:
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
