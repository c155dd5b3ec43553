"""Entropies, reliability, detection and what draws are worth as functions: known answers, and what breaks them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from bnnviz import BnnvizError, diagnostics

metrics = pytest.importorskip("sklearn.metrics")
pytest.importorskip("arviz_stats")

FAIR = np.full((1, 1, 4), 0.25)
OPPOSED = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])  # two draws, each sure of another class


# --- entropies


def test_entropies_of_what_is_known():
    """A fair die of four is unsure in itself; two draws that are sure of opposite classes are unsure of the weights."""
    assert diagnostics.predictive_entropy(FAIR) == pytest.approx([math.log(4)])
    assert diagnostics.predictive_entropy(FAIR, base=2) == pytest.approx([2.0])
    assert diagnostics.expected_entropy(FAIR) == pytest.approx([math.log(4)])
    assert diagnostics.mutual_information(FAIR).tolist() == [0.0]
    assert diagnostics.predictive_entropy(OPPOSED, base=2) == pytest.approx([1.0])
    assert diagnostics.expected_entropy(OPPOSED).tolist() == [0.0]
    assert diagnostics.mutual_information(OPPOSED, base=2) == pytest.approx([1.0])


def test_mutual_information_is_the_mean_distance_of_the_draws_from_their_mean():
    """Of the same number another formula: the mean over draws of KL(draw | mean)."""
    probabilities = np.random.default_rng(0).dirichlet(np.full(5, 0.7), (30, 20))
    weights = np.random.default_rng(1).random(30)
    shares = weights / weights.sum()
    mean = np.tensordot(shares, probabilities, 1)
    distance = np.tensordot(
        shares, stats.entropy(probabilities, np.broadcast_to(mean, probabilities.shape), axis=-1), 1
    )
    np.testing.assert_allclose(diagnostics.mutual_information(probabilities, weights=weights), distance, rtol=1e-9)
    # The other two exchanged would be below zero, and the weights left out another number.
    assert (diagnostics.expected_entropy(probabilities) < diagnostics.predictive_entropy(probabilities)).all()
    assert np.abs(diagnostics.mutual_information(probabilities) / distance - 1).max() > 0.01


def test_weights_count_like_repetitions():
    rng = np.random.default_rng(2)
    probabilities, times = rng.dirichlet(np.ones(3), (20, 7)), rng.integers(0, 4, 20)
    repeated = np.repeat(probabilities, times, 0)
    for measure in (diagnostics.predictive_entropy, diagnostics.expected_entropy, diagnostics.mutual_information):
        np.testing.assert_allclose(measure(probabilities, weights=times / 9), measure(repeated))
    one = diagnostics.class_intervals(probabilities, weights=times / 9)
    other = diagnostics.class_intervals(repeated, weights=np.ones(len(repeated)))
    for found, expected in zip(one, other, strict=True):
        np.testing.assert_allclose(found, expected)


def test_intervals_hold_their_share_of_the_draws():
    probability = np.random.default_rng(3).beta(2, 5, (40_000, 1))
    found = diagnostics.class_intervals(np.stack([probability, 1 - probability], -1), level=0.9)
    low, high = stats.beta.ppf([0.05, 0.95], 2, 5)
    assert found.mean[0] == pytest.approx([2 / 7, 5 / 7], abs=0.005)
    assert found.low[0] == pytest.approx([low, 1 - high], abs=0.01)
    assert found.high[0] == pytest.approx([high, 1 - low], abs=0.01)


@pytest.mark.parametrize(
    ("probabilities", "weights", "statement"),
    [
        (np.ones((2, 3)), None, r"\(draws, rows, classes\)"),
        (np.empty((0, 3, 2)), None, r"\(draws, rows, classes\)"),
        (np.full((1, 1, 2), np.nan), None, "sum 1"),
        (np.full((1, 1, 2), 0.6), None, "sum 1"),
        (np.array([[[1.5, -0.5]]]), None, "sum 1"),
        (FAIR, [1.0, 2.0], "1 nonnegative weights"),
        (FAIR, [0.0], "not all of them 0"),
        (FAIR, [np.nan], "nonnegative weights"),
    ],
)
def test_what_is_no_chance_is_refused(probabilities, weights, statement):
    with pytest.raises(BnnvizError, match=statement):
        diagnostics.predictive_entropy(probabilities, weights=weights)


# --- draws as functions


def test_function_ess_is_that_of_a_chain_that_is_known():
    """The ESS of an AR(1) process is (1 - a) / (1 + a) of its length; that of independent probabilities all of it."""
    rng, a, draws = np.random.default_rng(4), 0.8, 1500
    noise = rng.normal(size=(4, draws, 12))
    slow = np.empty_like(noise)
    slow[:, 0] = noise[:, 0]
    for k in range(1, draws):
        slow[:, k] = a * slow[:, k - 1] + math.sqrt(1 - a**2) * noise[:, k]
    for logits, share in ((slow, (1 - a) / (1 + a)), (noise, 1.0)):
        one = 1 / (1 + np.exp(-logits))
        found = diagnostics.function_ess(np.stack([one, 1 - one], -1))
        assert found.median / (4 * draws) == pytest.approx(share, rel=0.1)
        assert found.lowest < found.median
        assert (found.each.shape, found.unknown) == ((12, 2), 0)
    # Each draw at a place of its own: without their order nothing is left of the dependence.
    shuffled = rng.permuted(slow, axis=1)
    one = 1 / (1 + np.exp(-shuffled))
    assert diagnostics.function_ess(np.stack([one, 1 - one], -1)).median > 3 * (1 - a) / (1 + a) * 4 * draws


def test_rows_on_which_all_draws_agree_have_no_ess():
    rng = np.random.default_rng(5)
    probabilities = rng.dirichlet(np.ones(2), (2, 50, 3))
    probabilities[:, :, 1] = [1.0, 0.0]
    found = diagnostics.function_ess(probabilities)
    assert found.unknown == 2
    assert np.isnan(found.each[1]).all()
    assert found.median == np.median(found.each[[0, 2]])
    same = diagnostics.function_ess(np.full((2, 50, 1, 2), 0.5))
    assert math.isnan(same.median)
    with pytest.raises(BnnvizError, match="chains, draws, rows, classes"):
        diagnostics.function_ess(probabilities[0])


# --- reliability


def test_reliability_agrees_with_scikit_learn_and_with_the_error_of_the_other_figures():
    calibration = pytest.importorskip("sklearn.calibration")
    rng = np.random.default_rng(6)
    probabilities = rng.dirichlet(np.full(4, 0.5), 3000)
    observed = np.array([rng.choice(4, p=row) for row in probabilities])
    found = diagnostics.reliability(probabilities, observed, bins=15)
    kept = found.count > 0
    right = probabilities.argmax(1) == observed
    accuracy, confidence = calibration.calibration_curve(right, probabilities.max(1), n_bins=15)
    np.testing.assert_allclose(found.accuracy[kept], accuracy)
    np.testing.assert_allclose(found.confidence[kept], confidence)
    gaps = np.abs(found.accuracy - found.confidence)[kept]
    assert found.ece == pytest.approx((found.count[kept] * gaps).sum() / 3000)
    assert found.ece == diagnostics.class_metrics(probabilities, observed).values["ece"]
    # Labels that are drawn from the probabilities lie on the diagonal; those of more daring probabilities do not.
    assert ((found.low <= found.confidence) & (found.confidence <= found.high))[kept].mean() > 0.8
    daring = probabilities**3 / (probabilities**3).sum(1, keepdims=True)
    assert diagnostics.reliability(daring, observed).ece > 5 * diagnostics.reliability(probabilities, observed).ece


def test_reliability_refuses_what_does_not_fit():
    with pytest.raises(BnnvizError, match="one observation per row"):
        diagnostics.reliability(np.ones((3, 2)) / 2, np.zeros(2))


# --- detection


def test_detection_of_normal_scores_is_known():
    """With unit variances and a shift d: AUROC is Phi(d / sqrt 2), FPR95 is Phi(z_95 - d)."""
    rng, shift = np.random.default_rng(7), 1.5
    inside, outside = rng.normal(size=3000), rng.normal(shift, 1, 3000)
    found = diagnostics.detection(inside, outside, resamples=100)
    area, rate = stats.norm.cdf(shift / math.sqrt(2)), stats.norm.cdf(stats.norm.ppf(0.95) - shift)
    assert found.auroc_low < area < found.auroc_high
    assert found.fpr95_low < rate < found.fpr95_high
    assert found.auroc == pytest.approx(metrics.roc_auc_score(np.repeat([0, 1], 3000), np.r_[inside, outside]))
    # Scores with the other sign find the trained kind instead.
    turned = diagnostics.detection(-inside, -outside, resamples=10)
    assert turned.auroc == pytest.approx(1 - found.auroc)
    assert turned.fpr95 > 0.95


def test_detection_by_hand():
    """Of four foreign rows 95% are found only with the lowest, at .4, which two of five others reach."""
    found = diagnostics.detection([0.1, 0.2, 0.3, 0.5, 0.7], [0.4, 0.6, 0.8, 0.9], resamples=50)
    assert found.fpr95 == pytest.approx(2 / 5)
    assert found.auroc == pytest.approx((3 + 4 + 5 + 5) / 20)
    apart = diagnostics.detection([0.1, 0.2], [0.3, 0.4], resamples=20)
    assert (apart.auroc, apart.auroc_low, apart.fpr95, apart.fpr95_high) == (1.0, 1.0, 0.0, 0.0)
    alike = diagnostics.detection(np.zeros(9), np.zeros(4), resamples=20)
    assert (alike.auroc, alike.fpr95) == (0.5, 1.0)
    assert diagnostics.detection([0.0, 1.0, 0.4], [0.3, 2.0], seed=3) == diagnostics.detection(
        [0.0, 1.0, 0.4], [0.3, 2.0], seed=3
    )
    with pytest.raises(BnnvizError, match="inside has 1 scores"):
        diagnostics.detection([0.1], [0.2, 0.3])
    with pytest.raises(BnnvizError, match="outside"):
        diagnostics.detection([0.1, 0.2], [0.2, np.nan])


@pytest.mark.slow
def test_intervals_of_detection_hold_the_truth():
    """Threshold before looking: of 120 intervals of 95% at least 107, three standard errors below."""
    rng, shift, hits = np.random.default_rng(8), 1.0, np.zeros(2)
    area, rate = stats.norm.cdf(shift / math.sqrt(2)), stats.norm.cdf(stats.norm.ppf(0.95) - shift)
    for seed in range(120):
        found = diagnostics.detection(rng.normal(size=200), rng.normal(shift, 1, 200), resamples=150, seed=seed)
        hits += [found.auroc_low <= area <= found.auroc_high, found.fpr95_low <= rate <= found.fpr95_high]
    assert (hits >= 107).all(), hits


# --- intervals, histogram and steps


def test_intervals_of_a_share_and_of_a_mean():
    assert diagnostics.share_interval(0, 10)[0] == 0.0
    low, high = diagnostics.share_interval(10, 10)
    assert (low, high) == pytest.approx((10 / (10 + stats.norm.ppf(0.975) ** 2), 1.0))
    values = np.random.default_rng(9).gamma(2.0, size=2000)
    low, high = diagnostics.mean_interval(values)
    half = stats.norm.ppf(0.975) * values.std() / math.sqrt(len(values))
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.15 * half)
    assert diagnostics.mean_interval(values) == (low, high)
    assert diagnostics.mean_interval([0.3]) == (0.3, 0.3)
    assert diagnostics.mean_interval(np.full(5, 0.3)) == pytest.approx((0.3, 0.3))
