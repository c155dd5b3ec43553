"""Whole runs, warm-up included, against known answers and against each other (slow)."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from torch import nn

import bnnviz
from bnnviz import targets
from tests.truth.chains import LEVEL, compare_moments

pytestmark = pytest.mark.slow
NARROW = "[[5.1e-4, -1.6e-4, 1.1e-4], [-1.6e-4, 1.86e-3, -1.43e-3], [1.1e-4, -1.43e-3, 1.6e-3]]"


def p_value(found: dict, mean: np.ndarray, cov: np.ndarray) -> float:
    """Return the probability of the worst of all standardised errors."""
    z_mean = (np.array(found["mean"]) - mean) / np.array(found["mean_se"])
    lower = np.tril_indices(len(mean))
    z_cov = ((np.array(found["cov"]) - cov) / np.array(found["cov_se"]))[lower]
    z = np.concatenate([z_mean, z_cov])
    return float(min(1.0, 2 * stats.norm.sf(np.abs(z).max()) * len(z)))


@pytest.mark.slow
def test_the_command_line_agrees_with_the_truth():
    arguments = ["sample", "--target", "gaussian", "--sampler", "bps", "--chains", "256", "--draws", "2000"]
    result = subprocess.run(
        [sys.executable, "-m", "bnnviz", *arguments, "--seed", "1", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(result.stdout)
    target = targets.Gaussian()
    assert p_value(found, target.mean(), target.cov()) > LEVEL
    assert found["rhat_max"] < 1.01


@pytest.mark.parametrize(
    ("name", "target_settings", "sampler", "settings"),
    [("banana", {}, "bps", {}), ("logistic_regression", {}, "boomerang", {})]
    + [
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (
            # Bent by 0.5, its squares are still correlated by 0.08 after 300 draws: chains' averages are skewed then.
            ("banana", {"bend": 0.25}, "boomerang", {}),
            ("banana", {"bend": 0.25}, "boomerang", {"learn_reference": True}),
            ("logistic_regression", {}, "bps", {}),
            ("gaussian", {"size": 50, "correlation": 0.3}, "bps", {}),
            ("double_well", {"reading": "figure"}, "bps", {}),
            # As narrow as a regression on 10,000 rows: chains begin 30 standard deviations off.
            ("gaussian", {"mean_list": "[-0.5, 1.5, -1]", "cov_list": NARROW}, "bps", {}),
        )
    ],
)
def test_whole_runs_agree_with_the_truth(name, target_settings, sampler, settings):
    run = bnnviz.sample(
        name, sampler, target_settings=target_settings, settings=settings, chains=256, draws=300, warmup=100, seed=5
    )
    target = targets.REGISTRY.get(name)(**target_settings)
    assert compare_moments(run.draws.astype(float), target.mean(), target.cov()).p > LEVEL


def small_network(prior_sd: float = 1.0) -> bnnviz.BNN:
    x = np.linspace(-1, 1, 6)[:, None]
    module = nn.Sequential(nn.Linear(1, 2), nn.Tanh(), nn.Linear(2, 1))
    return bnnviz.BNN(module, (x, np.sin(2 * x[:, 0])), prior_sd=prior_sd, noise_sd=0.4)


def importance_reference(network: bnnviz.BNN, count: int = 3_000_000) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior mean and second moment of the function by sampling from the prior, and their errors."""
    import torch

    rng = torch.Generator().manual_seed(0)
    network.to("cpu", torch.float64)
    sums = 0.0
    for _ in range(10):
        theta = torch.randn(count // 10, network.dim, generator=rng, dtype=torch.float64) / network.prior_precision**0.5
        f = network.outputs(theta, network.x)[..., 0]
        weight = torch.exp(-network.likelihood.loss(f[..., None], network.y))
        features = torch.cat([f, f**2], dim=1)
        sums = sums + np.stack([(weight[:, None] * features).sum(0).numpy(), np.full(12, float(weight.sum()))])
    return sums[0] / sums[1]


@pytest.mark.slow
@pytest.mark.timeout(400)  # a busy machine
@pytest.mark.parametrize(
    ("sampler", "settings"),
    [("bps", {"refresh_rate": 2.0}), ("boomerang", {}), ("boomerang", {"reference": "from_prior"})],
)
def test_network_posterior_agrees_with_importance_sampling(sampler, settings):
    """A network of seven weights: means and squares of its function at the data, from three million prior draws."""
    import torch

    network = small_network()
    known = importance_reference(network)
    run = bnnviz.sample(
        network,
        sampler,
        chains=128,
        draws=400,
        warmup=200,
        seed=2,
        dtype="float64",
        settings={"start": "random"} | settings,
    )
    theta = torch.as_tensor(run.draws.reshape(-1, network.dim))
    f = network.outputs(theta, network.x)[..., 0].reshape(128, 400, 6).numpy()
    features = np.concatenate([f, f**2], axis=2).mean(1)
    error = features.std(0, ddof=1) / np.sqrt(128)
    # The reference's own error, some 0.003, is added.
    z = (features.mean(0) - known) / np.sqrt(error**2 + 0.003**2)
    assert 2 * stats.norm.sf(np.abs(z).max()) * len(z) > LEVEL, z


@pytest.mark.slow
def test_network_with_another_prior_is_distinguished():
    """The same comparison goes red when the prior is not the one that the sampler used."""
    import torch

    known = importance_reference(small_network(prior_sd=0.5), 300_000)
    network = small_network()
    run = bnnviz.sample(network, "boomerang", chains=128, draws=200, warmup=100, seed=2, dtype="float64")
    f = network.outputs(torch.as_tensor(run.draws.reshape(-1, network.dim)), network.x)[..., 0]
    features = np.concatenate([f.numpy(), f.numpy() ** 2], axis=1).reshape(128, 200, 12).mean(1)
    z = (features.mean(0) - known) / np.sqrt(features.var(0, ddof=1) / 128 + 0.01**2)
    assert 2 * stats.norm.sf(np.abs(z).max()) * len(z) < LEVEL, z


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "settings"), [("bps", {"refresh_rate": 2.0}), ("boomerang", {})])
@pytest.mark.parametrize("reported", [True, False], ids=["changed", "not told"])
def test_after_a_change_of_data_the_draws_are_of_the_new_posterior(sampler, settings, reported):
    """A network of seven weights whose points were moved while it ran; red where the run has not heard of it."""
    import torch

    from bnnviz.engine.run.run import Run
    from bnnviz.specs.run import Spec

    x = np.linspace(-0.4, 0.4, 6)
    before, after = (np.column_stack([x, y]).tolist() for y in (np.sin(5 * x), 1.5 * np.cos(5 * x)))
    target_settings = {"data": "toy_c", "hidden": "2", "points": before, "noise_sd": 0.5}
    known = importance_reference(targets.Network(**target_settings | {"points": after}))
    run = Run(
        Spec(
            target="network",
            target_settings=target_settings,
            sampler=sampler,
            settings={"start": "random"} | settings,
            chains=128,
            draws=400,
            warmup=100,
            seed=3,
            dtype="float64",
        ).checked()
    )
    run.prepare()
    while run.store.made.min() < 50:
        run.advance(0.1)
    if reported:
        run.change({"target.points": after})
    while not run.finished:
        run.advance(1.0)
    theta = torch.as_tensor(run.draws.reshape(-1, run.target.dim))
    f = run.target.outputs(theta, run.target.x)[..., 0].reshape(128, 400, 6).numpy()
    features = np.concatenate([f, f**2], axis=2).mean(1)
    error = features.std(0, ddof=1) / np.sqrt(128)
    z = (features.mean(0) - known) / np.sqrt(error**2 + 0.004**2)
    assert bool(2 * stats.norm.sf(np.abs(z).max()) * len(z) > LEVEL) is reported, z
