"""The ratio of two densities: against known ones, its constraint, its width, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bnnviz.diagnostics import kliep
from bnnviz.errors import BnnvizError

ROWS = 1000
# The mean log ratio that n rows lose to the best one is about f / (2 n) for f free parameters; with twenty of them,
# far more than smooth ratios of this size take, Pinsker's inequality gives the integral of |error| times q as at most
# sqrt(2 f / (2 n)) = 0.14. Where q's tails are lighter than p's the ratio has no bound, and theory gives none: there
# six other pairs of samples, of 2,000 points, were off by 0.04 to 0.22.
LIMIT = (20 / ROWS) ** 0.5
UNBOUNDED_LIMIT = 0.4
WIDTH = 1.0


def normal(seed: int, mean: list[float], sd: list[float], rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, sd, size=(rows, len(mean)))


def log_density(x: np.ndarray, mean: list[float], sd: list[float]) -> np.ndarray:
    return stats.norm.logpdf(x, mean, sd).sum(-1)


CASES = {
    "one": (([0.5], [0.8]), ([0.0], [1.0])),
    "one, heavier above": (([0.0], [1.0]), ([0.5], [0.8])),
    "two": (([0.5, 0.0], [0.8, 1.0]), ([0.0, 0.0], [1.0, 1.2])),
    "the same law": (([0.0], [1.0]), ([0.0], [1.0])),
}


def samples(case: str) -> tuple[np.ndarray, np.ndarray]:
    above, below = CASES[case]
    return normal(1, *above), normal(2, *below)


def error(case: str, ratio: object) -> float:
    """Return the integral of |estimate - ratio| times q, by a fresh sample of q."""
    above, below = CASES[case]
    x = normal(3, *below, rows=20_000)
    known = np.exp(log_density(x, *above) - log_density(x, *below))
    return float(np.abs(ratio(x) - known).mean())


@pytest.mark.parametrize("case", CASES)
def test_the_ratio_of_known_densities(case: str) -> None:
    limit = UNBOUNDED_LIMIT if case == "one, heavier above" else LIMIT
    assert error(case, kliep(*samples(case), WIDTH)) < limit


def test_the_mean_over_the_denominator_is_one() -> None:
    p, q = samples("two")
    ratio = kliep(p, q, WIDTH)
    assert ratio(q).mean() == pytest.approx(1.0, abs=1e-12)
    assert (ratio.coefficients >= 0).all()
    assert len(ratio.centres) == 100


@pytest.mark.parametrize(
    ("p", "q", "options", "says"),
    [
        (np.empty((0, 1)), np.zeros((9, 1)), {}, "numerator has shape"),
        (np.zeros((9, 1)), np.empty(0), {}, "denominator has shape"),
        (np.zeros((9, 2)), np.zeros((9, 1)), {}, "2 coordinates and the denominator's 1"),
        (np.full((9, 1), np.nan), np.zeros((9, 1)), {}, "finite"),
        (np.zeros((9, 1)), np.zeros((9, 1)), {"width": 0.0}, "above 0"),
        (np.zeros((9, 1)), np.zeros((9, 1)), {"centres": 0}, "centres = 0"),
        (np.zeros((9, 1)), np.full((9, 1), 1e3), {}, "too far apart"),
    ],
)
def test_what_cannot_be_used_is_refused(p: np.ndarray, q: np.ndarray, options: dict, says: str) -> None:
    with pytest.raises(BnnvizError) as caught:
        kliep(p, q, **{"width": WIDTH, **options})
    assert says in " ".join(str(caught.value).split())
