"""One network of one's own, and one sampler's instance, in several runs: none notices the others."""

from __future__ import annotations

import time
from pathlib import Path

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


@pytest.mark.slow
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
    chosen = samplers.HMC(num_leapfrog_steps=5, **ANYWHERE)
    first = bnnviz.sample(line, chosen, draws=120)
    before = first.summary()["widening"]
    second = bnnviz.sample("banana", chosen, draws=30)
    assert first.summary()["widening"] == before
    assert second.summary()["settings"]["num_leapfrog_steps"] == 5


def test_predictions_at_new_inputs_take_a_runs_draws_as_they_are(line: bnnviz.BNN) -> None:
    run = bnnviz.sample(line, "hmc", draws=20, chains=2, settings=ANYWHERE)
    new = RNG.normal(size=(7, 2))
    found = line.outputs(run.draws, new)
    flat = run.draws.reshape(-1, 3).astype(float)
    expected = flat[:, :2] @ new.T + flat[:, 2:]
    np.testing.assert_allclose(found[..., 0].detach().numpy(), expected, atol=1e-5)
    whole = np.arange(8).reshape(4, 2)  # whole numbers are numbers too
    torch.testing.assert_close(line.outputs(run.draws, whole), line.outputs(run.draws, whole.astype(float)))
    with pytest.raises(BnnvizError, match=r"\(draws, 3\)"):
        line.outputs(run.draws[..., :2], new)


@pytest.mark.parametrize("changes", [{"module": nn.Linear}, {"module": len}, {"prior_sd": "wide"}, {"noise_sd": -1}])
def test_what_is_no_network_is_refused(changes: dict) -> None:
    with pytest.raises(BnnvizError) as refused:
        bnnviz.BNN(**{"module": nn.Linear(2, 1), "data": (X, Y), **changes})
    assert refused.value.field in changes


def test_data_are_copied_and_may_need_gradients() -> None:
    x, y = X.copy(), torch.tensor(Y, requires_grad=True)
    target = bnnviz.BNN(nn.Linear(2, 1), (x, y))
    x[:] = 0
    np.testing.assert_array_equal(target.x.numpy(), X)
    assert not target.y.requires_grad


def network(hidden: int = 3, scale: float = 1.0) -> bnnviz.BNN:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 1))
    return bnnviz.BNN(module, (X, scale * Y), noise_sd=0.3)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Record half of a run on a network of one's own; return its name."""
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    run = bnnviz.start(network(), "hmc", record="mine", draws=3000, seed=2, settings=ANYWHERE)
    while run.draws.shape[1] < 20:
        time.sleep(0.01)
    run.stop()
    assert run.draws.shape[1] < 3000
    return "mine"


def test_a_recording_goes_on_with_the_network_it_began_with_and_no_other(recorded: str) -> None:
    with pytest.raises(BnnvizError, match="a custom network, which recordings cannot store"):
        bnnviz.resume(recorded)
    with pytest.raises(BnnvizError, match="has 21 dimensions, and the one that this run began with 13"):
        bnnviz.resume(recorded, target=network(5))
    with pytest.raises(BnnvizError, match="not the one that this run began with: where a chain was, U is"):
        bnnviz.resume(recorded, target=network(scale=50.0))
    again = bnnviz.resume(recorded, target=network())
    while again.draws.shape[1] < 200:
        time.sleep(0.01)
    again.stop()
    whole = bnnviz.sample(network(), "hmc", draws=200, seed=2, settings=ANYWHERE).draws
    np.testing.assert_array_equal(again.draws[:, :200], whole)


def test_a_target_that_fails_loses_none_of_the_recorded_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    calls = []

    def potential(x: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) > 2500:
            raise RuntimeError("a mistake of mine")
        return 0.5 * x.square().sum(-1)

    run = bnnviz.start(potential, "hmc", dim=2, draws=10**6, warmup=10, record="mine", settings=ANYWHERE)
    with pytest.raises(RuntimeError, match="a mistake of mine"):
        run.wait()
    kept = bnnviz.recording("mine").draws
    assert run.draws.shape[1] > 20
    np.testing.assert_array_equal(kept, run.draws)


def test_a_recording_on_ones_own_network_is_replayed_with_it(recorded: str, tmp_path: Path) -> None:
    page = bnnviz.replay(bnnviz.recording(recorded, target=network()), tmp_path / "run.html", frames=10)
    assert page.stat().st_size > 100_000
    with pytest.raises(BnnvizError):
        bnnviz.replay(tmp_path / "recordings" / recorded, tmp_path / "again.html")
