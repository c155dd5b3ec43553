"""Learned observation noise against a posterior that is known: a line, whose weights are integrated out.

Given the noise, the two weights of a line have a normal posterior, and what is left is a density of
the noise alone, on a grid. So there are exact draws of everything, from which the chains start.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import bnnviz
from bnnviz import samplers
from bnnviz.targets.likelihoods import Normal
from tests.truth.chains import LEVEL, compare, run_chains

CHAINS = 512
PRIOR_SD, NOISE_SD = 1.5, 0.5
X = np.linspace(-1, 1, 8)
Y = 0.7 * X + 0.2 + 0.3 * np.random.default_rng(0).standard_normal(8)


class Line(nn.Module):
    """The same line as no stack of layers, so that automatic differentiation does the work."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


def line(kind: str) -> bnnviz.BNN:
    module = nn.Sequential(nn.Linear(1, 1)) if kind == "by hand" else Line()
    target = bnnviz.BNN(module, (X[:, None], Y), prior_sd=PRIOR_SD, noise_sd=NOISE_SD, noise="learned")
    assert (target.layers is None) == (kind == "by autograd")
    return target


def exact_draws(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    design = np.column_stack([X, np.ones(len(X))])
    grid = np.linspace(np.log(NOISE_SD) - 6, np.log(NOISE_SD) + 6, 4001)
    spread = PRIOR_SD**2 * design @ design.T
    evidence = [stats.multivariate_normal(cov=spread + np.exp(2 * s) * np.eye(len(X))).logpdf(Y) for s in grid]
    log_weight = np.array(evidence) + stats.norm(np.log(NOISE_SD), 1.0).logpdf(grid)
    cumulative = np.cumsum(np.exp(log_weight - log_weight.max()))
    log_sd = np.interp(rng.random(count), cumulative / cumulative[-1], grid)
    # One eigenbasis serves the posterior precision X'X / sd^2 + 1 / prior_sd^2 of every draw.
    values, vectors = np.linalg.eigh(design.T @ design)
    variance = 1 / (values / np.exp(2 * log_sd)[:, None] + PRIOR_SD**-2)
    mean = variance * (vectors.T @ design.T @ Y) / np.exp(2 * log_sd)[:, None]
    weights = (mean + np.sqrt(variance) * rng.standard_normal((count, 2))) @ vectors.T
    return np.column_stack([weights, PRIOR_SD * (log_sd - np.log(NOISE_SD))])


def verdict(target: bnnviz.BNN, sampler: str, settings: dict):
    kernel = samplers.REGISTRY.get(sampler)(spacing=0.5, **settings)
    truth = exact_draws(400_000, seed=9)
    draws = run_chains(target, kernel, exact_draws(CHAINS, seed=1), 40, mode=truth.mean(0))
    return compare(draws, truth)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["by hand", "by autograd"])
@pytest.mark.parametrize(
    ("sampler", "settings"), [("bps", {}), ("boomerang", {"refresh_rate": 0.5}), ("boomerang", {"gamma": 0.5})]
)
def test_learned_noise_of_a_line_is_the_known_one(sampler, settings, kind):
    found = verdict(line(kind), sampler, settings)
    assert found.p > LEVEL, found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["by hand", "by autograd"])
def test_a_dropped_n_log_sd_is_caught(monkeypatch, kind):
    whole, derivatives = Normal.loss, Normal.derivatives

    def without(self, f, y, raw):
        loss, residual, slope = derivatives(self, f, y, raw)
        return loss, residual, slope - len(y)

    monkeypatch.setattr(Normal, "derivatives", without)
    monkeypatch.setattr(Normal, "loss", lambda self, f, y: whole(self, f, y) - len(y) * self.raw[:, 0])
    assert verdict(line(kind), "bps", {}).p < LEVEL
