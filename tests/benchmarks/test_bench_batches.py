"""The benchmark of mini-batches: its figures from draws that are known, and one short measurement."""

from __future__ import annotations

import numpy as np
import pytest

from bnnviz import targets
from bnnviz.benchmarks import budget
from bnnviz.benchmarks.suites import batches as suite


def test_figures_are_those_of_the_draws() -> None:
    target = targets.LogisticRegression(rows=50)
    draws = np.random.default_rng(0).multivariate_normal(target.mean(), 4 * target.cov(), (4, 2000))
    summary = {"grad_evals": 3_000_000, "violation_share": 0.01, "acceptance": 0.5}
    run = budget.BudgetRun(draws, summary, 2.0, "")
    whole = suite.measured(suite.ALL_ROWS, run, target, 0, None)
    row = suite.measured("exact_1", run, target, 2_000_000, whole)
    assert row.more["ess"] == pytest.approx(8000, rel=0.1)
    assert row.value == pytest.approx(3 * whole.value) and row.goal.limit == whole.value
    assert row.more["per_cpu_second"] == pytest.approx(row.more["ess"] / 2)
    assert row.more["sd_off"] == pytest.approx(1, abs=0.05) and row.more["mean_off"] < 0.1
    assert "1 % of the rates above the envelope" in row.more["note"]


def test_a_plan_without_draws_says_so() -> None:
    none = budget.BudgetRun(np.empty((4, 0, 3)), {}, 1.0, "")
    row = suite.measured("exact_1", none, targets.LogisticRegression(rows=50), 0, None)
    assert np.isnan(row.value) and row.more["note"] == "too few draws"


@pytest.mark.slow
def test_ten_rows_cost_less_than_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "PLANS", {name: suite.PLANS[name] for name in (suite.ALL_ROWS, "exact_10")})
    whole, ten = suite.SUITE.run("bps", 25.0, lambda said: None)
    assert ten.value > 5 * whole.value and ten.more["violations"] == 0
