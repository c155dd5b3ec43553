"""One network of one's own, and one sampler's instance, in several runs: none notices the others."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import bnnviz
from bnnviz import BnnvizError, samplers

ANYWHERE = {"start": "random"}  # no descent, which takes longer than all the rest
RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 2))
Y = X @ [1.0, -0.5] + 0.3 * RNG.normal(size=40)


class Line(nn.Module):
    """A module whose gradients are taken by automatic differentiation."""

    def __init__(self) -> None:
        super().__init__()
        self.slope, self.height = nn.Parameter(torch.zeros(2, 1)), nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.slope + self.height


@pytest.fixture
def line() -> bnnviz.BNN:
    return bnnviz.BNN(Line(), (X, Y), noise_sd=0.3)


def test_runs_at_the_same_time_draw_what_they_draw_alone(line: bnnviz.BNN) -> None:
    alone = bnnviz.sample(line, "hmc", draws=60, warmup=20, settings=ANYWHERE).draws
    other = bnnviz.start(line, "bps", draws=None, settings=ANYWHERE)
    together = bnnviz.sample(line, "hmc", draws=60, warmup=20, settings=ANYWHERE).draws
    other.stop()
    np.testing.assert_array_equal(together, alone)


def test_another_precision_alters_neither_the_network_nor_a_run_before(line: bnnviz.BNN) -> None:
    first = bnnviz.sample(line, "hmc", draws=50, settings=ANYWHERE)
    double = bnnviz.sample(line, "hmc", draws=50, dtype="float64", settings=ANYWHERE)
    assert first.summary()["draws"] == 50
    np.testing.assert_array_equal(line.x.numpy(), X)
    fresh = bnnviz.BNN(Line(), (X, Y), noise_sd=0.3)
    np.testing.assert_array_equal(
        double.draws, bnnviz.sample(fresh, "hmc", draws=50, dtype="float64", settings=ANYWHERE).draws
    )


def test_a_samplers_instance_serves_one_run_after_another(line: bnnviz.BNN) -> None:
    chosen = samplers.HMC(leaps=5, **ANYWHERE)
    first = bnnviz.sample(line, chosen, draws=120)
    before = first.summary()["widening"]
    second = bnnviz.sample("banana", chosen, draws=30)
    assert first.summary()["widening"] == before
    assert second.summary()["settings"]["leaps"] == 5


def test_predictions_at_new_inputs_take_a_runs_draws_as_they_are(line: bnnviz.BNN) -> None:
    run = bnnviz.sample(line, "hmc", draws=20, chains=2, settings=ANYWHERE)
    new = RNG.normal(size=(7, 2))
    found = line.outputs(run.draws, new)
    flat = run.draws.reshape(-1, 3).astype(float)
    expected = flat[:, :2] @ new.T + flat[:, 2:]
    np.testing.assert_allclose(found[..., 0].detach().numpy(), expected, atol=1e-5)
    with pytest.raises(BnnvizError, match=r"\(draws, 3\)"):
        line.outputs(run.draws[..., :2], new)
