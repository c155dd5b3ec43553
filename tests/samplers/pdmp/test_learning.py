"""What the warm-up of a PDMP learns: metrics, references, the share of refreshments, and when U has arrived."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from families import some_quick

from bnnviz import samplers, targets
from bnnviz.engine.run.run import Run
from bnnviz.samplers.pdmp.scaling.preconditioner import Preconditioner
from bnnviz.samplers.pdmp.warmup import Energies, RefreshCounts
from bnnviz.samplers.random import seeded
from bnnviz.specs.run import Spec
from tests.driven import finished

ALL = torch.ones(4, dtype=torch.bool)


def run_of(sampler: str, target: str = "gaussian", draws: int = 1, chains: int = 4, **more: Any) -> Run:
    spec = Spec(
        target=target,
        sampler=sampler,
        draws=draws,
        chains=chains,
        warmup=0,
        seed=1,
        device="cpu",
        dtype="float64",
        **more,
    )
    return Run(spec)


def windows_of(rows: torch.Tensor) -> Energies:
    """Return the energies of a warm-up whose windows had these means (windows, chains)."""
    energies = Energies(torch.zeros(rows.shape[1], dtype=torch.float64))
    for row in rows.double():
        energies = energies.added(row, torch.ones_like(row, dtype=torch.bool)).window_ended()
    return energies


def noise(windows: int) -> torch.Tensor:
    return torch.randn(windows, 4, generator=torch.Generator().manual_seed(windows))


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_u_that_climbs_or_falls_has_not_arrived(way: float) -> None:
    steady = way * torch.arange(40.0)[:, None].expand(-1, 4)
    assert not windows_of(steady + 0.1 * noise(40)).arrived(ALL)
    # A transient that is over is forgotten: half of the windows count.
    assert windows_of(way * 1000 * torch.exp(-torch.arange(40.0))[:, None] + noise(40)).arrived(ALL)


@pytest.mark.parametrize("windows", [8, 16, 60])
def test_u_that_stays_has_arrived(windows: int) -> None:
    assert windows_of(noise(windows)).arrived(ALL)
    assert not windows_of(noise(windows)[:7]).arrived(ALL)


def test_the_refresh_rate_makes_a_share_of_events() -> None:
    counts = RefreshCounts.begun(1.0, torch.zeros(1, dtype=torch.float64))
    counts = counts.added(torch.ones(60, dtype=torch.bool), torch.full((60,), 0.5, dtype=torch.float64))
    assert counts.is_off(0.75)
    # Two bounces per unit of time: six refreshments.
    assert float(counts.tuned(0.75).rate) == pytest.approx(6.0)
    assert not counts.tuned(0.75).is_off(0.75)


@pytest.mark.parametrize(("sampler", "share"), [("bps", 0.6), ("zigzag", 0.2)])
def test_a_run_has_the_requested_share_of_refreshments(sampler: str, share: float) -> None:
    settings = {"refresh_share": share, "metric": "unit"}
    run = finished(run_of(sampler, chains=64, draws=40, target_settings={"size": 5}, settings=settings))
    found = run.stats
    # Six thousand events: a standard error of .006; the rate itself is known to within a tenth.
    assert found["refreshes"] / found["events"] == pytest.approx(share, abs=0.05)


def test_each_chain_of_a_network_has_scales_of_its_own() -> None:
    sd = torch.tensor([[1.0, 0.1], [10.0, 3.0]], dtype=torch.float64)
    unit = Preconditioner.unit(torch.ones(2, dtype=torch.float64), dense=False).of_each(2)
    sums, rng = None, torch.Generator().manual_seed(0)
    for _ in range(400):
        x = sd * torch.randn(2, 2, generator=rng, dtype=torch.float64)
        sums = unit.added(sums, x, x / sd**2, torch.ones(2, dtype=torch.bool))
    learned = unit.learned(sums)
    assert torch.allclose(learned.scale, sd, rtol=0.15)
    assert torch.equal(learned.of_chains(torch.tensor([1])).scale, learned.scale[1:])


def test_a_dense_metric_and_its_inverse_are_those_of_the_target() -> None:
    cov = torch.tensor([[4.0, 1.8], [1.8, 1.0]], dtype=torch.float64)
    unit = Preconditioner.unit(torch.ones(2, dtype=torch.float64), dense=True)
    sums, rng = None, torch.Generator().manual_seed(0)
    for _ in range(400):
        x = torch.randn(4, 2, generator=rng, dtype=torch.float64) @ torch.linalg.cholesky(cov).T
        sums = unit.added(sums, x, x @ torch.linalg.inv(cov), ALL)
    learned = unit.learned(sums)
    assert torch.allclose(learned.factor @ learned.factor.T, cov, rtol=0.02)
    assert torch.allclose(learned.undo(learned.apply(x)), x)


@pytest.mark.parametrize(
    ("sampler", "settings"),
    some_quick(
        [("bps", {"metric": "dense", "refresh_share": 0.5}), ("zigzag", {"metric": "diagonal"}), ("boomerang", {})], 1
    ),
)
def test_nothing_is_learned_after_the_warm_up(sampler: str, settings: dict[str, Any]) -> None:
    run = run_of(sampler, draws=20, chains=8, target_settings={"size": 3, "spread": 3.0}, settings=settings)
    run.prepare()
    while run.phase == "tuning":
        run.advance(0.05)
    learned = run.state.adaptation
    finished(run)
    assert run.state.adaptation is learned
    assert not learned.rounds_left and learned.points is None and not learned.energies.windows


NETWORK = {"data": "toy_c", "hidden": "3"}


@pytest.mark.parametrize(("start", "apart"), [("auto", True), ("one_mode", False)])
@pytest.mark.parametrize("sampler", ["bps", "boomerang"])
def test_chains_of_a_network_begin_at_modes_of_their_own_or_at_one(sampler: str, start: str, apart: bool) -> None:
    run = run_of(sampler, "network", target_settings=NETWORK, settings={"start": start, "mode_steps": 50})
    run.prepare()
    assert ((run.state.x - run.state.x[0]).abs().max() > 0.01) == apart
    if sampler == "boomerang":
        centre = run.state.adaptation.scaling.centre
        assert torch.allclose(centre, run.state.x if apart else run.mode)


def test_a_boomerang_sets_out_from_modes_of_a_density() -> None:
    target = targets.Gaussian(mean=[3.0, -1.0], cov=[[4.0, 0.6], [0.6, 0.25]])
    run = Run(Spec(sampler="boomerang", chains=4, draws=1, device="cpu", dtype="float64"), target=target)
    run.prepare()
    assert torch.allclose(run.state.x, torch.tensor([3.0, -1.0], dtype=torch.float64), atol=0.05)


def test_a_reference_of_each_chain_is_drawn_and_pulled_by_its_own() -> None:
    sampler = samplers.REGISTRY.get("boomerang")()
    target = targets.REGISTRY.get("network")(**NETWORK).to("cpu", torch.float64)
    sampler.prepare(target, torch.zeros(target.dim, dtype=torch.float64))
    x0 = torch.randn(3, target.dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scaling = sampler.init(x0, seeded(0)).adaptation.scaling
    each = [sampler.scaling_of(scaling, torch.tensor([chain])) for chain in range(3)]
    together = scaling.pull(x0)
    assert all(torch.equal(together[k : k + 1], each[k].pull(x0[k : k + 1])) for k in range(3))
    assert not torch.allclose(scaling.precision[0], scaling.precision[1])
