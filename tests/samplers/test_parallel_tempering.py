"""Parallel tempering against a density of two modes of known weights, and against the same without temperatures."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

import bnnviz
from bnnviz import samplers, targets
from bnnviz.samplers.random import seeded
from tests.truth.chains import LEVEL, compare_moments

HEAVY, APART = 0.8, 4.0


class TwoModes(targets.Target):
    """Two round Gaussians of standard deviation 1 / 2 at -APART and APART, of which the second has the weight HEAVY."""

    title, dim = "Two modes", 2

    def potential(self, x: torch.Tensor) -> torch.Tensor:
        sides = [
            2 * ((x[:, 0] - place) ** 2 + x[:, 1] ** 2) - np.log(weight)
            for place, weight in ((-APART, 1 - HEAVY), (APART, HEAVY))
        ]
        return -torch.logsumexp(-torch.stack(sides), dim=0)

    def gradient(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return U and its gradient in closed form."""
        share = torch.sigmoid(8 * APART * x[:, 0] + np.log(HEAVY / (1 - HEAVY)))
        centre = torch.stack([APART * (2 * share - 1), torch.zeros_like(share)], dim=1)
        return self.potential(x), 4 * (x - centre)

    def initial(self, chains: int, rng: torch.Generator) -> torch.Tensor:
        """Return the light mode's centre for every chain."""
        return torch.tensor([[-APART, 0.0]], dtype=self.dtype).repeat(chains, 1)


def shares(**settings: float) -> np.ndarray:
    """Return the share (chains,) of draws in the heavy mode, of chains that set out from the other one."""
    run = bnnviz.sample(
        TwoModes(),
        "parallel_tempering",
        settings={"temperatures": 5, "num_leapfrog_steps": 4, **settings},
        chains=32,
        draws=300,
        warmup=100,
        seed=1,
        dtype="float64",
    )
    return (run.draws[:, :, 0] > 0).mean(1)


def p_of(shares: np.ndarray) -> float:
    return float(stats.ttest_1samp(shares, HEAVY).pvalue) if shares.std() else 0.0


@pytest.mark.slow
def test_modes_have_their_weights_and_without_temperatures_they_have_not() -> None:
    found = shares()
    assert p_of(found) > LEVEL
    assert found.std() / np.sqrt(len(found)) < 0.03
    assert p_of(shares(hottest=1.0)) < LEVEL


@pytest.mark.parametrize("temperatures", [2, 3])
@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_a_gaussian_is_as_wide_as_the_temperature_says(temperatures: int, temperature: float) -> None:
    settings = {"temperatures": temperatures, "temperature": temperature}
    run = bnnviz.sample(
        "gaussian", "parallel_tempering", settings=settings, chains=48, draws=100, warmup=60, seed=2, dtype="float64"
    )
    target = targets.Gaussian()
    assert compare_moments(run.draws, target.mean(), temperature * target.cov()).p > LEVEL


@pytest.mark.parametrize("temperatures", [2, 3, 6])
def test_whoever_swaps_swaps_with_a_neighbour(temperatures: int) -> None:
    sampler = samplers.REGISTRY.get("parallel_tempering")(temperatures=temperatures)
    sampler.prepare(targets.Gaussian().to("cpu", torch.float64), None)
    rng, own = seeded(0), torch.arange(temperatures)
    for count in range(4):
        potential = 0.1 * torch.rand(50, temperatures, dtype=torch.float64)
        places, share = sampler._swaps(rng, potential, torch.full((50,), float(count)))
        assert (places.sort(1).values == own).all() and ((places - own).abs() <= 1).all()
        assert 0.5 < float(share.mean()) <= 1
