"""Two modes far apart: whoever sees one of them alone is warned."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

import bnnviz

FEW = {"mode_steps": 1000}


def two_modes(x: Tensor, distance: float = 6.0) -> Tensor:
    off = torch.stack([(x - place).square().sum(-1) / 2 for place in (-distance, distance)])
    return -torch.logsumexp(-off, 0)


def one_mode(x: Tensor) -> Tensor:
    return (x - 6).square().sum(-1) / 2


@pytest.mark.parametrize("distance", [6.0, 20.0])
@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.slow
def test_a_sampler_with_one_centre_names_other_modes(dim: int, distance: float) -> None:
    chosen = FEW | {"start": "one_mode"}
    density = partial(two_modes, distance=distance)
    run = bnnviz.sample(density, "boomerang", dim=dim, chains=8, draws=30, warmup=5, seed=1, settings=chosen)
    assert "other_modes" in {each.code for each in run.summary()["warnings"]}


@pytest.mark.slow
def test_one_mode_has_no_others() -> None:
    run = bnnviz.sample(one_mode, "boomerang", dim=2, chains=8, draws=30, warmup=5, seed=1, settings=FEW)
    assert "other_modes" not in {each.code for each in run.summary()["warnings"]}


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["boomerang", "zigzag", "bps", "hmc", "nuts"])
def test_chains_at_two_modes_disagree(sampler: str) -> None:
    run = bnnviz.sample(two_modes, sampler, dim=1, chains=8, draws=50, warmup=20, seed=1)
    assert {each.code for each in run.summary()["warnings"]} & {"rhat", "low_ess"}
