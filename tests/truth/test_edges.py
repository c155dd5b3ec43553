"""Samplers that reject moves on densities with an edge, a jump or a hole, by moments in closed form.

Stated before looking: each figure within 4.5 standard errors of the means of 64 chains, which twenty exceed once in
7,000; the chains have 300 moves to forget where they began.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

import bnnviz


def gamma(x: Tensor) -> Tensor:
    """Gamma(1.3, 1): the density vanishes slowly at its edge."""
    return torch.where(x > 0, x - 0.3 * x.clamp_min(1e-30).log(), torch.inf).sum(-1)


def beta(x: Tensor) -> Tensor:
    """Beta(1.2, 3), with an edge at both ends."""
    inside = (x > 0) & (x < 1)
    u = -0.2 * x.clamp_min(1e-30).log() - 2 * (1 - x).clamp_min(1e-30).log()
    return torch.where(inside, u, torch.inf).sum(-1)


def ball(x: Tensor) -> Tensor:
    return torch.where(x.square().sum(-1) < 1, 0 * x.sum(-1), torch.inf)


def simplex(x: Tensor) -> Tensor:
    """Dirichlet(2, 3, 4), its last share computed."""
    last = 1 - x.sum(-1)
    inside = (x > 0).all(-1) & (last > 0)
    u = -x[:, 0].clamp_min(1e-30).log() - 2 * x[:, 1].clamp_min(1e-30).log() - 3 * last.clamp_min(1e-30).log()
    return torch.where(inside, u, torch.inf)


def ordered(x: Tensor) -> Tensor:
    """Three normal numbers in order."""
    return torch.where((x[:, 1:] > x[:, :-1]).all(-1), x.square().sum(-1) / 2, torch.inf)


def hole(x: Tensor) -> Tensor:
    """A normal density that is not a number beyond 1.5."""
    return torch.where(x > 1.5, torch.nan, x.square() / 2).sum(-1)


def step(x: Tensor) -> Tensor:
    return (x.square() / 2 + math.log(3) * (x > 0.5)).sum(-1)


def whole(x: Tensor) -> Tensor:
    """A Poisson(3) number, rounded: it has no slope at all."""
    k = x.round()
    return torch.where(k < 0, torch.inf, torch.lgamma(k.clamp_min(0) + 1) - k * math.log(3)).sum(-1) + 0 * x.sum(-1)


class Known(NamedTuple):
    """A density, its dimension, and its means and variances."""

    density: Callable[[Tensor], Tensor]
    mean: list[float]
    variance: list[float]


PHI = math.exp(-(1.5**2) / 2) / math.sqrt(2 * math.pi) / (0.5 * math.erfc(-1.5 / math.sqrt(2)))
ABOVE = 0.5 * math.erfc(0.5 / math.sqrt(2))  # of a normal number above 0.5, and its mean there times that
SLOPE = math.exp(-0.125) / math.sqrt(2 * math.pi)
TOTAL = 1 - 2 * ABOVE / 3
STEP_MEAN = -2 / 3 * SLOPE / TOTAL
STEP_SQUARE = (1 - 2 / 3 * (ABOVE + 0.5 * SLOPE)) / TOTAL
KNOWN = [
    Known(gamma, [1.3], [1.3]),
    Known(beta, [1.2 / 4.2], [1.2 * 3 / 4.2**2 / 5.2]),
    Known(ball, [0, 0], [0.25, 0.25]),
    Known(simplex, [2 / 9, 3 / 9], [2 * 7 / 810, 3 * 6 / 810]),
    Known(ordered, [-0.84628, 0, 0.84628], [0.55947, 0.44867, 0.55947]),
    Known(hole, [-PHI], [1 - 1.5 * PHI - PHI**2]),
    Known(step, [STEP_MEAN], [STEP_SQUARE - STEP_MEAN**2]),
    Known(whole, [3], [3 + 1 / 12]),
]


# Where nothing slopes a path is straight, and NUTS takes trees of the largest depth, for ever.
CASES = [
    (known, sampler) for known in KNOWN for sampler in ("hmc", "nuts") if (known.density, sampler) != (whole, "nuts")
]


@pytest.mark.slow
@pytest.mark.parametrize(("known", "sampler"), CASES, ids=[f"{s}-{k.density.__name__}" for k, s in CASES])
def test_an_edge_a_hole_or_a_jump_is_sampled_right(known: Known, sampler: str) -> None:
    given = {"dim": len(known.mean), "chains": 64, "draws": 150, "warmup": 300, "seed": 2}
    draws = bnnviz.sample(known.density, sampler, **given).draws.astype(float)
    for values, truth in ((draws, known.mean), ((draws - known.mean) ** 2, known.variance)):
        of_chains = values.mean(1)
        error = of_chains.std(0, ddof=1) / math.sqrt(len(of_chains))
        assert (np.abs(of_chains.mean(0) - truth) < 4.5 * error).all(), (of_chains.mean(0), truth, error)


@pytest.mark.parametrize("known", [KNOWN[0], KNOWN[3], KNOWN[4]], ids=lambda known: known.density.__name__)
def test_moments_are_those_of_other_means(known: Known) -> None:
    """Moments of independent draws of NumPy, within four errors."""
    rng = np.random.default_rng(0)
    draws = {
        "gamma": lambda: rng.gamma(1.3, size=(200_000, 1)),
        "simplex": lambda: rng.dirichlet([2, 3, 4], 200_000)[:, :2],
        "ordered": lambda: np.sort(rng.normal(size=(200_000, 3)), 1),
    }[known.density.__name__]()
    for values, truth in ((draws, known.mean), ((draws - known.mean) ** 2, known.variance)):
        assert (np.abs(values.mean(0) - truth) < 4 * values.std(0) / len(draws) ** 0.5).all()
