"""Every sampler against known answers, and the same checks against samplers broken on purpose.

Chains start from exact draws wherever the target has them: a right kernel leaves the law as it is
from the first moment on, so that short runs of many chains are a sharp test and need no warm-up.
"""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from families import PDMPS, some_quick

from bnnviz import samplers, targets
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError
from bnnviz.samplers.pdmp import thinning
from bnnviz.samplers.pdmp.base import PDMP
from bnnviz.samplers.pdmp.bounds.grid import Grid
from bnnviz.samplers.pdmp.scaling.preconditioner import Preconditioner
from bnnviz.samplers.pdmp.scaling.reference import GaussianReference
from bnnviz.samplers.random import seeded
from bnnviz.specs.run import Spec
from tests.truth.chains import LEVEL, compare, compare_moments, run_chains
from truth.chains import begin

CHAINS = 512

UNIT, AT_THE_MODE = {"metric": "unit"}, {"learn_reference": False}
# One row for each sampler and setting that is meant to be right.
RIGHT = [
    ("bps", {"spacing": 0.5, **UNIT}),
    ("bps", {"spacing": 0.5, "refresh_rate": 0.1, **UNIT}),
    ("bps", {"spacing": 2.0, "velocity_sd": 0.3, **UNIT}),
    ("boomerang", {"spacing": 0.5, **AT_THE_MODE}),
    ("boomerang", {"spacing": 0.5, "gamma": 0.5, "refresh_rate": 0.2, **AT_THE_MODE}),
    ("boomerang", {"spacing": 0.5, "curvature": "hessian", **AT_THE_MODE}),
    ("sigma_bps", {"spacing": 0.5}),
    ("sigma_bps", {"spacing": 0.5, "refresh_rate": 0.1, "velocity_sd": 2.0}),
    ("zigzag", {"spacing": 0.5, **UNIT}),
    ("zigzag", {"spacing": 1.0, "velocity": 0.5, "refresh_rate": 0.5, **UNIT}),
    ("bps", {"spacing": 0.5, "metric": "dense"}),
    ("bps", {"spacing": 0.5, "metric": "diagonal"}),
    ("zigzag", {"spacing": 0.5, "refresh_rate": 0.1, "metric": "dense"}),
    ("zigzag", {"spacing": 0.5, "metric": "diagonal"}),
    ("boomerang", {"spacing": 0.5, "learn_reference": True}),
]
EXACT = [(name, {**settings, "bound": "exact"}) for name, settings in RIGHT]
GAUSSIANS = [{}, {"size": 5, "correlation": 0.8, "spread": 3.0}, {"size": 1}, {"mean_list": "[3, -1]"}]
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


def learned(target: targets.Target, sampler: samplers.Sampler, mode: np.ndarray):
    """Return a scaling as a warm-up finds it, about right; None of a sampler that learns none."""
    sampler.target = target
    if not sampler.rounds:
        return None
    cov = np.atleast_2d(target.cov())
    off = np.linspace(0.8, 1.3, target.dim)
    sd = torch.as_tensor(np.sqrt(np.diag(cov)) * off)
    if sampler.registered == "sigma_bps":
        return sd
    # Turned a little, so that no axis and no symmetry is kept.
    turned = torch.as_tensor(off[:, None] * np.linalg.cholesky(cov)).roll(1, dims=0)
    factor = turned if sampler.dense else None
    spread = Preconditioner(sd, factor, None if factor is None else torch.linalg.inv(factor))
    return spread if sampler.registered != "boomerang" else GaussianReference.of(torch.as_tensor(mode), spread)


def verdict_on(target: targets.Target, sampler: samplers.Sampler, draws: int = 40, seed: int = 0):
    x0 = target.exact_draws(CHAINS, seed=seed + 1)
    # Off the mode on purpose: a Boomerang centred at a Gaussian's mean would never bounce.
    sd = np.sqrt(np.diag(target.cov()))
    mode = MODES.get(target.registered, target.mean()) + 0.2 * sd
    found = run_chains(target, sampler, x0, draws, seed, mode, scaling=learned(target, sampler, mode))
    return compare(found, target.exact_draws(400_000, seed=99))


@pytest.mark.parametrize(
    ("sampler", "settings", "target", "target_settings"), some_quick(((*r, *t) for r, t in product(RIGHT, TARGETS)), 9)
)
def test_right_sampler_keeps_the_target(sampler, settings, target, target_settings):
    verdict = verdict_on(targets.REGISTRY.get(target)(**target_settings), make(sampler, settings))
    assert verdict.p > LEVEL, verdict


@pytest.mark.parametrize(
    ("sampler", "settings", "target_settings"), some_quick(((*r, t) for r, t in product(EXACT, GAUSSIANS)), 9)
)
def test_exact_event_times_keep_a_gaussian(sampler, settings, target_settings):
    verdict = verdict_on(targets.Gaussian(**target_settings), make(sampler, settings))
    assert verdict.p > LEVEL, verdict


def surplus(sampler: samplers.Sampler, target: targets.Target, steps: int = 300) -> float:
    """Return bounces minus the rate integrated along the paths, in standard errors: a martingale, whatever the law."""
    x0 = target.exact_draws(CHAINS, seed=1)
    sd = np.sqrt(np.diag(target.cov()))
    rng = seeded(5)
    mode = MODES.get(target.registered, target.mean()) + 0.2 * sd
    state, scaling = begin(target, sampler, x0, rng, mode), learned(target, sampler, mode)
    if scaling is not None:
        state = sampler.rescaled(rng, state, scaling)
    scaling = state.adaptation.scaling
    nodes, weights = (torch.as_tensor(part) for part in np.polynomial.legendre.leggauss(8))
    bounces, expected = 0, 0.0
    for _ in range(steps):
        new, info = sampler.step(rng, state)
        half = (info.s1 - info.s0) / 2
        for node, weight in zip(nodes, weights, strict=True):
            x, v = sampler.flow(state.x, state.v, info.s0 + half * (1 + node), scaling)
            rate = sampler.rate(x, v, target.gradient(x)[1], scaling).clamp_min(0)
            expected += float((weight * half * rate).sum())
        bounces += int((info.kind == thinning.BOUNCE).sum())
        state = new
    return (bounces - expected) / np.sqrt(expected)


COUNTED = [
    ("bps", UNIT),
    ("bps", {"velocity_sd": 0.3, **UNIT}),
    ("bps", {}),
    ("sigma_bps", {}),
    ("zigzag", UNIT),
    ("zigzag", {}),
    ("boomerang", {"gamma": 0.5, **AT_THE_MODE}),
    ("boomerang", {}),
]


@pytest.mark.parametrize(
    ("sampler", "settings", "target", "target_settings"),
    some_quick(((*c, *TARGETS[i]) for c, i in product(COUNTED, (1, 3, 4, 6, 7))), 4),
)
def test_events_are_as_many_as_the_rate_says(sampler, settings, target, target_settings):
    # Forty-five figures: a level of 1e-4 over all of them.
    assert abs(surplus(make(sampler, settings), targets.REGISTRY.get(target)(**target_settings))) < 4.8


def test_events_that_come_too_late_are_missed():
    paper = {"bound": "interpolated", "alpha": 1.0, "horizon": 1000.0}
    assert surplus(make("bps", paper), targets.Banana(bend=0.5)) < -10


@pytest.mark.slow
def test_the_papers_row_sums_are_a_poor_reference_and_do_no_other_harm():
    target = targets.Gaussian(size=5, correlation=0.8, spread=3.0)
    sampler = make("boomerang", {"spacing": 0.5, "curvature": "published"})
    assert verdict_on(target, sampler).p > LEVEL
    assert sampler.remarks()[0].code == "floored_precision"


def test_exact_event_times_need_a_gaussian():
    with pytest.raises(BnnvizError, match='needs a Gaussian target.*use "grid"') as caught:
        verdict_on(targets.Banana(), make("bps", {"bound": "exact"}))
    assert caught.value.field == "bound"


def test_every_registered_sampler_is_in_the_table():
    assert {name for name, _ in RIGHT} == set(PDMPS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "settings"), [("bps", {}), ("boomerang", {}), ("boomerang", {"gamma": 2.0}), ("zigzag", {})]
)
def test_logistic_regression_by_quadrature(sampler, settings):
    target = targets.LogisticRegression()
    rng = np.random.default_rng(1)
    x0 = rng.multivariate_normal(target.mean(), target.cov(), size=CHAINS)
    draws = run_chains(target, make(sampler, {"spacing": 0.7, **settings}), x0, 60, mode=target.mean())
    verdict = compare_moments(draws[:, 30:], target.mean(), target.cov())
    assert verdict.p > LEVEL, verdict


@pytest.mark.slow
@pytest.mark.parametrize("sampler", PDMPS)
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


def first_coordinate(self, rng, x, v, g, scaling):
    return torch.cat([-v[:, :1], v[:, 1:]], dim=1)


def likeliest_coordinate(self, rng, x, v, g, scaling):
    turning = (v * g).argmax(-1, keepdim=True)
    return v.scatter(1, turning, -v.gather(1, turning))


def unscaled(self, g, scaling):
    return g


def half_normal(self, rng, x, v, g, scaling):
    """A forward bounce whose part along the gradient is drawn as a refreshment's: too slow."""
    along = (g * v).sum(-1, keepdim=True) / (g * g).sum(-1, keepdim=True)
    fresh = rng.normal(g.shape[:1], g.dtype)[:, None].abs() / (g * g).sum(-1, keepdim=True).sqrt()
    return v - (along + fresh) * g


def of_the_axes(self, v, g, scaling):
    return v * g


def by_the_diagonal(self, g):
    return g / self.precision


def wholly_drawn_anew(self, rng, x, v, g, scaling):
    return self.draw_velocity(rng, v, scaling)


def half_reflection(self, rng, x, v, g, scaling):
    along = (g * v).sum(-1, keepdim=True) / (g * g).sum(-1, keepdim=True)
    return v - along * g


def flipped_rate(self, x, v, g, scaling):
    return -(v * g).sum(-1)


def unscaled_boomerang_reflection(self, rng, x, v, g, scaling):
    g = self._energy_gradient(x, g, scaling)
    return v - 2 * (g * v).sum(-1, keepdim=True) / (g * g).sum(-1, keepdim=True) * g


def paper_reflection_of_the_wrong_gradient(self, rng, x, v, g, scaling):
    scaled = g / scaling.precision
    return v - 2 * (g * v).sum(-1, keepdim=True) / (g * scaled).sum(-1, keepdim=True) * scaled


@pytest.mark.parametrize(
    ("sampler", "method", "wrong", "target"),
    [
        ("bps", "reflect", half_reflection, targets.Gaussian()),
        ("bps", "rate", flipped_rate, targets.Gaussian()),
        ("boomerang", "reflect", unscaled_boomerang_reflection, targets.Gaussian(spread=5.0)),
        ("boomerang", "reflect", paper_reflection_of_the_wrong_gradient, targets.Gaussian()),
        ("zigzag", "reflect", first_coordinate, targets.Gaussian()),
        ("zigzag", "reflect", likeliest_coordinate, targets.Gaussian(size=3)),
        ("zigzag", "rate", flipped_rate, targets.Gaussian()),
        ("sigma_bps", "scaled_gradient", unscaled, targets.Gaussian(spread=5.0)),
        ("bps", "reflect", wholly_drawn_anew, targets.Gaussian()),
        ("bps", "reflect", half_normal, targets.Gaussian()),
    ],
)
def test_a_broken_sampler_is_caught(monkeypatch, sampler, method, wrong, target):
    monkeypatch.setattr(samplers.REGISTRY.get(sampler), method, wrong)
    plain = {"bps": UNIT, "zigzag": UNIT, "boomerang": AT_THE_MODE}.get(sampler, {})
    assert verdict_on(target, make(sampler, {"spacing": 0.5, **plain})).p < LEVEL


@pytest.mark.parametrize(
    ("sampler", "settings", "owner", "method", "wrong"),
    [
        ("bps", {"metric": "dense"}, samplers.REGISTRY.get("bps"), "scaled_gradient", unscaled),
        pytest.param(
            "zigzag",
            {"metric": "dense"},
            samplers.REGISTRY.get("zigzag"),
            "_rates",
            of_the_axes,
            marks=pytest.mark.slow,
        ),
        ("boomerang", {"learn_reference": True}, GaussianReference, "spread_of", by_the_diagonal),
    ],
)
def test_a_broken_metric_is_caught(monkeypatch, sampler, settings, owner, method, wrong):
    monkeypatch.setattr(owner, method, wrong)
    target = targets.Gaussian(size=3, correlation=0.8, spread=3.0)
    assert verdict_on(target, make(sampler, {"spacing": 0.5, **settings})).p < LEVEL


def test_a_halved_envelope_is_caught(monkeypatch):
    whole = Grid._line
    monkeypatch.setattr(Grid, "_line", lambda self, *a: tuple(0.5 * part for part in whole(self, *a)))
    monkeypatch.setattr(PDMP, "_make_bound", lambda self, anchor: Grid(self.margin, self.widest_cell))
    assert verdict_on(targets.Gaussian(), make("bps", {"spacing": 0.5})).p < LEVEL


@pytest.mark.parametrize(("sampler", "part", "factor"), [("bps", 1, 0.5), ("zigzag", 0, 0.5), ("boomerang", 0, 0.2)])
def test_a_wrong_exact_line_is_caught(monkeypatch, sampler, part, factor):
    right = samplers.REGISTRY.get(sampler).gaussian_terms

    def wrong(self, *given):
        return tuple(factor * p if i == part else p for i, p in enumerate(right(self, *given)))

    monkeypatch.setattr(samplers.REGISTRY.get(sampler), "gaussian_terms", wrong)
    assert verdict_on(targets.Gaussian(), make(sampler, {"spacing": 0.5, "bound": "exact"})).p < LEVEL


def test_missing_refreshment_on_an_isotropic_gaussian_is_caught():
    target = targets.Gaussian(size=2, correlation=0.0)
    x0 = np.tile([2.0, 0.0], (CHAINS, 1))
    sampler = make("bps", {"spacing": 1.0, "refresh_rate": 0.0})
    draws = run_chains(target, sampler, x0, 60)
    assert compare_moments(draws[:, 30:], target.mean(), target.cov()).p < LEVEL


@pytest.mark.slow
def test_a_dropped_prior_is_caught(monkeypatch):
    target = targets.LogisticRegression(prior_sd=0.7)
    x0 = np.random.default_rng(1).multivariate_normal(target.mean(), target.cov(), size=CHAINS)
    mean, cov = target.mean(), target.cov()
    target.prior_precision = 0.0
    draws = run_chains(target, make("bps", {"spacing": 0.7}), x0, 60)
    assert compare_moments(draws[:, 30:], mean, cov).p < LEVEL


# Biases of the papers, which must be there and be as large as stated.


@pytest.mark.slow
def test_draws_at_events_are_as_wide_as_stated():
    """BPS on N(0, 1) with refresh rate 0.1 gives sd 1.327 at event times."""
    target = targets.Gaussian(size=1)
    sampler = make("bps", {"samples": "events", "refresh_rate": 0.1})
    draws = run_chains(target, sampler, target.exact_draws(CHAINS, seed=1), 200)
    sd = draws[:, 50:].std(axis=1)
    assert draws[:, 50:].std() == pytest.approx(1.327, abs=4 * sd.std() / np.sqrt(CHAINS) + 0.002)


def test_sigma_bps_as_printed_narrows_the_narrow_axis_as_stated():
    """sd (1, .1) gives the narrow variance .0021 instead of .0100."""
    target = targets.Gaussian(cov_list="[[1, 0], [0, 0.01]]")
    sampler = make("sigma_bps", {"variant": "paper", "spacing": 0.5})
    x0 = target.exact_draws(CHAINS, seed=1)
    draws = run_chains(target, sampler, x0, 120, scaling=torch.tensor([1.0, 0.1]).double())[:, 40:]
    variance = draws[..., 1].var(axis=1)
    assert draws[..., 1].var() == pytest.approx(0.0021, abs=0.0003 + 4 * variance.std() / np.sqrt(CHAINS))


@pytest.mark.slow
def test_the_scales_are_those_of_the_target():
    target = targets.Gaussian(size=3, correlation=0.5, spread=5.0)
    run = Run(
        Spec(
            target="gaussian",
            target_settings={"size": 3, "correlation": 0.5, "spread": 5.0},
            sampler="sigma_bps",
            settings={"warmup_events": 60_000},
            chains=64,
            draws=1,
            warmup=0,
        ).checked()
    )
    while not run.finished:
        run.advance(0.5)
    ratio = run.state.adaptation.scaling.numpy() / np.sqrt(np.diag(target.cov()))
    assert np.allclose(ratio, 1, atol=0.15), ratio


def weights_of(sampler: samplers.Sampler, x: np.ndarray, scale: torch.Tensor | None) -> np.ndarray:
    """Return the weights of draws x (..., dim) at events, of a sampler that is bound."""
    scaling = sampler.first_scaling() if scale is None else scale
    weights = sampler.event_weights(torch.as_tensor(x).flatten(0, -2), SimpleNamespace(scaling=scaling))
    return weights.view(x.shape[:-1]).numpy()


def weighted_z(weights: np.ndarray, draws: np.ndarray, power: int, truth: float, column: int = 0) -> float:
    """Return the standardised error of a weighted moment: of a ratio of two averages over chains."""
    top, bottom = (weights * draws[..., column] ** power).sum(1), weights.sum(1)
    ratio = top.sum() / bottom.sum()
    return (ratio - truth) / (np.sqrt(((top - ratio * bottom) ** 2).sum()) / bottom.sum())


def at_events(sampler: samplers.Sampler, target: targets.Target, mode: np.ndarray, scale: torch.Tensor | None):
    """Return starts as events find them: exact draws, chosen in proportion to how often events happen there."""
    pool = target.exact_draws(50_000, seed=1)
    run_chains(target, sampler, pool[:2], 1, mode=mode, scaling=scale)
    often = 1 / weights_of(sampler, pool, scale)
    return pool[np.random.default_rng(2).choice(len(pool), CHAINS, p=often / often.sum())]


WEIGHTED = [
    ("bps", {"refresh_rate": 0.1}),
    ("bps", {"velocity_sd": 0.5, "refresh_rate": 0.3}),
    ("sigma_bps", {"refresh_rate": 0.2}),
    ("zigzag", {}),
    ("zigzag", {"refresh_rate": 0.5, "velocity": 2.0}),
    ("boomerang", {"refresh_rate": 0.2}),
]


@pytest.mark.slow
@pytest.mark.parametrize("target", [targets.Gaussian(spread=3.0), targets.Banana(bend=0.5)], ids=["gaussian", "banana"])
@pytest.mark.parametrize(("name", "settings"), WEIGHTED)
def test_weights_undo_the_bias_of_draws_at_events(name, settings, target):
    sampler = make(name, {**settings, "samples": "events"})
    sd = np.sqrt(np.diag(target.cov()))
    mode = MODES.get(target.registered, target.mean()) + 0.7 * sd
    scale = torch.as_tensor(sd * np.array([0.8, 1.3])) if name == "sigma_bps" else None
    x0 = at_events(sampler, target, mode, scale)
    draws = run_chains(target, sampler, x0, 160, mode=mode, scaling=scale)[:, 40:]
    weights = weights_of(sampler, draws, scale)
    for column in range(2):
        mean = target.mean()[column]
        second = target.cov()[column, column] + mean**2
        for power, truth in ((1, mean), (2, second)):
            # Sixteen figures for each sampler and target, 12 of these: a level of 1e-4 over all.
            assert abs(weighted_z(weights, draws, power, truth, column)) < 4.8
    if name == "bps" and settings["refresh_rate"] == 0.1:
        plain = draws[..., 0].var(axis=1)
        assert (plain.mean() - target.cov()[0, 0]) / (plain.std() / np.sqrt(CHAINS)) > 5, "without them it is there"


@pytest.mark.parametrize("clip", some_quick([False, True], 1))
def test_the_papers_envelope_widens_the_banana(clip):
    target = targets.Banana()
    settings = {"bound": "interpolated", "alpha": 1.0, "horizon": 1000.0, "clip_points": clip, "spacing": 0.5}
    draws = run_chains(target, make("bps", settings), target.exact_draws(CHAINS, seed=1), 200)
    ratio = draws[:, 100:].var(axis=(0, 1)) / np.diag(target.cov())
    assert ratio.max() > (3.0 if clip else 1.3), ratio
