"""Mini-batches: gradients without bias, what they cost, and what holding a batch does."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from families import PDMPS
from scipy import stats
from torch import nn

from bnnviz import samplers, targets
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.samplers.minibatch import MiniBatch
from bnnviz.samplers.random import RandomNumbers
from bnnviz.specs.run import Spec
from bnnviz.targets.minibatch import Controlled, choose_rows
from tests.truth.chains import LEVEL, compare, compare_moments, run_chains

CHAINS = 512
ROWS = 5


def network(module: nn.Module | None = None, outputs: int = 1, **options) -> targets.BNN:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, 2))
    y = rng.integers(0, outputs, ROWS) if outputs > 1 else rng.standard_normal(ROWS)
    module = module or nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, outputs))
    return targets.BNN(module, (x, y), prior_sd=0.7, **options)


TARGETS = {
    "by hand": lambda: network(noise_sd=0.4),
    "learned noise": lambda: network(noise_sd=0.4, noise="learned"),
    "classes": lambda: network(outputs=3, likelihood="categorical"),
    "by autograd": lambda: network(nn.Sequential(nn.Linear(2, 3), nn.Softplus(), nn.Linear(3, 1))),
    "logistic": lambda: targets.LogisticRegression(rows=10),
    "two data": lambda: targets.TwoData(),
}


def all_batches(target: targets.RowTarget, size: int) -> torch.Tensor:
    return torch.tensor(list(itertools.combinations(range(target.data_rows), size)))


@pytest.mark.parametrize("controlled", [False, True], ids=["plain", "control variates"])
@pytest.mark.parametrize("name", TARGETS)
def test_the_mean_over_all_batches_is_the_gradient(name: str, controlled: bool) -> None:
    target = TARGETS[name]()
    target.to("cpu", torch.float64)
    rng = torch.Generator().manual_seed(0)
    x, v, anchor = torch.randn(3, 1, target.dim, generator=rng, dtype=torch.float64)
    index = all_batches(target, 1 if target.data_rows == 2 else 2)
    batch = target.batch(index)
    if controlled:
        batch = Controlled(batch, anchor, *target.gradient(anchor))
    many = x.expand(len(index), -1).contiguous(), v.expand(len(index), -1).contiguous()
    for found, known in (
        (batch.gradient(many[0]), target.gradient(x)),
        (batch.gradient_and_curvature(*many), target.gradient_and_curvature(x, v)),
        (batch.gradient_and_product(*many), target.gradient_and_product(x, v)),
    ):
        for one, whole in zip(found, known, strict=True):
            torch.testing.assert_close(one.mean(0), whole[0], rtol=1e-9, atol=1e-9)
    assert len(index) == 1 or batch.gradient(many[0])[1].std(0).max() > 0.01 or name == "two data"


def test_the_prior_is_counted_once() -> None:
    """The authors' code multiplied its gradient by the batch size."""
    target = targets.Network(data="toy_c", hidden="3", points=[[0.0, 1.0], [0.5, 2.0]])
    target.to("cpu", torch.float64)
    target.y = target.outputs(torch.zeros(1, target.dim, dtype=torch.float64), target.x)[0, :, 0]
    # At zero weights all residuals are zero, and so is the prior's pull; beyond, the prior alone has this curvature.
    theta = torch.zeros(1, target.dim, dtype=torch.float64)
    v = torch.zeros_like(theta)
    v[0, 0] = 1.0  # a first-layer weight, which nothing depends on while the second layer is zero
    for index in ([[0]], [[1]]):
        assert target.batch(torch.tensor(index)).gradient_and_curvature(theta, v)[2].item() == pytest.approx(1.0)


def test_control_variates_agree_at_their_anchor() -> None:
    target = TARGETS["by hand"]()
    target.to("cpu", torch.float64)
    anchor = 0.3 * torch.ones(1, target.dim, dtype=torch.float64)
    index = all_batches(target, 2)
    batch = Controlled(target.batch(index), anchor, *target.gradient(anchor))
    near = anchor + 1e-3
    spread = [
        b.gradient(p.expand(len(index), -1).contiguous())[1].std(0).max()
        for b, p in ((batch, anchor), (batch, near), (target.batch(index), near))
    ]
    assert spread[0] < 1e-12
    assert spread[1] < 0.02 * spread[2]


def test_batches_are_uniform_and_hold_no_row_twice() -> None:
    index = choose_rows(torch.rand(20_000, 7, generator=torch.Generator().manual_seed(3)), 3).numpy()
    assert all(len(set(row)) == 3 for row in index[:500].tolist())
    sets, counts = np.unique(np.sort(index, axis=1), axis=0, return_counts=True)
    assert len(sets) == 35
    assert stats.chisquare(counts).pvalue > LEVEL


def test_each_row_is_in_a_batch_equally_often() -> None:
    """32 of 100 rows, as they are read before a step; whole sets of rows are counted above."""
    chains, rows, size = 20_000, 100, 32
    x = np.arange(rows, dtype=float)[:, None]
    target = targets.BNN(nn.Linear(1, 1), (x, -x[:, 0])).to("cpu", torch.float64)
    noise = RandomNumbers(torch.Generator().manual_seed(5))
    inputs, observations = MiniBatch(target, size, False, None).draw((), chains, noise)
    assert torch.equal(inputs[..., 0], -observations), "an input was read with another's observation"
    counts, p = np.bincount(observations.neg().long().flatten().numpy(), minlength=rows), size / rows
    # Rows of a batch exclude each other, which takes this share off the counts' covariance.
    statistic = ((counts - chains * p) ** 2).sum() / (chains * p * (1 - p)) * (rows - 1) / rows
    assert stats.chi2.sf(statistic, rows - 1) > LEVEL
    together = [(observations == -a).any(1) & (observations == -b).any(1) for a, b in ((0, 1), (17, 80), (98, 99))]
    share = size * (size - 1) / (rows * (rows - 1))
    for both in together:
        assert stats.binomtest(int(both.sum()), chains, share).pvalue > LEVEL
    # One chain's batch tells nothing of the next one's, nor does one move's of the next.
    again = MiniBatch(target, size, False, None).draw((), chains, noise)[1]
    common = (observations[:-1, :, None] == observations[1:, None, :]).sum((1, 2)).double()
    moved = (observations[:, :, None] == again[:, None, :]).sum((1, 2)).double()
    for shared in (common, moved):
        assert abs(shared.mean() - size * p) / (shared.std() / chains**0.5) < 4.5


@pytest.mark.parametrize(("settings", "price"), [({}, 4), ({"control_variates": True}, 6)])
def test_what_a_step_costs(settings: dict, price: int) -> None:
    """Two gradients with the slope of the rate, of as many rows as the batch has; control variates one more."""
    target = targets.LogisticRegression()
    target.to("cpu", torch.float32)
    sampler = samplers.REGISTRY.get("bps")(batch_size=2, **settings)
    sampler.prepare(target, torch.zeros(3))
    assert sampler.gradients_per_step == price
    whole = samplers.REGISTRY.get("bps")()
    whole.prepare(target, None)
    assert whole.gradients_per_step == 200


REFUSED = [
    ("banana", {"batch_size": 3}, "batch_size = 3 needs a target with data rows, but Banana"),
    ("two_data", {"batch_size": 1, "bound": "exact"}, "set control_variates"),
    ("two_data", {"batch_size": 0}, "batch_size = 0"),
    ("two_data", {"batch": "epoch", "batch_size": 1}, "epoch"),
]


@pytest.mark.parametrize(("target", "settings", "says"), REFUSED)
def test_what_does_not_fit_is_refused(target: str, settings: dict, says: str) -> None:
    with pytest.raises(BnnvizError) as caught:
        ViewedRun(Spec(target=target, sampler="bps", settings=settings, draws=5)).prepare()
    assert says in str(caught.value)
    assert caught.value.field in settings


@pytest.mark.slow
@pytest.mark.parametrize("batch", ["proposal", "event"])
@pytest.mark.parametrize("sampler", PDMPS)
def test_a_batch_that_is_held_is_in_the_checkpoint(sampler: str, batch: str) -> None:
    settings = {"batch_size": 1, "batch": batch, "control_variates": True, "mode_steps": 20}
    run = ViewedRun(Spec(target="two_data", sampler=sampler, settings=settings, draws=20, warmup=5, chains=2, seed=4))
    run.prepare()
    while run.phase == "tuning":
        run.step_proposal()
    restored = ViewedRun.restore(run.checkpoint())
    for one in (run, restored):
        while not one.finished:
            one.advance(0.05)
            one.frame(["path", "envelope", "caption", "table"])
    assert np.array_equal(run.draws, restored.draws)


@pytest.mark.slow
def test_batches_may_change_while_a_run_goes_on() -> None:
    run = ViewedRun(Spec(target="logistic_regression", sampler="bps", draws=None, chains=2, seed=1))
    for settings in ({}, {"batch_size": 5}, {"batch": "event"}, {"batch_size": 10}, {"batch_size": None}):
        if settings:
            run.change(settings)
        until = run.steps + 200
        while run.steps < until:
            run.advance(0.01)
        assert run.frame(["envelope", "caption"])["envelope"]["rate_t"].size
    with pytest.raises(BnnvizError, match="cannot change"):
        run.change({"control_variates": True})


# --- the law that batches leave


def on_two_data(sampler: str, apart: float, draws: int = 100, **settings) -> np.ndarray:
    target = targets.TwoData(apart=apart)
    chosen = samplers.REGISTRY.get(sampler)(spacing=0.7, batch_size=1, **settings)
    scale = torch.tensor([0.6]).double() if sampler == "sigma_bps" else None
    x0 = target.exact_draws(CHAINS, 1)
    return run_chains(target, chosen, x0, draws, mode=np.array([0.2]), scaling=scale)


@pytest.mark.slow
@pytest.mark.parametrize("apart", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("sampler", PDMPS)
def test_a_fresh_batch_at_every_proposal_is_right(sampler: str, apart: float) -> None:
    draws = on_two_data(sampler, apart)
    assert compare(draws[:, 50:], targets.TwoData().exact_draws(400_000, seed=99)).p > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize(("apart", "known"), [(0.5, 0.645), (1.0, 1.03), (2.0, 2.31)])
def test_a_batch_held_between_events_widens_as_known(apart: float, known: float) -> None:
    each = (on_two_data("bps", apart, 300, batch="event")[:, 100:, 0] ** 2).mean(1)
    error = each.std() / np.sqrt(CHAINS)
    # The known figures have three digits, and an error of their own of about as much.
    assert abs(each.mean() - known) < 4 * np.hypot(error, 0.01 * known)
    assert (each.mean() - 0.5) / error > 5


@pytest.mark.slow
def test_fresh_batches_need_a_bound() -> None:
    """A line through the rates of two batches bounds neither those nor any other."""
    each = (on_two_data("bps", 1.0, 300, bound="interpolated")[:, 100:, 0] ** 2).mean(1)
    assert (each.mean() - 0.5) / (each.std() / np.sqrt(CHAINS)) > 5


CASES = [("bps", 10, False), ("bps", 1, True), ("boomerang", 10, True), ("zigzag", 50, True), ("sigma_bps", 10, False)]


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "size", "controlled"), CASES)
def test_logistic_regression_from_batches(sampler: str, size: int, controlled: bool) -> None:
    target = targets.LogisticRegression()
    x0 = np.random.default_rng(1).multivariate_normal(target.mean(), target.cov(), size=CHAINS)
    chosen = samplers.REGISTRY.get(sampler)(spacing=0.7, batch_size=size, control_variates=controlled)
    scale = torch.as_tensor(np.sqrt(np.diag(target.cov()))) if sampler == "sigma_bps" else None
    draws = run_chains(target, chosen, x0, 50, mode=target.mean(), scaling=scale)
    assert compare_moments(draws[:, 25:], target.mean(), target.cov()).p > LEVEL
