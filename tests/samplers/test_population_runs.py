"""Runs of populations: weights are kept with the draws, looked at live and exported, and poor ones are said to be."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz import diagnostics
from bnnviz.engine.race.race import Race
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.specs.race import RaceSpec
from bnnviz.specs.run import Spec
from tests.driven import finished

SMALL = {"draws_each": 20, "sigma0": 0.7}


def spec(sampler: str = "pmcnet", target: str = "banana", **more: object) -> Spec:
    values = {"settings": SMALL, "chains": 6, "draws": 20, "warmup": 60, "seed": 3} | more
    return Spec(target, values.pop("target_settings", {}), sampler, **values)


@pytest.mark.parametrize("sampler", ["pmcnet", "pmcnet_light"])
def test_a_run_keeps_the_weights_of_its_draws(sampler: str) -> None:
    run = finished(ViewedRun(spec(sampler, draws=40)))
    assert run.draws.shape == (6, 40, 2) and run.log_weights.shape == (6, 40)
    # Weights belong to the draws beside them: the target over a mixture that is smooth.
    potential = run.target.potential(torch.as_tensor(run.draws.reshape(-1, 2))).numpy()
    last = run.log_weights[:, 20:].ravel() + potential.reshape(6, 40)[:, 20:].ravel()
    assert np.ptp(last) < 20 and np.isfinite(last).all()


def test_a_checkpoint_goes_on_in_any_phase_with_the_same_draws() -> None:
    whole = finished(ViewedRun(spec()))
    for steps in (1, 2, 3, 4, 5, 18):
        run = ViewedRun(spec())
        run.prepare()
        for _ in range(steps):
            run.step_proposal()
        again = finished(ViewedRun.restore(run.checkpoint()))
        np.testing.assert_array_equal(again.draws, whole.draws)
        np.testing.assert_array_equal(again.log_weights, whole.log_weights)


def test_the_summary_has_weighted_estimates_and_no_r_hat() -> None:
    run = finished(ViewedRun(spec(target="gaussian", chains=20, draws=60, warmup=0, settings=SMALL | {"sigma0": 1.5})))
    found = run.summary()
    assert found["ess_min"] is None and found["rhat_max"] is None
    assert 0 < found["weight_ess"] <= 1200
    weights = diagnostics.normalised(run.log_weights)[..., None]
    np.testing.assert_allclose(found["mean"], (weights * run.draws).sum((0, 1)), rtol=1e-6)
    assert np.all(np.abs(np.array(found["mean"]) - run.target.mean()) < 5 * np.array(found["mean_se"]))
    # Two coordinates, all of U but a constant that the target leaves out.
    assert abs(found["log_z"] - 0.5 * np.linalg.slogdet(2 * np.pi * run.target.cov())[1]) < 5 * found["log_z_se"]


@pytest.mark.parametrize(("target", "seed", "known"), [("funnel", 12, True), ("banana", 0, False)])
def test_draws_that_miss_a_part_are_warned_of_though_k_hat_is_low(
    target: str, seed: int, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = 1000 if known else 2000
    run = finished(ViewedRun(Spec(target, {}, "pmcnet", {}, 10 if known else 50, each, 200, seed)))
    if not known:
        monkeypatch.setattr(type(run.target), "cov", lambda self: None)
    found = run.summary()
    assert found["pareto_k"] < 0.7
    code = "weighted_variance_wrong" if known else "weighted_stein"
    (reported,) = [each for each in found["warnings"] if each.code == code]
    assert f"{found['pareto_k']:.2f}" in reported.values["hidden"]


def test_gradients_count_every_evaluation() -> None:
    run = ViewedRun(spec(draws=None))
    run.prepare()
    before = run.gradients
    counts = []
    for _ in range(5):
        run.step_proposal()
        counts.append(run.gradients - before)
    # Nothing for drawing, one for each draw, nothing for resampling and adapting, the gradient and each try.
    assert counts[:4] == [0, 120, 120, 120] and counts[4] >= 120 + 12


def test_draws_without_weights_are_taken_in_proportion() -> None:
    logs = np.log([[0.5, 0.25], [0.125, 0.125]])
    np.testing.assert_array_equal(diagnostics.systematic(logs.ravel(), 8), [0, 0, 0, 0, 1, 1, 2, 3])
    with pytest.raises(ValueError, match="No draw has a weight"):
        diagnostics.systematic(np.full(3, -np.inf), 4)


def test_errors_of_weighted_means_are_right() -> None:
    """Over many sets of draws their spread is what each says of itself."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(400):
        x = 1.5 * rng.standard_normal((300, 1))
        logs = -0.5 * x[:, 0] ** 2 + 0.5 * (x[:, 0] / 1.5) ** 2
        found.append(diagnostics.weighted_moments(x, logs))
    z = np.array([each.mean / each.mean_se for each in found])
    assert abs(z.std() - 1) < 0.15 and abs(z.mean()) < 0.2
    z = np.array([(each.cov[0, 0] - 1) / each.variance_se[0] for each in found])
    assert abs(z.std() - 1) < 0.2


def test_an_iteration_is_a_step_to_the_next_event() -> None:
    run = ViewedRun(spec(draws=None, warmup=0))
    for iteration in (1, 2):
        run.step_event()
        assert run.steps == 5 * iteration and run.sampler_stats.events == iteration


def test_collapsed_weights_are_an_alarm() -> None:
    settings = {"draws_each": 10, "sigma0": 0.1, "mode_steps": 50}
    network = {"data": "toy_c", "hidden": "10"}
    run = ViewedRun(spec(target="network", target_settings=network, chains=10, settings=settings, draws=None, warmup=0))
    run.step_event()
    frame = run.frame(["caption", "table", "gauge"])
    assert "weights have collapsed" in frame["caption"]["warning"]
    assert frame["gauge"]["share"][-1] < 0.05
    assert frame["table"]["rows"][0][2] == "bad"


@pytest.mark.parametrize(
    ("sampler", "chains", "each"),
    [("pmcnet", 1, 20), ("pmcnet_light", 6, 1), ("pmcnet", 1, 1), ("pmcnet_light", 3, 2)],
)
def test_small_populations_go_on(sampler: str, chains: int, each: int) -> None:
    gaussian = {"size": 4}
    run = ViewedRun(
        spec(sampler, "gaussian", target_settings=gaussian, chains=chains, settings={"draws_each": each}, draws=200)
    )
    finished(run)
    assert run.phase == "done" and np.isfinite(run.log_weights).all()
    if each == 1:
        assert run.notes[0].code == "fixed_covariances"


class Cliff(bnnviz.targets.Target):
    """A normal density on one side of an edge, and nothing on the other: U is infinite, or is not a number."""

    dim = 2

    def __init__(self, edge: float, beyond: float) -> None:
        super().__init__()
        self._edge, self._beyond = edge, beyond

    def potential(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x[:, 0] > self._edge, 0.5 * x.square().sum(1), self._beyond)


@pytest.mark.parametrize("beyond", [math.inf, math.nan])
def test_draws_where_u_is_not_finite_have_no_weight(beyond: float) -> None:
    run = finished(ViewedRun(spec(chains=10), target=Cliff(0.0, beyond)))
    assert run.phase == "done"
    weights = diagnostics.normalised(run.log_weights)
    assert (weights[run.draws[..., 0] <= 0] == 0).all() and not np.isnan(run.log_weights).any()
    assert any("Draws without weight" in row[0] for row in run.sampler_stats.rows())
    assert all(np.isfinite(value) for value in run.summary()["mean"])


def test_a_population_without_any_weight_says_so_and_stays() -> None:
    run = ViewedRun(spec(draws=None, warmup=0), target=Cliff(-math.inf, math.inf))
    run.prepare()
    run.target._edge = 50.0
    run.step_event()
    frame = run.frame(["caption", "population", "table", "gauge", "prediction"])
    assert "weights are zero" in frame["caption"]["warning"]
    np.testing.assert_array_equal(run.state.x, run.state.origin)
    assert run.resampled(5).shape == (0, 2)


def test_a_covariance_that_cannot_be_factorised_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    run = ViewedRun(spec(draws=None, warmup=0))
    run.prepare()
    for _ in range(3):
        run.step_proposal()
    before = run.state.factor.clone()

    def refused(total: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.full_like(total, math.nan), torch.tensor([1, 0, 1, 1, 1, 1])

    monkeypatch.setattr(torch.linalg, "cholesky_ex", refused)
    run.step_proposal()
    torch.testing.assert_close(run.state.factor, before)
    assert run.sampler_stats.summary()["fallbacks"] == 6
    assert "6 could not be factorised" in run.frame(["caption"])["caption"]["text"]


@pytest.mark.slow
def test_a_full_covariance_of_too_many_dimensions_is_refused() -> None:
    big = {"data": "toy_c", "hidden": "100-100"}
    with pytest.raises(BnnvizError, match=r"full covariance of 10,401 dimensions takes 0\.4 GB for each proposal"):
        ViewedRun(spec(target="network", target_settings=big)).prepare()


@pytest.mark.slow
def test_a_entry_of_a_race_is_measured_with_its_weights() -> None:
    entries = tuple(
        Spec("gaussian", {}, name, settings, chains=4, draws=None)
        for name, settings in (("pmcnet", {"draws_each": 25, "sigma0": 1.0}), ("hmc", {}))
    )
    race = Race(RaceSpec(entries, budget=20_000))
    finished(race)
    rows = {row["name"]: row for row in race.table()}
    assert rows["PMCnet"]["error"] < 0.3 and math.isnan(rows["PMCnet"]["rhat"])
    assert all(entry.gradients <= 20_000 for entry in race.entries)


def test_settings_of_the_ablations_change_while_a_run_goes_on() -> None:
    run = ViewedRun(spec(draws=None, warmup=0))
    run.step_event()
    run.change({"gradient": False, "adapt_covariance": False})
    factor = run.state.factor.clone()
    run.step_event()
    torch.testing.assert_close(run.state.factor, factor)
    with pytest.raises(BnnvizError, match="draws_each cannot change"):
        run.change({"draws_each": 30})
