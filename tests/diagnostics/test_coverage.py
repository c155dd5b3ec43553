"""Coverage and transforms of predicted numbers, against the normal law in closed form.

Stated before looking: shares of n rows are within four standard errors, sqrt(p (1 - p) / n), of the known ones.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from bnnviz import diagnostics

ROWS = 20_000


def normal_transforms(spread: float, shift: float = 0.0) -> np.ndarray:
    """Return the transforms of standard normal observations under a normal law of this sd and mean."""
    return scipy.stats.norm.cdf(np.random.default_rng(0).normal(size=ROWS), shift, spread)


def within(share: np.ndarray, known: np.ndarray) -> bool:
    return bool((np.abs(share - known) <= 4 * np.sqrt(known * (1 - known) / ROWS) + 1e-12).all())


@pytest.mark.parametrize("spread", [1.0, 0.5, 0.8, 2.0])
def test_intervals_of_a_wrong_sd_hold_what_the_error_function_says(spread: float) -> None:
    found = diagnostics.coverage(normal_transforms(spread))
    z = scipy.stats.norm.ppf((1 + found.levels) / 2)
    known = scipy.special.erf(z * spread / np.sqrt(2))
    assert within(found.share, known)
    outside = (found.share < found.low) | (found.share > found.high)
    assert spread == 1 or outside.all(), "20,000 rows tell these apart at each level"


def test_transforms_of_right_predictions_are_uniform_and_others_are_not() -> None:
    flat = diagnostics.coverage(normal_transforms(1.0))
    assert within(flat.density / 10, np.full(10, 0.1))
    narrow, wide, low = (diagnostics.coverage(normal_transforms(*given)) for given in ((0.5,), (2.0,), (1.0, -1.0)))
    assert narrow.density[0] > narrow.density_high and narrow.density[4] < narrow.density_low
    assert wide.density[0] < wide.density_low and wide.density[4] > wide.density_high
    assert low.density[0] < low.density_low and low.density[-1] > low.density_high
    known = np.diff(scipy.stats.norm.cdf(scipy.stats.norm.ppf(narrow.edges) * 0.5))
    assert within(narrow.density / 10, known)


@pytest.mark.slow
def test_the_band_holds_right_predictions_as_often_as_it_says() -> None:
    """Of 50 rows at the level .5, and of a bin: at least 95%, and at most what one more row on each side makes."""
    rng = np.random.default_rng(1)
    many = [diagnostics.coverage(rng.uniform(size=50), np.array([0.5])) for _ in range(4000)]
    held = np.mean([one.low[0] <= one.share[0] <= one.high[0] for one in many])
    law = scipy.stats.binom(50, 0.5)
    low, high = law.interval(0.95)
    exact = law.cdf(high) - law.cdf(low - 1)
    assert exact >= 0.95 and abs(held - exact) < 4 * np.sqrt(exact * (1 - exact) / 4000)
    first = np.mean([one.density_low <= one.density[0] <= one.density_high for one in many])
    law = scipy.stats.binom(50, 0.1)
    low, high = law.interval(0.95)
    exact = law.cdf(high) - law.cdf(low - 1)
    assert abs(first - exact) < 4 * np.sqrt(exact * (1 - exact) / 4000)
