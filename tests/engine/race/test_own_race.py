"""Races on a network, a table or a density of somebody's own are told as those on named targets."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz import diagnostics, samplers
from bnnviz.engine.race import reference
from bnnviz.errors import BnnvizError

LANES = ["hmc", ("hmc", {"num_leapfrog_steps": 5})]
CENTRE, SD = torch.tensor([2.0, -1.0]), torch.tensor([0.5, 3.0])


def potential(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * ((x - CENTRE) / SD).square().sum(-1)


@pytest.fixture(autouse=True)
def short_references(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make references short, by HMC: that of NUTS takes half a minute."""
    hmc = samplers.REGISTRY.get("hmc")
    monkeypatch.setattr(hmc, "traits", dataclasses.replace(hmc.traits, reference_rank=1000))
    for name, value in {"CHAINS": 8, "DRAWS": 40, "WARMUP": 60}.items():
        monkeypatch.setattr(reference, name, value)


@pytest.mark.slow
def test_the_reference_of_a_density_of_ones_own_is_its_truth() -> None:
    race = bnnviz.race(potential, ["hmc", "bps"], dim=2, budget=20_000, chains=4, warmup=20, seed=1)
    truth, (hmc, _) = race._run.measure.truth, race.spec.entries
    # 320 draws of HMC, worth 100 at least: a mean is within 4.5 standard errors sd / sqrt(100).
    assert np.all(np.abs(truth.mean - CENTRE.numpy()) < 4.5 * SD.numpy() / 10)
    np.testing.assert_allclose(truth.sd, SD.numpy(), rtol=4.5 / np.sqrt(2 * 100))
    assert hmc.target == "Your function" and race.entry_draws(0).shape[2] == 2
    assert {row["sampler"] for row in race.table} == {"hmc", "bps"}
    assert all(np.isfinite(row["error"]) for row in race.table)


@pytest.mark.slow
def test_the_reference_is_not_kept_for_another_density_of_the_same_name() -> None:
    bnnviz.race(potential, ["hmc", "bps"], dim=2, budget=4_000, chains=2, warmup=10)
    moved = bnnviz.race(lambda x: potential(x - 50.0), ["hmc", "bps"], dim=2, budget=4_000, chains=2, warmup=10)
    assert np.all(moved._run.measure.truth.mean > 40)


@pytest.mark.slow
def test_a_network_of_ones_own_races() -> None:
    x = np.linspace(-1, 1, 20)[:, None]
    posterior = bnnviz.BNN(torch.nn.Linear(1, 1), (x, x[:, 0]), noise_sd=0.3)
    race = bnnviz.race(posterior, LANES, budget=60_000, chains=2, warmup=20, seed=1)
    assert all(np.isfinite(row["rmse"]) for row in race.table)
    values = race._run.measure.estimates[0].values()
    worst = max(diagnostics.rhat(values[..., i]) for i in range(values.shape[2]))
    first = next(row for row in race.table if row["entry"] == 0)
    assert first["rhat_function_max"] == pytest.approx(worst) and first["ess_function_min"] > 4


@pytest.mark.slow
def test_without_a_reference_nobody_is_ranked_and_the_table_stands(tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 20)[:, None]
    posterior = bnnviz.BNN(torch.nn.Linear(1, 1), (x, x[:, 0]), noise_sd=0.3)
    race = bnnviz.race(posterior, LANES, budget=60_000, chains=2, warmup=20, seed=1, reference=False)
    assert "reference" in race.statement
    assert all(row["rank"] is None and np.isfinite(row["ess_function_min"]) for row in race.table)
    assert race.figure(tmp_path / "race.html").exists()
    with pytest.raises(BnnvizError, match="html"):
        race.figure(tmp_path / "race.pdf")


@pytest.mark.parametrize(
    ("target", "options", "sentence"),
    [
        (potential, {}, "dim"),
        (torch.nn.Linear(1, 1), {}, "BNN"),
        ("network", {"dim": 3}, "dim"),
        (3, {}, "target"),
    ],
)
def test_what_is_no_target_is_refused_as_by_sample(target: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BnnvizError, match=sentence) as reported:
        bnnviz.race(target, ["hmc", "bps"], budget=10_000, **options)
    with pytest.raises(BnnvizError) as same:
        bnnviz.start(target, "hmc", **options)
    assert reported.value.sentence == same.value.sentence
