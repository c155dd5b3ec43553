"""Effective sample sizes of tails, functions and U: against known answers, and where a run says them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

import bnnviz
from bnnviz import diagnostics, targets
from bnnviz.engine.evaluation.predictions import Predictor
from bnnviz.engine.monitor.mixing import LiveMixing, measured_mixing
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.models import mlp
from bnnviz.specs.run import Spec
from tests.driven import finished
from tests.engine.monitor.test_components import holding


class Line(nn.Module):
    """A network whose output is its only weight, whatever the input."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.w + 0.0 * x


def autoregressive(rho: float, chains: int = 4, draws: int = 1500, seed: int = 0) -> np.ndarray:
    """Return a stationary AR(1) process of variance 1, (chains, draws)."""
    noise = np.random.default_rng(seed).normal(size=(chains, draws))
    x = noise.copy()
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + math.sqrt(1 - rho**2) * noise[:, t]
    return x


class Slope(targets.Target):
    """U is the coordinate itself."""

    title, dim = "Slope", 1

    def potential(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, 0]


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_the_size_of_u_is_the_known_one_of_an_autoregression(rho):
    found = measured_mixing(holding(autoregressive(rho)[:, :, None], Slope()), None)
    assert found.energy == pytest.approx(6000 * (1 - rho) / (1 + rho), rel=0.2)
    assert math.isnan(found.least) and math.isnan(found.median)


def test_what_is_far_below_in_u_is_not_seen_in_a_coordinate():
    """Chains that turn quickly on slowly changing radii: each coordinate mixes, U does not."""
    rng = np.random.default_rng(1)
    radius, angle = np.exp(0.5 * autoregressive(0.98, seed=2)), rng.uniform(0, 2 * np.pi, (4, 1500))
    draws = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    assert diagnostics.ess(draws[:, :, 0]) > 3000 > 20 * measured_mixing(holding(draws), None).energy


def test_the_size_of_a_function_is_that_of_what_it_is_made_of():
    draws = autoregressive(0.6)[:, :, None]
    target = bnnviz.BNN(Line(), (np.linspace(-1, 1, 5)[:, None], np.zeros(5)))
    run = holding(draws, target)
    found = measured_mixing(run, Predictor(run.target))
    own = diagnostics.ess(draws[:, :, 0].astype(np.float32).astype(float))
    assert found.least == pytest.approx(own, rel=0.01) and found.median == pytest.approx(own, rel=0.01)


def copies(apart: float, draws: int = 300) -> tuple[bnnviz.BNN, np.ndarray]:
    """Return a network, and chains near one place of its weights, each at a copy of it with other units and signs.

    The last chain is ``apart`` from it besides, in one outgoing weight.
    """
    rng = np.random.default_rng(4)
    target = bnnviz.BNN(mlp(1, [5], 1, "tanh"), (np.linspace(-1, 1, 6)[:, None], np.zeros(6)))
    place = rng.normal(size=target.dim)
    chains = place + 0.05 * rng.normal(size=(4, draws, target.dim))
    layer, after = target.units
    chains[3, :, after.weight] += apart
    for chain in chains:
        order, sign = rng.permutation(layer.outputs), rng.choice([-1.0, 1.0], layer.outputs)
        for begin in (layer.weight, layer.bias, after.weight):
            some = slice(begin, begin + layer.outputs)
            chain[:, some] = chain[:, some][:, order] * sign
    return target, chains


@pytest.mark.parametrize("apart", [0.0, 0.5])
def test_chains_at_copies_of_a_network_disagree_on_weights_alone(apart: float) -> None:
    target, draws = copies(apart)
    assert max(diagnostics.rhat(draws[..., i]) for i in range(target.dim)) > 2
    run = holding(draws, target)
    run.origin = torch.as_tensor(draws[0, 0])
    found = measured_mixing(run, Predictor(run.target))
    bad = apart > 0
    assert (found.rhat > 1.05, found.canonical_rhat > 1.05) == (bad, bad)
    live = LiveMixing(run, Predictor(run.target))
    live.take(draws[..., 0])
    rows = {label: (text, tone) for label, text, tone in live.rows()}
    assert (rows["R-hat of functions"][1] == "bad") == bad
    assert (float(rows["R-hat of weights in one order"][0]) > 1.05) == bad


def test_the_tail_is_that_of_the_worse_quantile():
    x = autoregressive(0.0)
    assert diagnostics.ess(x, "tail") == pytest.approx(6000, rel=0.25)
    # One chain stays a while far out: the bulk hardly sees it.
    x[0, :60] = 4.0
    assert diagnostics.ess(x, "tail") < 0.5 * diagnostics.ess(x)
    assert math.isnan(diagnostics.ess(x[:, :3], "tail")) and math.isnan(diagnostics.ess(np.ones((4, 50)), "tail"))


def test_a_summary_of_too_few_draws_says_none():
    run = ViewedRun(Spec(target="gaussian", sampler="bps", chains=2, draws=3, warmup=0).checked())
    finished(run)
    found = run.summary()
    assert [found[name] for name in ("ess_min", "ess_tail_min", "ess_pc1", "ess_energy", "ess_per_s")] == [None] * 5
