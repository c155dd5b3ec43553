"""The metric of low rank: directions of a Gaussian from fewer draws than dimensions, and right draws with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnnviz.samplers.mcmc import low_rank
from bnnviz.samplers.mcmc.low_rank import LowRank
from bnnviz.samplers.mcmc.metric import Metric, WindowSums

DIM, CHAINS = 200, 4
STRETCHES = np.array([30.0, 8.0, 3.0, 1 / 3, 1 / 8, 1 / 30])


def factor(rng: np.random.Generator) -> np.ndarray:
    """Return A (dim, dim) of a Gaussian A z that stretches six directions, in coordinates of unequal scales."""
    directions = np.linalg.qr(rng.normal(size=(DIM, len(STRETCHES))))[0]
    return rng.permutation(np.geomspace(0.01, 100, DIM))[:, None] * (
        np.eye(DIM) + directions @ np.diag(STRETCHES - 1) @ directions.T
    )


def learned(draws: int, rounds: int = 2) -> tuple[Metric, np.ndarray]:
    rng = np.random.default_rng(0)
    a = factor(rng)
    precision, yes = torch.as_tensor(np.linalg.inv(a @ a.T)), torch.ones(CHAINS, dtype=torch.bool)
    metric = Metric.unit_of_low_rank(DIM, torch.ones(1).double())
    for _ in range(rounds):
        x = torch.as_tensor(rng.normal(size=(draws, CHAINS, DIM)) @ a.T)
        sums = WindowSums.begun(x[0], x[0] @ precision, False, True)
        for place in x:
            sums = sums.added(place, place @ precision, yes, yes)
        metric = metric.learned(sums)
    return metric, a


def condition(metric: Metric, a: np.ndarray) -> float:
    """Return the ratio of the largest to the smallest scale of A z in the metric's coordinates."""
    inverse = np.linalg.inv(metric.apply_transpose(torch.eye(DIM).double()).numpy())
    values = np.linalg.svd(inverse @ a, compute_uv=False)
    return values[0] / values[-1]


@pytest.mark.parametrize(("draws", "allowed"), [(25, 20.0), (60, 6.0)])
def test_directions_are_known_from_fewer_draws_than_dimensions(draws: int, allowed: float) -> None:
    metric, a = learned(draws)
    without = Metric(metric.scale, LowRank.unit(DIM, metric.scale))
    assert condition(without, a) > 100
    assert condition(metric, a) < allowed


def test_it_maps_momenta_and_gradients_by_one_matrix() -> None:
    metric, _ = learned(25, 1)
    one, two = torch.randn(2, 3, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    left, right = (metric.apply(one) * two).sum(-1), (one * metric.apply_transpose(two)).sum(-1)
    torch.testing.assert_close(left, right)
    directions = metric.factor.directions
    used = directions[:, metric.factor.stretch != 1]
    torch.testing.assert_close(used.T @ used, torch.eye(used.shape[1]).double())


def test_few_draws_teach_scales_only() -> None:
    metric, _ = learned(1, 1)
    assert bool((metric.factor.stretch == 1).all())


@pytest.mark.parametrize("kind", ["dense", "low_rank"])
@pytest.mark.parametrize("size", [1e200, np.inf, np.nan])
def test_numbers_beyond_the_type_leave_a_metric_of_scales(kind: str, size: float) -> None:
    rng, yes = np.random.default_rng(0), torch.ones(CHAINS, dtype=torch.bool)
    like = torch.ones(1).double()
    metric = Metric.unit(3, True, like) if kind == "dense" else Metric.unit_of_low_rank(3, like)
    x = torch.as_tensor(rng.normal(size=(30, CHAINS, 3)))
    sums = WindowSums.begun(x[0], x[0], kind == "dense", kind == "low_rank")
    for place in x:
        sums = sums.added(place, size * place, yes, yes)
    assert bool(torch.isfinite(metric.learned(sums).apply(x[0])).all())


def test_a_window_keeps_the_last_draws_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_rank, "_MOST", 6)
    kept = low_rank.WindowDraws.begun(torch.zeros(2, 3))
    for i in range(10):
        kept = kept.added(torch.full((2, 3), float(i)), torch.ones(2, dtype=torch.bool))
    assert kept.rows[:, 0].tolist() == [7, 7, 8, 8, 9, 9]
