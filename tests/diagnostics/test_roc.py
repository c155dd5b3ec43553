"""ROC curves with envelopes, the spread of probabilities, and the spread of squared errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bnnviz import BnnvizError, diagnostics


def test_one_draws_curve_is_its_staircase():
    """Positives are said .9 and .4, negatives .6 and .1: up, right, up, right."""
    found = diagnostics.roc_envelopes(np.array([[0.9, 0.4, 0.6, 0.1]]), np.array([True, True, False, False]))
    at = dict(zip(found.fpr.round(3), found.mean, strict=True))
    assert (at[0.0], at[0.25], at[0.5], at[0.75], at[1.0]) == (0.5, 0.5, 1.0, 1.0, 1.0)
    assert (found.auc_mean, found.auc_sd) == (0.75, 0.0)
    np.testing.assert_array_equal(found.low, np.tile(found.mean, (3, 1)))


def test_envelopes_hold_their_share_of_the_draws():
    """The true positive rate of a draw at a given false positive rate, for normal scores, is known."""
    rng = np.random.default_rng(3)
    rows, draws = 20_000, 400
    positive = np.arange(rows) % 2 == 0
    shifts = rng.normal(1.5, 0.3, draws)
    probabilities = rng.normal(size=rows) + shifts[:, None] * positive
    found = diagnostics.roc_envelopes(probabilities, positive)
    at = np.searchsorted(found.fpr, 0.2)
    for level, low, high in zip(found.levels, found.low[:, at], found.high[:, at], strict=True):
        edges = stats.norm.ppf([(1 - level) / 2, (1 + level) / 2], 1.5, 0.3)
        known = 1 - stats.norm.cdf(stats.norm.isf(0.2) - edges)
        assert (low, high) == pytest.approx(known, abs=0.035)
    assert (found.low[2] <= found.low[0]).all()
    assert (found.high[0] <= found.high[2]).all()
    assert found.auc_mean == pytest.approx(np.mean(stats.norm.cdf(shifts / np.sqrt(2))), abs=0.005)


def test_weights_count_like_repetitions():
    rng = np.random.default_rng(4)
    probabilities, positive, times = rng.random((20, 60)), rng.random(60) < 0.4, rng.integers(0, 4, 20)
    weighted = diagnostics.roc_envelopes(probabilities, positive, times / 7.0)
    repeated = diagnostics.roc_envelopes(np.repeat(probabilities, times, 0), positive)
    for one, other in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(one, other)


def test_rows_of_one_kind_have_no_curve():
    with pytest.raises(BnnvizError, match="requires rows of both classes"):
        diagnostics.roc_envelopes(np.ones((2, 3)), np.ones(3, bool))


def test_the_beta_fit_finds_its_parameters():
    probabilities = stats.beta.rvs(2.0, 5.0, size=4000, random_state=5)
    found = diagnostics.probability_spread(probabilities)
    assert found.beta == pytest.approx((2.0, 5.0), rel=0.08)
    assert found.statement == ""
    assert len(found.density) == 10
    assert np.trapezoid(found.fit, found.x) == pytest.approx(1.0, abs=0.01)
    assert found.density.sum() / 10 == pytest.approx(1.0)
