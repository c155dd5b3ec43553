"""Runs of networks with every likelihood: what they predict, score, show, and keep."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import optimize, stats
from torch import Tensor, nn

import bnnviz
from bnnviz import diagnostics, samplers, targets
from bnnviz import settings as declared
from bnnviz.engine.evaluation.observables import ObservationLaw, quantiles
from bnnviz.errors import BnnvizError
from bnnviz.figures.predictive.prediction import prediction

RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 2))
REAL, COUNTS = RNG.standard_normal(12), RNG.poisson(2.0, 12)
CLASSES, PAIRS = np.arange(12) % 3, RNG.standard_normal((12, 2))


def laplace(f: Tensor, y: Tensor) -> Tensor:
    return -(y - f[:, 0]).abs() - 0.6931471805599453


class DensityOnly(targets.Likelihood):
    task = "regression"

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        return -(y - f[..., 0]).abs() - 0.6931471805599453


class MomentsOnly(DensityOnly):
    def mean(self, f: Tensor) -> Tensor:
        return f[..., 0]


KINDS = {
    "gaussian": (1, REAL, {"noise_sd": 1.0, "noise": "learned"}),
    "several": (2, PAIRS, {"noise_sd": 1.0, "noise": "learned"}),
    "student_t": (1, REAL, {"likelihood": "student_t", "noise_sd": 1.0, "noise": "learned"}),
    "heteroscedastic": (2, REAL, {"likelihood": "heteroscedastic"}),
    "log_normal": (1, np.exp(REAL), {"likelihood": "log_normal", "noise_sd": 1.0, "noise": "learned"}),
    "poisson": (1, COUNTS, {"likelihood": "poisson"}),
    "negative_binomial": (1, COUNTS, {"likelihood": "negative_binomial"}),
    "ordinal": (1, CLASSES, {"likelihood": "ordinal"}),
    "callable": (1, REAL, {"likelihood": laplace}),
    "density": (1, REAL, {"likelihood": DensityOnly()}),
    "moments": (1, REAL, {"likelihood": MomentsOnly()}),
}
OF_OUTPUTS = {"callable", "density", "moments"}


def network(kind: str, prior_sd: float = 0.5) -> bnnviz.BNN:
    outputs, y, options = KINDS[kind]
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, outputs))
    return bnnviz.BNN(module, (X, y), prior_sd=prior_sd, **options)


def few(kind: str, **more: object) -> bnnviz.Run:
    given = {"draws": 30, "warmup": 10, "chains": 2, "seed": 1, "settings": {"mode_steps": 20}} | more
    return bnnviz.sample(network(kind), "hmc", **given)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_summarised_predicted_and_shown(kind: str) -> None:
    run = few(kind)
    found, predicted = run.summary(), run.predict(X[:4])
    assert np.isfinite(found["nll"])
    assert found["metrics"]["averaged"]["nll"] == pytest.approx(found["nll"])
    assert found["metrics"]["per_draw"].get("nll", {"mean": 0.0})["mean"] >= found["nll"] - 1e-6 or kind in OF_OUTPUTS
    assert run.verdict()
    columns = predicted.columns()
    assert all(np.isfinite(np.asarray(values, dtype=float)).all() for values in columns.values())
    scene = run._run.scene()
    frame = run._run.frame(scene["emits"])
    shown = frame.get("prediction")
    assert bool(shown) == (kind not in OF_OUTPUTS)
    if shown and "nll" in shown and kind != "ordinal":
        assert np.isfinite(shown["nll"])
    if kind in OF_OUTPUTS:
        assert predicted.task == "outputs"
        assert predicted.aleatoric_sd is None
        assert predicted.note
        with pytest.raises(BnnvizError, match="draw"):
            run.predictive(X[:4])
        assert run.verdict().code == "not_judged"
        return
    drawn = run.predictive(X[:4], draws=20)
    assert drawn.shape[:2] == (20, 4)
    if predicted.task == "regression":
        assert drawn.shape[1:] == predicted.mean.shape
        np.testing.assert_allclose(predicted.sd**2, predicted.epistemic_sd**2 + predicted.aleatoric_sd**2, rtol=1e-10)
        low, middle, high = predicted.quantiles.values()
        assert ((low <= middle) & (middle <= high)).all()


def test_nll_and_quantiles_are_those_of_the_mixture_of_draws() -> None:
    """By SciPy, from the outputs and the coordinate of the concentration: r = exp(2 theta / prior_sd)."""
    run = few("negative_binomial")
    target, theta = run.network_draws().target, run.draws.reshape(-1, run.draws.shape[2]).astype(float)
    mean = np.exp(target.outputs(run.draws, X)[..., 0].double().numpy())
    r = np.exp(2 * theta[:, -1:] / 0.5)
    law = stats.nbinom(r, r / (r + mean))
    assert run.summary()["nll"] == pytest.approx(-np.log(law.pmf(COUNTS).mean(0)).mean(), rel=1e-4)
    predicted = run.predict(X, quantiles=(0.1, 0.9))
    np.testing.assert_allclose(predicted.mean, mean.mean(0), rtol=1e-4)
    np.testing.assert_allclose(predicted.sd**2, law.var().mean(0) + mean.var(0), rtol=1e-3)
    for level, values in predicted.quantiles.items():
        np.testing.assert_array_less(level - 1e-6, law.cdf(values).mean(0))
        np.testing.assert_array_less(law.cdf(values - 1).mean(0), level + 1e-6)
    metrics = bnnviz.measure(run)["averaged"]
    inside = (law.cdf(COUNTS).mean(0) >= 0.05) & (law.cdf(COUNTS - 1).mean(0) <= 0.95)
    assert metrics["coverage_90"] == pytest.approx(inside.mean())
    every = np.arange(1000)[:, None]  # the probability of all counts in neither tail
    below = np.array([law.cdf(count).mean(0) for count in every])
    mass = np.array([law.pmf(count).mean(0) for count in every])
    in_neither = (below >= 0.05) & (below - mass <= 0.95)
    assert metrics["coverage_90_expected"] == pytest.approx((mass * in_neither).sum(0).mean(), rel=1e-4)


def test_quantiles_of_draws_of_very_different_size_are_those_of_the_mixture() -> None:
    """By SciPy's root of the mixture's distribution function, on the scale of the logarithm."""
    target, f = network("log_normal"), np.array([-20.0, 0.0, 3.0, 30.0, 80.0])
    law = ObservationLaw(target, torch.zeros(5, target.dim), torch.tensor(f).reshape(5, 1, 1))
    levels = (0.05, 0.3, 0.5, 0.7, 0.95)
    roots = [optimize.brentq(lambda u, p: stats.norm.cdf(u - f).mean() - p, -60, 150, (p,)) for p in levels]
    np.testing.assert_allclose(np.log(quantiles(law, np.full(5, 0.2), levels)[:, 0]), roots, atol=1e-5)


def test_a_figure_of_test_rows_has_the_quantiles_of_skewed_observations() -> None:
    run = few("log_normal")
    expected = run.predict(X, (0.025, 0.975)).quantiles
    low, height = next((each.y, each.dy) for each in prediction(run).marks if each.label == "95% interval")
    order = np.argsort(KINDS["log_normal"][1])
    np.testing.assert_allclose(low, expected[0.025][order], rtol=1e-4)
    np.testing.assert_allclose(low + height, expected[0.975][order], rtol=1e-4)


def test_several_outputs_are_predicted_by_their_own_noises() -> None:
    run = few("several")
    theta = run.draws.reshape(-1, run.draws.shape[2]).astype(float)
    f = run.network_draws().target.outputs(run.draws, X).double().numpy()
    sd = np.exp(theta[:, None, -2:] / 0.5)
    predicted = run.predict(X, (0.5, 0.975))
    np.testing.assert_allclose(predicted.aleatoric_sd**2, np.broadcast_to((sd**2).mean(0), (12, 2)), rtol=1e-4)
    below = stats.norm(f, sd).cdf(predicted.quantiles[0.975]).mean(0)
    np.testing.assert_allclose(below, 0.975, atol=1e-4)
    density = stats.norm(f, sd).logpdf(PAIRS).sum(-1)
    assert run.summary()["nll"] == pytest.approx(-np.log(np.exp(density).mean(0)).mean(), rel=1e-4)
    assert set(predicted.columns()) >= {"mean[0]", "mean[1]", "median[0]", "upper_95[1]"}


def test_ordered_classes_are_predicted_with_their_probabilities() -> None:
    run = few("ordinal")
    predicted = run.predict(X)
    assert predicted.class_names == ["0", "1", "2"]
    theta = run.draws.reshape(-1, run.draws.shape[2]).astype(float)
    f = run.network_draws().target.outputs(run.draws, X)[..., 0].double().numpy()
    raw = theta[:, None, -2:] / 0.5
    first = np.log(0.5) + raw[..., :1]
    cuts = np.concatenate([first, first + 2 * np.log(2) * np.exp(raw[..., 1:])], -1)
    below = 1 / (1 + np.exp(f[..., None] - cuts))
    exact = np.diff(np.concatenate([0 * below[..., :1], below, 1 + 0 * below[..., :1]], -1), axis=-1)
    np.testing.assert_allclose(predicted.probabilities, exact.mean(0), rtol=1e-3)
    assert bnnviz.uncertainty(run)["summary"]["class_names"] == ["0", "1", "2"]
    assert diagnostics.class_metrics(predicted.probabilities, CLASSES).values["nll"] == pytest.approx(
        run.summary()["nll"], rel=1e-4
    )


def laws(kind: str, run: bnnviz.Run) -> stats.rv_frozen:
    """Return what each draw says of an observation at X by SciPy, (draws, rows) or (draws, rows, columns)."""
    theta = run.draws.reshape(-1, run.draws.shape[2]).astype(float)
    f, raw = run.network_draws().target.outputs(run.draws, X).double().numpy(), theta[:, None, :] / 0.5
    scale = np.exp(raw[..., -1])
    if kind == "several":
        return stats.norm(f, np.exp(raw[..., -2:]))
    if kind == "heteroscedastic":
        return stats.norm(f[..., 0], np.exp(f[..., 1]))
    if kind == "student_t":
        return stats.t(4, f[..., 0], scale)
    mean, r = np.exp(f[..., 0]), np.exp(2 * raw[..., -1])
    return stats.poisson(mean) if kind == "poisson" else stats.nbinom(r, r / (r + mean))


SCORED = {"several": PAIRS, "poisson": COUNTS, "negative_binomial": COUNTS}


@pytest.mark.parametrize("kind", [*SCORED, "heteroscedastic", "student_t"])
def test_the_crps_is_the_integral_of_the_squared_difference(kind: str) -> None:
    """By the distribution functions of SciPy: a sum over counts, or over steps of 0.02."""
    run = few(kind, draws=10)
    law, y = laws(kind, run), SCORED.get(kind, REAL).astype(float)
    counts = kind in ("poisson", "negative_binomial")
    grid = np.arange(400.0) if counts else np.linspace(-100, 100, 10_001)
    squares = np.stack([np.square(law.cdf(z).mean(0) - (z >= y)) for z in grid])
    exact = (squares.sum(0) * (grid[1] - grid[0])).mean()
    found = bnnviz.measure(run)
    # A thousand draws for each of at least 12 observations: the standard error is about one in two hundred.
    assert found["averaged"]["crps"] == pytest.approx(exact, rel=0.04)
    assert found["per_draw"]["crps"]["mean"] > 0 and "crps" not in found["unknown"]


@pytest.mark.slow
@pytest.mark.parametrize("sampler", samplers.REGISTRY.names())
@pytest.mark.parametrize("kind", ["callable", "several", "negative_binomial"])
def test_every_sampler_moves_on_every_kind_of_likelihood(sampler: str, kind: str) -> None:
    own = {setting["name"] for setting in declared.describe(samplers.REGISTRY.get(sampler))}
    settings = {name: value for name, value in {"mode_steps": 20, "steps": 100}.items() if name in own}
    run = bnnviz.sample(network(kind), sampler, draws=4, warmup=4, chains=2, settings=settings)
    assert np.isfinite(run.draws).all()
    assert run.draws.shape[1] == 4
