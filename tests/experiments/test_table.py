"""The results table: printed values with their deviations, z from both errors, and verdicts."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from bnnviz.experiments import EXPERIMENTS, find, published
from bnnviz.experiments.record import records
from bnnviz.experiments.table import AGREE, DIFFER, UNTESTED, Result, counts, first_edition, results, summary

FOLDER = Path(published.__file__).parent
#: Tables that print a standard deviation with every value.
EVERY = ("pdmp-table1", "pdmp-table2", "first/pdmp-table1", "first/pdmp-table2", "func-table1")
#: Tables that print one with the values of these methods, or of all but these.
DRAWN = {"pmcnet-table2", "pmcnet-table3", "pmcnet-table6", "pmcnet-table7", "pmcnet-table9", "pmcnet-table10"}
SINGLE = {"ADAM-MLE", "ADAM-MAP", "BBP"}


def rows(table: str) -> list[dict[str, str]]:
    with (FOLDER / f"{table}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("table", [*EVERY, *sorted(DRAWN)])
def test_every_printed_deviation_is_there(table: str) -> None:
    datasets = {row.get("data", "") for row in rows(table)}
    for case, values in (item for data in datasets for item in published.read(table, data).items()):
        printed = table in EVERY or case not in SINGLE
        assert all((value.sd is not None) == printed for value in values.values()), case


def test_no_other_table_prints_deviations() -> None:
    names = {path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.csv")}
    assert names - set(EVERY) - DRAWN == {"pmcnet-table11", "pmcnet-table12"}
    assert {name.removeprefix("first/") for name in names} <= set(EXPERIMENTS)


def test_values_are_in_the_units_of_the_measures() -> None:
    boomerang = published.read("pdmp-table1")["Boomerang"]
    assert boomerang["ess_pc1"] == (901.07, 105.03, pytest.approx(0.01))
    assert published.read("first/pdmp-table1")["Boomerang"]["ess_pc1"].sd == 34.83
    assert published.read("pdmp-table2", "mnist")["BPS"]["ece"] == (0.0522, 0.0344, pytest.approx(1e-4))
    assert published.read("func-table1", "gtsrb")["pSGLD"]["accuracy"] == (0.9017, 0.0039, pytest.approx(1e-4))
    assert published.read("pmcnet-table10", "naval")["MCDropout"]["mse"][:2] == (1.6158e-4, 1.2333e-5)


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


def test_table_1_of_the_pdmp_paper() -> None:
    """With sd / sqrt(5) and rounding, 10 of 27 values are within two standard errors; four of them test nothing."""
    experiment = find("pdmp-table1")
    found = [one for one in results(experiment, records("pdmp-table1")[0][0]) if one.paired]
    assert (len(found), sum(abs(one.z) <= 2 for one in found)) == (27, 10)
    assert counts(found) == {AGREE: 6, DIFFER: 14, UNTESTED: 7}
    by_name = {(one.case, one.measure): one for one in found}
    rmse = by_name["BPS, all rows", "rmse"]
    assert rmse.paper_error == pytest.approx(math.hypot(0.11 / math.sqrt(5), 0.01 / math.sqrt(12)))
    assert rmse.z == pytest.approx(-1.71, abs=0.01)
    assert by_name["Boomerang, reference for prior, all rows", "ess_pc1"].z == pytest.approx(-18.9, abs=0.05)
    assert by_name["BPS, Algorithm 2, all rows", "rmse"].verdict == UNTESTED
    assert by_name["SGLD", "ess_pc1"].verdict == UNTESTED


def test_a_value_of_a_single_run_varies_as_ours_do() -> None:
    found = {one.measure: one for one in results(find("pmcnet-table2"), records("pmcnet-table2")[0][0])}
    auc = found["auc"]
    assert auc.paper_error == pytest.approx(math.hypot(auc.error * math.sqrt(5), 1e-4 / math.sqrt(12)))


def test_the_first_edition_is_not_compared() -> None:
    found = first_edition(find("pdmp-table1"))
    assert {one.verdict for one in found} == {""}
    assert next(one.paper for one in found if (one.case, one.measure) == ("BPS", "mse")) == 3.81
    assert first_edition(find("func-wells")) == []


def test_the_first_edition_interchanges_two_columns() -> None:
    """On CIFAR-100 its ECEs are within 5 % of the corrected NLLs, except that of BPS (docs/corrigendum.md)."""
    first, corrected = (published.read(name, "cifar100") for name in ("first/pdmp-table2", "pdmp-table2"))
    off = {case: first[case]["ece_printed"].value / corrected[case]["nll"].value - 1 for case in first}
    assert {case for case in off if abs(off[case]) > 0.05} == {"BPS"}
