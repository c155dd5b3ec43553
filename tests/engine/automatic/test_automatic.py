"""A sampler chosen by a pilot: which candidate wins, what is filled in, and when the run ends."""

from __future__ import annotations

import time
from collections import deque

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz import samplers
from bnnviz.engine.automatic import tables as limits
from bnnviz.engine.automatic.plan import _Bench, _pilot
from bnnviz.engine.automatic.tables import Limit, automatic, units
from bnnviz.engine.drive import drive, replay
from bnnviz.engine.monitor.verdict import MIXED
from bnnviz.engine.run.run import Run
from bnnviz.models import mlp
from bnnviz.samplers.budget import Budget
from bnnviz.specs.run import Spec


def network(rows: int = 60) -> bnnviz.BNN:
    """Return a small network on a noisy line."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (rows, 1))
    return bnnviz.BNN(mlp(1, [3], 1), (x, x[:, 0] + rng.normal(0, 0.3, rows)), noise="learned", prior="learned")


def test_a_pilot_predicts_rows_that_its_candidates_have_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bnnviz.samplers.mcmc.hmc.MOST_DRAWS", 30)
    bench = _Bench(network(), 2, "auto", 0, time.process_time)
    found = _pilot(bench, 1e3, 1e3 * 0.85 / 3 / 600)  # 600 gradients for each candidate, and time enough
    assert [one.cls.registered for one in found] == ["hmc", "ensemble"]  # too few rows for batches
    for one in found:
        assert len(one.nll) == 12 and np.isfinite(one.nll).all()
        # That of the noise is 0.22; of a network that has learned nothing it is above 1.4.
        assert one.nll.mean() < 1.0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_hmc_as_it_is_proposed_mixes_on_a_linear_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(120, 4))
    y = x @ [0.9, 0.3, -0.3, -0.3] + rng.normal(0, 0.1, 120)
    target = bnnviz.BNN(mlp(4, [20], 1, linear_path=True), (x, y), noise="learned", prior="learned")
    cls = samplers.REGISTRY.get("hmc")
    proposal = cls.proposal(Budget(1e5, 8, len(x), target.dim))
    proposed = {"settings": proposal.settings, "warmup": proposal.warmup, "draws": proposal.draws}
    run = bnnviz.sample(target, "hmc", chains=8, seed=seed, **proposed)
    found = run.summary()
    # Chains that stand still, or stay in a mode, show in either.
    assert found["rhat_function_max"] < MIXED
    assert "stuck" not in {each.code for each in found["warnings"]}


def hmc_run(draws: int = 500) -> Run:
    """Return a run that has not begun."""
    spec = Spec("x", sampler="hmc", chains=2, draws=draws, warmup=100, settings={"mode_steps": 20})
    return Run(spec.checked(own_target=True), target=network())


@pytest.mark.parametrize("sampler", ["nuts", "bps", "sghmc", "pmcnet", "map"])
def test_every_sampler_ends_in_time(sampler: str) -> None:
    """A warm-up of so many moves would take far longer."""

    def potential(x: torch.Tensor) -> torch.Tensor:
        return x.square().sum(-1) / 2

    begun = time.process_time()
    run = bnnviz.sample(potential, sampler, dim=3, draws=10**6, warmup=10**6, chains=2, minutes=1 / 60)
    assert run.phase == "done" and time.process_time() - begun < 7
    assert any(note.code == "ended_early" for note in run.summary()["notes"])
    if sampler != "map":
        assert run.draws.shape[1] > 1


def test_a_warmup_that_was_cut_short_is_repeated_from_its_change_log() -> None:
    run = Run(Spec("banana", sampler="nuts", chains=2, draws=20, warmup=10_000).checked())
    run.prepare()
    run.take(300, 10.0)
    run.end_warmup()
    drive(run, 0.05)
    again = Run(run.begun)
    replay(again, deque(run.changes), slice_s=0.05)
    assert run.store.common(run.alive) == 20
    np.testing.assert_array_equal(again.draws, run.draws)


def test_a_run_ends_when_its_predictions_have_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GOOD_RHAT", 10.0)
    monkeypatch.setattr(limits, "ENOUGH", 1)
    monkeypatch.setattr(limits, "_FIRST", 0.0)  # it looks at once, however few blocks the run has
    run = hmc_run(draws=20_000)
    Limit(run, 1e9)
    drive(run, 0.05)
    assert run.phase == "done" and "converged" in run.notes[-1].values["reason"]


def test_what_is_stated_stays_and_the_rest_is_filled_in() -> None:
    spec = Spec("network", {"data": "toy_c", "hidden": "4"}, draws=7)
    found = automatic(spec, {"data", "hidden", "draws"}, 0.05).spec
    assert found.draws == 7
    chosen = found.target_settings
    assert (chosen["hidden"], chosen["noise"], chosen["prior"]) == ("4", "learned", "learned")
    assert automatic(spec, {"data", "noise", "draws"}, 0.05).spec.target_settings["hidden"] == str(units(20))


def test_sample_chooses_for_a_network_and_not_for_a_density() -> None:
    run = bnnviz.sample(network(), minutes=0.05, draws=10, warmup=20, chains=2)
    assert run.draws.shape[:2] == (2, 10)
    assert any("was chosen" in str(note) for note in run.summary()["notes"])
    assert run.verdict().values["held_out"] is False
    assert bnnviz.sample("gaussian", draws=4, warmup=0, chains=1).spec.sampler == "bps"
