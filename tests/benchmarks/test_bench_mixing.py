"""Mixing on networks: what is measured of draws, the reference that is kept, and the rows."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from bnnviz import samplers
from bnnviz.benchmarks import budget, find
from bnnviz.benchmarks.networks import mixing
from bnnviz.benchmarks.networks.mixing import NETWORKS, SIZES, Mixing, NetworkPosterior, distance
from bnnviz.benchmarks.suite import Row
from bnnviz.benchmarks.suites import mixing as suite
from bnnviz.cli.main import main

TINY = NetworkPosterior("tiny", {"data": "moons", "hidden": "2"})


def found(mean: float = 0.0, sd: float = 1.0, stein: float = 0.0, rhat: float = 1.0) -> Mixing:
    """Return what might have been measured, at two inputs."""
    ones = np.ones(3)
    return Mixing(10.0, 20.0, 30.0, 100.0, 400.0, rhat, stein, 0.01, mean * ones, sd * ones)


def test_the_networks_are_those_of_the_table() -> None:
    shapes = {name: network.shape for name, network in NETWORKS.items()}
    assert shapes == {
        "toy_c": "1-25-10-1", "boston": "13-50-1", "energy": "8-50-1", "moons": "2-10-1", "ionosphere": "33-50-1",
    }  # fmt: skip
    assert list(find("mixing").cases) == list(NETWORKS)


def test_draws_of_the_prior_are_measured() -> None:
    target = TINY.target()
    draws = np.random.default_rng(0).standard_normal((4, 200, target.dim))
    measured = mixing.measure(target, draws)
    assert 0 < measured.weight_least <= measured.weight_median
    assert 0 < measured.prediction_least <= measured.prediction_median
    assert measured.rhat < 1.1
    assert abs(measured.stein) > 3 * measured.stein_se  # they are not of the posterior, and that is seen
    assert mixing.measure(target, draws[:, :3]) is None


def test_distances_are_in_standard_deviations_of_the_reference() -> None:
    off = distance(found(mean=1.0, sd=3.0), found(mean=0.0, sd=2.0))
    assert off.mean == pytest.approx(0.5)
    assert off.sd == pytest.approx(0.5)
    assert off.chance == pytest.approx(math.sqrt(2 / 400))


def test_a_reference_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    draws, calls = np.random.default_rng(0).standard_normal((4, 50, TINY.target().dim)), []
    monkeypatch.setattr(budget, "run", lambda *given, **_: calls.append(given) or budget.BudgetRun(draws, {}, 1.0, ""))
    first, second = mixing.reference(TINY, 5.0), mixing.reference(TINY, 5.0)
    assert len(calls) == 1
    np.testing.assert_equal(first, second)


def test_no_figure_stands_without_what_it_is_worth() -> None:
    rows = list(suite.rows_of("nuts", found(stein=0.2, rhat=1.3), found(mean=1.0), 2e6, 4.0, []))
    assert [row.metric for row in rows] == [f"nuts_{size}" for size in SIZES]
    for row in rows:
        assert "+20 ± 1 % (Stein)" in row.more["note"]
        assert "1.00 sd off" in row.more["note"]
        assert "R-hat 1.300" in row.more["note"]
    assert rows[0].value == pytest.approx(5.0)
    assert rows[0].more["per_cpu_second"] == pytest.approx(2.5)
    (few,) = suite.rows_of("nuts", None, found(), 2e6, 4.0, [])
    assert math.isnan(few.value)


def _rows(name: str, per_gradient: float, stein: float = 0.0, rhat: float = 1.0) -> list[Row]:
    return list(suite.rows_of(name, found(stein=stein, rhat=rhat), None, 1e8 / per_gradient, 1.0, []))


def test_only_what_is_right_is_compared_with_nuts() -> None:
    nuts = _rows("nuts", 4.0)
    assert suite.best_pdmp([*nuts, *_rows("bps", 3.0), *_rows("zigzag", 1.0)]).value == pytest.approx(0.75)
    stuck, apart = _rows("bps", 3.0, stein=-0.9), _rows("bps", 3.0, rhat=1.5)
    assert suite.best_pdmp([*nuts, *stuck, *_rows("zigzag", 1.0)]).value == pytest.approx(0.25)
    assert math.isnan(suite.best_pdmp([*nuts, *apart]).value)
    assert not suite.best_pdmp([*nuts, *_rows("hmc", 4.0)]).ok


@pytest.mark.parametrize("name", NETWORKS)
def test_the_density_in_jax_is_the_target_s(name: str) -> None:
    jax = pytest.importorskip("jax")
    from bnnviz.benchmarks.networks.jax_network import network_potential

    jax.config.update("jax_enable_x64", True)
    target = NETWORKS[name].target()
    x = 0.3 * torch.randn(3, target.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    theirs = np.array(jax.vmap(network_potential(target, "float64"))(x.numpy()))
    off = target.potential(x).numpy() - theirs
    assert np.ptp(off) < 1e-8 * np.abs(theirs).max()


@pytest.mark.slow
def test_one_case_in_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    monkeypatch.setattr(suite, "LONGER", 1.0)
    monkeypatch.setattr(budget, "chain_samplers", lambda: [samplers.REGISTRY.get("sghmc")])
    monkeypatch.setattr(suite.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        main(["bench", "mixing", "--case", "moons", "--seconds", "1", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["metric"] == "reference_prediction_least"
    assert rows[-1]["metric"] == "best_pdmp_by_nuts"
    assert all(row["sampler"] == "sghmc" for row in rows[1:-1])
