"""The cap on proposals of the PDMP paper's code: the tenth is a bounce in any case, which is a bias."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz import samplers, targets
from bnnviz.samplers.pdmp.thinning import BOUNCE, REFRESH, REJECTED
from bnnviz.samplers.random import seeded

LINE = {"bound": "interpolated", "alpha": 4.0, "refresh_rate": 0.5, "metric": "unit"}
LEVEL = 4.0  # standard errors


def longest_rejections(most: int | None) -> tuple[int, int]:
    """Return the most rejections between two events, and how many bounces there were at rates of zero."""
    target = targets.Gaussian(size=2).to("cpu", torch.float64)
    sampler = samplers.BPS(most_proposals=most, **LINE)
    sampler.prepare(target, None)
    rng = seeded(1)
    state = sampler.init(torch.as_tensor(target.exact_draws(16, 1)), rng)
    rejected, longest, impossible = np.zeros(16, dtype=int), 0, 0
    for _ in range(400):
        state, info = sampler.step(rng, state)
        kind = info.kind.numpy()
        rejected = np.where((kind == BOUNCE) | (kind == REFRESH), 0, rejected + (kind == REJECTED))
        longest = max(longest, int(rejected.max()))
        impossible += int(((kind == BOUNCE) & (info.rate.numpy() <= 0)).sum())
    return longest, impossible


def test_the_last_of_so_many_proposals_is_a_bounce() -> None:
    assert longest_rejections(3)[0] == 2
    assert longest_rejections(1)[0] == 0
    assert longest_rejections(None)[0] > 5


@pytest.mark.slow
@pytest.mark.parametrize("most", [None, 2])
def test_a_cap_is_biased_and_none_is_right(most: int | None) -> None:
    """On a normal law the line is a bound, and right, so that what is off is the cap's: by far more than chance."""
    made = {"size": 2, "spread": 0.5, "correlation": 0.0}
    run = bnnviz.sample(
        "gaussian", "bps", target_settings=made, settings=LINE | {"most_proposals": most}, chains=64, draws=100,
        warmup=20, seed=2, dtype="float64",
    )  # fmt: skip
    truth = np.diag(np.linalg.inv(targets.Gaussian(**made).quadratic()[1].numpy()))
    each = (run.draws**2).mean(1)
    off = (each.mean(0) - truth) / (each.std(0, ddof=1) / np.sqrt(len(each)))
    assert (np.abs(off).max() > 2 * LEVEL) == (most is not None), off
