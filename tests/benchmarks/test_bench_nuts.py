"""NUTS beside numpyro's: the densities are what they are said to be, and the rows say what was found."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from bnnviz.benchmarks import budget, find

suite = import_module("bnnviz.benchmarks.suites.nuts")


def test_the_gaussian_has_its_moments() -> None:
    density = suite.DENSITIES["gaussian"]()
    potential, options = density.ours
    scales = torch.logspace(-1, 1, 50, dtype=torch.float64)
    x = scales * torch.randn(3, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert options == {"dim": 50} and density.dim == 50
    torch.testing.assert_close(potential(x), 0.5 * (x / scales).square().sum(1), rtol=1e-6, atol=0)


def test_draws_are_judged_by_their_worst_coordinate_and_too_few_not_at_all() -> None:
    density = suite.DENSITIES["gaussian"]()
    draws = np.random.default_rng(0).standard_normal((4, 500, 50))
    draws[..., 7] = np.repeat(draws[:, ::50, 7], 50, axis=1)
    found = suite.judge(density, draws, 10.0, 2.0)
    assert found.ess < 100 and found.draws == 500 and np.isnan(found.prediction_ess)
    assert suite.judge(density, draws[:, :3], 10.0, 2.0).ess == 0
    assert suite.judge(density, np.empty((0, 0, 0)), 0.0, 1.0).draws == 0


def test_the_rows_of_a_network_compare_weights_and_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict] = []

    def run(target: str, sampler: str, seconds: float, **options: object) -> budget.BudgetRun:
        seen.append(options)
        dim = suite.DENSITIES["network"]().dim
        draws = np.random.default_rng(0).standard_normal((4, 20, dim)).astype("float32")
        return budget.BudgetRun(draws, {"grad_evals": 100}, seconds, "")

    monkeypatch.setattr(budget, "run", run)
    monkeypatch.setattr(suite, "_compiled_before", lambda density: 1.0)
    peer = suite.Found(10.0, 1.0, 40.0, 1.0, 20, 100.0, 10.0)
    monkeypatch.setattr(suite, "_theirs", lambda density, seconds: peer)
    monkeypatch.setattr(suite.util, "find_spec", lambda name: True)
    rows = {row["metric"]: row for row in find("nuts").run("network", 10.0, lambda sentence: None)}
    assert set(rows) == {
        "numpyro_rate", "numpyro_prediction_rate", "compiling",
        "compiled_by_numpyro", "compiled_prediction_by_numpyro", "eager_by_numpyro", "eager_prediction_by_numpyro",
    }  # fmt: skip
    assert [options["kernel"] for options in seen] == ["compiled", "eager"]
    row = rows["eager_prediction_by_numpyro"]
    assert row["value"] == pytest.approx(row["prediction_ess"] / 40.0) and "against 4 a CPU s" in row["note"]


@pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")
@pytest.mark.parametrize("name", list(suite.DENSITIES))
def test_numpyro_has_the_same_density(name: str) -> None:
    density = suite.DENSITIES[name]()
    target, options = density.ours
    x = 0.3 * torch.randn(2, density.dim, generator=torch.Generator().manual_seed(0))
    ours = density.network.potential(x.double()) if density.network is not None else target(x)
    theirs = [float(density.theirs()(row.numpy())) for row in x]
    assert float(ours[0] - ours[1]) == pytest.approx(theirs[0] - theirs[1], rel=1e-4)
