"""Every sampler against known answers, and the same checks against samplers broken on purpose.

Chains start from exact draws wherever the target has them: a right kernel leaves the law as it is
from the first moment on, so that short runs of many chains are a sharp test and need no warm-up.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnnviz import samplers, targets
from bnnviz.samplers import thinning
from tests.truth.chains import LEVEL, compare, compare_moments, run_chains

CHAINS = 512

# One row for each sampler and setting that is meant to be right.
RIGHT = [
    ("bps", {"spacing": 0.5}),
    ("bps", {"spacing": 0.5, "refresh_rate": 0.1}),
    ("bps", {"spacing": 2.0, "velocity_sd": 0.3}),
    ("boomerang", {"spacing": 0.5}),
    ("boomerang", {"spacing": 0.5, "gamma": 0.5, "refresh_rate": 0.2}),
]
TARGETS = [
    ("gaussian", {}),
    ("gaussian", {"size": 5, "correlation": 0.8, "spread": 3.0}),
    ("gaussian", {"size": 1}),
    # A Boomerang meets rates of thousands in the tails of a strongly bent one.
    ("banana", {"bend": 0.5}),
    ("double_well", {"reading": "figure"}),
    ("gaussian_mixture", {"components": 2, "radius": 1.5}),
    ("gaussian_mixture", {"components": 5}),
    ("funnel", {"size": 3, "spread": 1.0}),
]
MODES = {"banana": np.array([0.0, -0.5]), "double_well": np.array([1.0])}


def make(sampler: str, settings: dict) -> samplers.Sampler:
    return samplers.REGISTRY.get(sampler)(**settings)


def verdict_on(target: targets.Target, sampler: samplers.Sampler, draws: int = 40, seed: int = 0):
    x0 = target.exact_draws(CHAINS, seed=seed + 1)
    # Off the mode on purpose: a Boomerang centred at a Gaussian's mean would never bounce.
    mode = MODES.get(target.registered, target.mean()) + 0.2 * np.sqrt(np.diag(target.cov()))
    return compare(run_chains(target, sampler, x0, draws, seed, mode), target.exact_draws(400_000, seed=99))


@pytest.mark.parametrize(("target", "target_settings"), TARGETS)
@pytest.mark.parametrize(("sampler", "settings"), RIGHT)
def test_right_sampler_keeps_the_target(sampler, settings, target, target_settings):
    verdict = verdict_on(targets.REGISTRY.get(target)(**target_settings), make(sampler, settings))
    assert verdict.p > LEVEL, verdict


def test_every_registered_sampler_is_in_the_table():
    assert {name for name, _ in RIGHT} == set(samplers.REGISTRY.names())


@pytest.mark.parametrize(("sampler", "settings"), [("bps", {}), ("boomerang", {}), ("boomerang", {"gamma": 2.0})])
def test_logistic_regression_by_quadrature(sampler, settings):
    target = targets.LogisticRegression()
    rng = np.random.default_rng(1)
    x0 = rng.multivariate_normal(target.mean(), target.cov(), size=CHAINS)
    draws = run_chains(target, make(sampler, {"spacing": 0.7, **settings}), x0, 60, mode=target.mean())
    verdict = compare_moments(draws[:, 30:], target.mean(), target.cov())
    assert verdict.p > LEVEL, verdict


@pytest.mark.parametrize("sampler", ["bps", "boomerang"])
def test_without_data_the_posterior_is_the_prior(sampler):
    target = targets.Network(hidden="2", prior_sd=0.7, points=[])
    x0, truth = (0.7 * np.random.default_rng(seed).standard_normal((n, 7)) for seed, n in ((1, CHAINS), (2, 400_000)))
    draws = run_chains(target, make(sampler, {"spacing": 0.5}), x0, 40, mode=np.full(7, 0.2))
    assert compare(draws, truth).p > LEVEL


@pytest.mark.parametrize(("sampler", "settings"), [("bps", {}), ("boomerang", {"refresh_rate": 0.5})])
def test_far_start_is_forgotten(sampler, settings):
    target = targets.Gaussian(size=4, correlation=0.0)
    x0 = np.tile([2.0, 0.0, 0.0, 0.0], (CHAINS, 1))
    draws = run_chains(target, make(sampler, {"spacing": 1.0, **settings}), x0, 60, mode=np.full(4, 0.3))
    assert compare_moments(draws[:, 30:], target.mean(), target.cov()).p > LEVEL


def test_single_precision_is_enough():
    target = targets.Banana()
    draws = run_chains(
        target, make("bps", {"spacing": 0.5}), target.exact_draws(CHAINS, seed=1), 40, dtype=torch.float32
    )
    assert compare(draws, target.exact_draws(400_000, seed=99)).p > LEVEL


# Broken on purpose: each of these must be caught.


def half_reflection(self, x, v, g):
    along = (g * v).sum(-1, keepdim=True) / (g * g).sum(-1, keepdim=True)
    return v - along * g


def flipped_rate(self, x, v, g):
    return -(v * g).sum(-1)


def unscaled_boomerang_reflection(self, x, v, g):
    return samplers.BPS.reflect(self, x, v, self._energy_gradient(x, g))


def paper_reflection_of_the_wrong_gradient(self, x, v, g):
    scaled = g / self.precision
    return v - 2 * (g * v).sum(-1, keepdim=True) / (g * scaled).sum(-1, keepdim=True) * scaled


@pytest.mark.parametrize(
    ("sampler", "method", "wrong", "target"),
    [
        ("bps", "reflect", half_reflection, targets.Gaussian()),
        ("bps", "rate", flipped_rate, targets.Gaussian()),
        ("boomerang", "reflect", unscaled_boomerang_reflection, targets.Gaussian(spread=5.0)),
        ("boomerang", "reflect", paper_reflection_of_the_wrong_gradient, targets.Gaussian()),
    ],
)
def test_a_broken_sampler_is_caught(monkeypatch, sampler, method, wrong, target):
    monkeypatch.setattr(samplers.REGISTRY.get(sampler), method, wrong)
    assert verdict_on(target, make(sampler, {"spacing": 0.5})).p < LEVEL


def test_a_halved_envelope_is_caught(monkeypatch):
    whole = thinning.Grid._bound
    monkeypatch.setattr(thinning.Grid, "_bound", lambda self, *a: 0.5 * whole(self, *a))
    monkeypatch.setattr(thinning.Grid, "redraws", False)
    assert verdict_on(targets.Gaussian(), make("bps", {"spacing": 0.5})).p < LEVEL


def test_missing_refreshment_on_an_isotropic_gaussian_is_caught():
    target = targets.Gaussian(size=2, correlation=0.0)
    x0 = np.tile([2.0, 0.0], (CHAINS, 1))
    sampler = make("bps", {"spacing": 1.0, "refresh_rate": 0.0})
    draws = run_chains(target, sampler, x0, 60)
    assert compare_moments(draws[:, 30:], target.mean(), target.cov()).p < LEVEL


def test_a_dropped_prior_is_caught(monkeypatch):
    target = targets.LogisticRegression(prior_sd=0.7)
    x0 = np.random.default_rng(1).multivariate_normal(target.mean(), target.cov(), size=CHAINS)
    mean, cov = target.mean(), target.cov()
    target.prior_precision = 0.0
    draws = run_chains(target, make("bps", {"spacing": 0.7}), x0, 60)
    assert compare_moments(draws[:, 30:], mean, cov).p < LEVEL


# Biases of the papers, which must be there and be as large as stated.


def test_draws_at_events_are_as_wide_as_stated():
    """SCIENCE, section 1: BPS on N(0, 1) with refresh rate 0.1 gives sd 1.327 at event times."""
    target = targets.Gaussian(size=1)
    sampler = make("bps", {"samples": "events", "refresh_rate": 0.1})
    draws = run_chains(target, sampler, target.exact_draws(CHAINS, seed=1), 200)
    sd = draws[:, 50:].std(axis=1)
    assert draws[:, 50:].std() == pytest.approx(1.327, abs=4 * sd.std() / np.sqrt(CHAINS) + 0.002)


@pytest.mark.parametrize("clip", [True, False])
def test_the_papers_envelope_widens_the_banana(clip):
    target = targets.Banana()
    settings = {"bound": "interpolated", "alpha": 1.0, "horizon": 1000.0, "clip_points": clip, "spacing": 0.5}
    draws = run_chains(target, make("bps", settings), target.exact_draws(CHAINS, seed=1), 200)
    ratio = draws[:, 100:].var(axis=(0, 1)) / np.diag(target.cov())
    assert ratio.max() > (3.0 if clip else 1.3), ratio
