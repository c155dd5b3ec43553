"""R-hat against its definition, and on chains that only one of its parts can tell apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bnnviz import diagnostics


def rank_normalised(x: np.ndarray) -> np.ndarray:
    ranks = stats.rankdata(x, method="average").reshape(x.shape)
    return stats.norm.ppf((ranks - 3 / 8) / (x.size + 1 / 4))


def plain(x: np.ndarray) -> float:
    """Return R-hat (Gelman et al. 2013) of (chains, draws), without splitting and ranks."""
    within, between = x.var(1, ddof=1).mean(), x.mean(1).var(ddof=1)
    return float(np.sqrt((x.shape[1] - 1) / x.shape[1] + between / within))


def by_definition(x: np.ndarray) -> float:
    """Return R-hat of Vehtari et al. 2021: the larger one of bulk and folded, split and rank-normalised."""
    half = x.shape[1] // 2
    split = np.concatenate([x[:, :half], x[:, -half:]])
    return max(plain(rank_normalised(split)), plain(rank_normalised(np.abs(split - np.median(split)))))


def chains(kind: str) -> np.ndarray:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(4, 400))
    if kind == "trend":  # seen by splitting alone
        return x + np.linspace(0, 3, 400)
    if kind == "heavy tails":  # seen by ranks alone
        return rng.standard_cauchy((4, 400)) + np.array([0.0, 0.0, 3.0, 3.0])[:, None]
    return x * np.array([1.0, 1.0, 3.0, 3.0])[:, None] if kind == "scales" else x  # seen by folding alone


@pytest.mark.parametrize(
    ("kind", "apart"), [("equal", False), ("trend", True), ("heavy tails", True), ("scales", True)]
)
def test_r_hat_is_split_ranked_and_folded(kind: str, apart: bool) -> None:
    x = chains(kind)
    found = diagnostics.rhat(x)
    assert found == pytest.approx(by_definition(x), rel=1e-9)
    assert (found > 1.1) == apart
    assert plain(x) < 1.05
