"""The results table: printed values with their deviations, z from both errors, and verdicts."""

from __future__ import annotations

import math

import pytest

from bnnviz.experiments import find
from bnnviz.experiments.record import records
from bnnviz.experiments.table import AGREE, DIFFER, UNTESTED, Result, results, summary


def result(ours: float, error: float | None, paper: float, paper_error: float = 0.0, measure: str = "rmse") -> Result:
    return Result("case", measure, ours, error, 5, paper=paper, paper_error=paper_error, paper_n=5)


@pytest.mark.parametrize(
    ("found", "z", "verdict"),
    [
        (result(1.3, 0.3, 2.0, 0.4), -1.4, AGREE),
        (result(1.0, 0.3, 2.0, 0.4), -2.0, AGREE),
        (result(0.9, 0.3, 2.0, 0.4), -2.2, DIFFER),
        (result(30.0, 25.0, 2.76, 0.049), 1.08959, UNTESTED),
        (result(1.0, None, 2.0), None, UNTESTED),
        (result(1.31, 0.001, 2.71, 0.0, "ess_pc1"), -1400.0, UNTESTED),
        (result(1.31, 0.01, 175.0, 13.0, "ess_pc1"), -13.36077, DIFFER),
    ],
)
def test_z_has_both_errors(found: Result, z: float | None, verdict: str) -> None:
    assert found.z == (None if z is None else pytest.approx(z, rel=1e-4))
    assert found.verdict == verdict


def test_values_without_a_partner_have_no_verdict() -> None:
    assert Result("case", "rmse", 1.0, 0.1, 5).verdict == Result("case", "rmse", paper=1.0).verdict == ""
    assert summary([Result("case", "rmse", paper=1.0)]) == "not measured"


def test_a_value_of_a_single_run_varies_as_ours_do() -> None:
    found = {one.measure: one for one in results(find("pmcnet-table2"), records("pmcnet-table2")[0][0])}
    auc = found["auc"]
    assert auc.paper_error == pytest.approx(math.hypot(auc.error * math.sqrt(5), 1e-4 / math.sqrt(12)))
