"""Lines that no rate of a batch exceeds, on losses of a linear predictor: how high they are, what law they leave."""

from __future__ import annotations

import pytest
import torch

import bnnviz
from bnnviz import samplers, targets
from bnnviz.errors import BnnvizError
from bnnviz.samplers.pdmp.bounds.linear_losses import BatchLines
from bnnviz.samplers.pdmp.scaling.preconditioner import Preconditioner
from bnnviz.samplers.random import seeded
from bnnviz.targets.minibatch import Controlled

STRAIGHT = ("bps", "sigma_bps", "zigzag")
EXACT = {"bound": "exact", "batch_size": 1, "control_variates": True}


def logistic(rows: int) -> targets.LogisticRegression:
    target = targets.LogisticRegression(rows=rows)
    target.to("cpu", torch.float64)
    return target


def scaling_of(sampler: str, dim: int) -> Preconditioner | torch.Tensor:
    factor = torch.linalg.cholesky(torch.tensor([[1.0, 0.5, 0.0], [0.5, 2.0, -0.3], [0.0, -0.3, 0.5]]).double())[
        :dim, :dim
    ]
    if sampler == "sigma_bps":
        return factor.diagonal().clone()
    return Preconditioner(torch.ones(dim).double(), factor, torch.linalg.inv(factor))


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("sampler", STRAIGHT)
def test_no_batch_exceeds_its_line(sampler: str, size: int) -> None:
    target, chains = logistic(40), 2000
    generator = torch.Generator().manual_seed(1)
    anchor = torch.tensor([0.3, -0.4, 0.2]).double()
    lines = BatchLines.of(target, anchor)
    process = samplers.REGISTRY.get(sampler)()
    process.prepare(target, None)
    scaling = scaling_of(sampler, 3)
    x = 3 * torch.randn(chains, 3, generator=generator, dtype=torch.float64)
    v = process.draw_velocity(seeded(3), x, scaling)
    t = 2 * torch.rand(chains, generator=generator, dtype=torch.float64)
    directions = process.directions(v, scaling)
    index = torch.rand(chains, 40, generator=generator).topk(size).indices
    batch = Controlled(target.batch(index), anchor[None], *target.gradient(anchor[None]))
    pull = batch.gradient(x + v * t[:, None])[1]
    signed = (directions @ pull[..., None])[..., 0]
    torch.testing.assert_close(signed.clamp_min(0).sum(-1), process.rate(x, v, pull, scaling).clamp_min(0))
    height, slope = lines.terms(directions, x, v)
    assert (signed <= height + slope * t[:, None] + 1e-9).all()


def test_the_line_is_the_rate_where_all_rows_are_alike() -> None:
    """Of two data with one curvature, on the way from the anchor, nothing is given away."""
    target = targets.TwoData()
    target.to("cpu", torch.float64)
    anchor = torch.tensor([0.2]).double()
    x, v = torch.tensor([[0.7], [-1.0]]).double(), torch.tensor([[2.0], [-0.5]]).double()
    height, slope = BatchLines.of(target, anchor).terms(v[:, None], x, v)
    for t in (0.0, 1.5):
        batch = Controlled(target.batch(torch.tensor([[0], [1]])), anchor[None], *target.gradient(anchor[None]))
        rate = (v * batch.gradient(x + v * t)[1]).sum(-1)
        torch.testing.assert_close((height + slope * t)[:, 0], rate)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler", [pytest.param(name, marks=[pytest.mark.slow] * (name != "bps")) for name in STRAIGHT]
)
def test_no_proposal_lies_above(sampler: str) -> None:
    run = bnnviz.sample("logistic_regression", sampler, settings=EXACT, draws=20, warmup=20, chains=8, seed=2)
    assert run.summary()["violation_share"] == 0
    assert 0 < run.summary()["acceptance"] < 1


REFUSED = [
    ("banana", "bps", EXACT, "needs a target with data rows"),
    ("two_data", "boomerang", EXACT, "a process with straight paths"),
    ("two_data", "bps", EXACT | {"control_variates": False}, "set control_variates"),
    ("logistic_regression", "bps", {"bound": "exact"}, "needs a Gaussian target"),
]


@pytest.mark.parametrize(("target", "sampler", "settings", "says"), REFUSED)
def test_what_has_no_such_lines_is_refused(target: str, sampler: str, settings: dict, says: str) -> None:
    with pytest.raises(BnnvizError, match=says):
        bnnviz.sample(target, sampler, settings=settings, draws=5)
