"""The regression bound of Pakman and others: its posterior, and that what it samples is right with batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz.samplers.pdmp.bounds.regression import Regression, RegressionState, _line
from bnnviz.samplers.pdmp.thinning import HORIZON, PROPOSAL, REJECTED, RatePoint

LEVEL = 4.0  # standard errors
SPEED = 2.0


def bound() -> Regression:
    return Regression(3.0, lambda x, v, scaling: torch.full((len(x),), SPEED, dtype=torch.float64))


def point(t: float, rate: float) -> RatePoint:
    one = torch.ones(1, 1, dtype=torch.float64)
    return RatePoint(one, one, *(torch.tensor([value], dtype=torch.float64) for value in (t, rate, np.nan)))


def after(times: np.ndarray, rates: np.ndarray, noise: float, slope: tuple[float, float]) -> RegressionState:
    """Return the state of a segment that has evaluated rates, with what is known at a speed of one."""
    horizon = torch.ones(1, dtype=torch.float64)
    state = bound().start(point(0.0, rates[0]), None, horizon)
    fixed = {"noise": noise, "slope": slope[0], "slope_variance": slope[1]}
    known = {name: torch.full_like(state.noise, value) for name, value in fixed.items()}
    for t, rate in zip(times[1:], rates[1:], strict=True):
        state = bound().learn(state._replace(**known), point(t, rate), torch.tensor([REJECTED]))
    return state._replace(**known)


def test_the_line_is_the_posterior_of_a_linear_regression() -> None:
    rng = np.random.default_rng(0)
    times, noise, prior = np.array([0.0, 0.3, 0.7, 1.1]), 0.4, (1.5, 2.0)
    rates = 0.5 + 1.2 * times + rng.normal(0, noise**0.5, 4)
    line = _line(after(times / SPEED, rates * SPEED, noise, prior))
    x = np.stack([np.ones(4), times], 1)
    precision = x.T @ x / noise + np.diag([0, 1 / prior[1]])
    covariance = np.linalg.inv(precision)
    mean = covariance @ (x.T @ rates / noise + np.array([0, prior[0] / prior[1]]))
    assert [line.intercept.item(), line.slope.item()] == pytest.approx(mean.tolist())
    at = np.array([1.0, 1.6])
    found = line.at(torch.tensor(1.6, dtype=torch.float64))
    assert [part.item() for part in found] == pytest.approx([mean @ at, at @ covariance @ at])


def test_the_envelope_is_above_the_raised_line_up_to_the_horizon() -> None:
    s = torch.tensor([0.7], dtype=torch.float64)
    state = after(np.array([0.0, 0.4, 0.7]), np.array([0.2, 1.0, 0.9]), 0.3, (1.0, 1.0))
    horizon = torch.tensor([0.8], dtype=torch.float64)
    _, plan = bound().plan(state, s, lambda like: torch.full_like(like, 0.1), horizon)
    assert plan.kind.item() == PROPOSAL and s.item() < plan.t.item() < 1.5
    for t in np.linspace(0.7, 1.5, 9):
        mean, variance = _line(state).at(torch.tensor(SPEED * t, dtype=torch.float64))
        raised = SPEED * (mean + 3 * (variance + state.noise).sqrt()).item()
        assert plan.piece.at(torch.tensor(t)).item() >= raised - 1e-9
        if t in (0.7, 1.5):
            assert plan.piece.at(torch.tensor(t)).item() == pytest.approx(raised)
    _, plan = bound().plan(state, s, lambda like: torch.full_like(like, 1e3), horizon)
    assert plan.kind.item() == HORIZON and plan.t.item() == pytest.approx(1.5)


@pytest.mark.slow
@pytest.mark.parametrize("sds_above", [3.0, 0.0])
def test_with_batches_the_variance_is_right_where_the_line_is_raised(sds_above: float) -> None:
    """Two data at +-1 and batches of one: N(0, 1/2). On the bare line half of the rates are above: events come late."""
    made = {"batch_size": 1, "bound": "regression", "sds_above": sds_above, "metric": "unit"}
    run = bnnviz.sample("two_data", "bps", settings=made, chains=64, draws=100, warmup=50, seed=1, dtype="float64")
    each = np.square(run.draws[..., 0]).mean(1)
    off = (each.mean() - 0.5) / (each.std(ddof=1) / np.sqrt(len(each)))
    share = run.summary()["violation_share"]
    if sds_above:
        assert abs(off) < LEVEL and share < 0.01, (off, share)
    else:
        assert off > LEVEL and share > 0.1, (off, share)
