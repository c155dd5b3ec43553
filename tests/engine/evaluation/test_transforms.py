"""Probability integral transforms of test rows are those of the predictive law in closed form.

Stated before looking: with 40,000 exact draws within four standard errors of a mean of draws, 4 / sqrt(40,000) = 0.02.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm, poisson

import bnnviz
from bnnviz import diagnostics
from bnnviz.data import DataSet
from bnnviz.engine.evaluation.metrics import NetworkDraws, transforms

NOISE, DRAWS, ROWS = 0.3, 40_000, 12


def line(noise: float = NOISE, rows: int = ROWS, draws: int = DRAWS) -> tuple[NetworkDraws, np.ndarray]:
    """Return exact draws of a line's posterior under a noise, and the transforms in closed form."""
    rng = np.random.default_rng(3)
    x = rng.normal(5, 2, (30 + rows, 1))
    y = 100 + 40 * x[:, 0] + rng.normal(0, 25, 30 + rows)
    parts = {"x_train": x[:30], "y_train": y[:30], "x_test": x[30:], "y_test": y[30:]}
    data = DataSet(name="line", title="line", doc="", task="regression", **parts)
    target = bnnviz.BNN(torch.nn.Linear(1, 1), data, noise_sd=noise)
    (z, t), (z_new, t_new) = data.scaled("train"), data.scaled("test")
    design, new = (np.column_stack([each, np.ones(len(each))]) for each in (z, z_new))
    covariance = np.linalg.inv(design.T @ design / noise**2 + np.eye(2))
    mean = covariance @ design.T @ t / noise**2
    sd = np.sqrt(np.einsum("ri,ij,rj->r", new, covariance, new) + noise**2)
    theta = torch.as_tensor(rng.multivariate_normal(mean, covariance, draws))
    return NetworkDraws(target, theta, None, 1), norm.cdf(t_new, new @ mean, sd)


def test_they_are_those_of_the_closed_form() -> None:
    given, known = line()
    assert np.abs(transforms(given) - known).max() < 0.02


def test_weights_count() -> None:
    given, known = line()
    half = np.where(np.arange(DRAWS) % 2, 0.0, -np.inf)
    moved = given._replace(theta=given.theta + 100 * (torch.arange(DRAWS) % 2 == 0)[:, None], log_weights=half)
    assert np.abs(transforms(moved) - known).max() < 0.03


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_noise_that_is_too_small_has_intervals_that_hold_too_few_rows(share: float) -> None:
    """Of known weights the law is the noise's: with a share s of the true sd the coverage is erf(z s / sqrt 2)."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (4000, 1))
    y = x[:, 0] + rng.normal(size=4000)
    data = DataSet(name="line", title="line", doc="", task="regression", x_train=x, y_train=y, x_test=x, y_test=y)
    sd = data.standardiser.y_scale
    target = bnnviz.BNN(torch.nn.Linear(1, 1), data, noise_sd=share / sd)
    z, t = data.scaled("train")
    fitted = np.linalg.lstsq(np.column_stack([z, np.ones(len(z))]), t, rcond=None)[0]
    found = diagnostics.coverage(transforms(NetworkDraws(target, torch.as_tensor(fitted)[None], None, 1)))
    quantile = norm.ppf((1 + found.levels) / 2)
    known = 2 * norm.cdf(quantile * share) - 1
    assert (np.abs(found.share - known) <= 4 * np.sqrt(known * (1 - known) / 4000)).all()


def test_counts_have_uniform_ones_too() -> None:
    rng = np.random.default_rng(2)
    x = np.zeros((4000, 1))
    y = poisson.rvs(2.5, size=4000, random_state=rng).astype(float)
    module = torch.nn.Linear(1, 1)
    target = bnnviz.BNN(module, (x, y), likelihood="poisson")
    theta = torch.tensor([[0.0, float(np.log(2.5))]], dtype=torch.float64)
    found = diagnostics.coverage(transforms(NetworkDraws(target, theta, None, 1)))
    known = found.levels
    assert (np.abs(found.share - known) <= 4 * np.sqrt(known * (1 - known) / 4000)).all()
