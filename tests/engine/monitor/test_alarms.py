"""Runs whose draws are wrong say so: their spreads are compared with closed forms and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import bnnviz
from benchmarks.posteriors.catalogue import POSTERIORS
from bnnviz import diagnostics


def walls(x: Tensor) -> Tensor:
    """A normal density between two steep walls, into which trajectories run."""
    return x.square().sum(-1) / 2 + 1e6 * (x.abs() - 1).clamp_min(0).square().sum(-1)


def codes(run: bnnviz.Run) -> set[str]:
    return {each.code for each in run.summary()["warnings"]}


@pytest.mark.parametrize("sampler", ["hmc", "parallel_tempering", "nuts"])
def test_trajectories_that_run_into_walls_are_reported(sampler: str) -> None:
    warmup = 0 if sampler == "parallel_tempering" else 10  # which learns step sizes from which nothing diverges
    start = np.zeros((4, 2))
    run = bnnviz.sample(walls, sampler, dim=2, chains=4, draws=50, warmup=warmup, seed=1, start=start)
    assert np.abs(run.draws).max() < 1.1
    assert "divergences" in codes(run)


@pytest.mark.slow
def test_eight_schools_whose_small_spreads_are_missed_are_reported() -> None:
    schools = POSTERIORS["eight_schools_centred"]
    run = bnnviz.sample(schools.potential, "hmc", dim=10, chains=4, draws=250, warmup=150, seed=2)
    assert run.draws[..., 9].std() < 0.8 * schools.reference().sd[9]
    assert codes(run) & {"low_bfmi", "divergences", "stuck"}


def test_chains_that_set_out_from_the_mode_and_stay_near_it_are_reported() -> None:
    """Without refreshments bounces keep the distance from the mode of a round Gaussian for long."""
    settings = {"refresh_rate": 0.0, "start": "mode", "metric": "unit"}
    run = bnnviz.sample(
        lambda x: x.square().sum(-1) / 2, "bps", dim=30, chains=4, draws=60, warmup=0, seed=1, settings=settings
    )
    assert run.draws.std() < 0.9
    tails = [diagnostics.ess(run.draws[..., k].astype(float), "tail") for k in range(30)]
    assert run.summary()["ess_tail_min"] == pytest.approx(min(tails))
    assert codes(run) & {"rhat", "low_energy_ess"}


def test_chains_that_are_lost_at_their_start_are_reported() -> None:
    """U is not a number to the left of zero, where two of four chains are put."""

    def half(x: Tensor) -> Tensor:
        return torch.where(x[:, 0] > 0, x.square().sum(-1) / 2, torch.nan)

    start = np.array([[1.0, 0.0], [-1.0, 0.0], [0.5, 1.0], [-2.0, 0.0]])
    run = bnnviz.sample(half, "hmc", dim=2, start=start, chains=4, draws=20, warmup=5, seed=1)
    assert run.draws.shape[0] == 2
    (lost,) = (each for each in run.summary()["warnings"] if each.code == "lost_chains")
    assert lost.values["numbers"] == [1, 3]
