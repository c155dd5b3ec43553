"""The records that come with bnnviz hold what is announced of them, and the document of all figures is theirs."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bnnviz.cli.main import main
from bnnviz.experiments import EXPERIMENTS, Experiment, results
from bnnviz.experiments.audit import document
from bnnviz.experiments.audit.check import all_checked, check
from bnnviz.experiments.comparison import Figure

TABLE = EXPERIMENTS["pmcnet-table2"]


def lacks(experiment: Experiment) -> list[str]:
    return [sentence for one in check(experiment) for sentence in one.lacks]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what puts changed rows in the place of a shipped record."""
    shipped = results.read(results.SHIPPED / "pmcnet-table2.json", TABLE.name, here=False)
    kept = json.loads((results.SHIPPED / "pmcnet-table2.json").read_text())
    monkeypatch.setattr(results, "SHIPPED", tmp_path)

    def put(*changes: dict[str, Any]) -> None:
        changed = [row | change for row, change in zip(shipped.rows, changes, strict=False)]
        written = kept | {"rows": changed + shipped.rows[len(changes) :]}
        (tmp_path / "pmcnet-table2.json").write_text(json.dumps(written))

    return put


def run_here(line: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line))
    return ended.value.code


def test_records_lack_nothing() -> None:
    found = {one.experiment.name: one.lacks for one in all_checked(EXPERIMENTS.values()) if one.lacks}
    assert not found


def test_records_of_bands_hold_a_picture_of_each_case() -> None:
    drawn = [experiment for experiment in EXPERIMENTS.values() if experiment.bands]
    assert drawn
    for experiment in drawn:
        for record in results.shipped(experiment.name)[0]:
            assert len(record.panels) == len(experiment.cases), experiment.name


def test_the_document_is_that_of_the_records() -> None:
    assert document.PLACE.read_text(encoding="utf-8") == document.text(), (
        "write it with: python -m bnnviz.experiments.audit.document"
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"runs": 4, "seeds": [0, 1, 2, 3]}, "The record holds 4 runs of a case, of 5 announced."),
        ({"runs": 0, "seeds": []}, "The record has nothing on N = 50."),
        ({"seeds": [0, 1, 2, 3, 5]}, "N = 50: seeds are [0, 1, 2, 3, 5], where [0, 1, 2, 3, 4] are announced."),
        ({"specs": "of others"}, "N = 50: its runs had other settings than they have now."),
    ],
)
def test_what_a_record_lacks_is_said(change: dict[str, Any], sentence: str, rows: Any) -> None:
    rows({})
    assert lacks(TABLE) == []
    rows(change)
    assert sentence in lacks(TABLE)


def noted(*notes: str, **changes: Any) -> Experiment:
    """Return the table with other notes."""
    cases = [replace(case, note=note) for case, note in zip(TABLE.cases, notes, strict=False)]
    return replace(TABLE, cases=(*cases, *TABLE.cases[len(cases) :]), **changes)


def test_a_note_that_its_record_contradicts_is_a_lack() -> None:
    assert lacks(noted("More rows help{auc < auc@N = 1600}, says {weights_ess|.1f}.")) == []
    (found,) = lacks(noted("By chance. Fewer rows help{auc > auc@N = 1600}."))
    assert found == "N = 50: the record contradicts its note: Fewer rows help."


def test_a_difference_without_a_note_is_a_lack() -> None:
    assert lacks(noted("")) == ["N = 50: it differs from what is published, and no note says why."]


def test_a_record_that_says_nothing_is_a_lack(rows: Any) -> None:
    rows(*[{"accuracy": 0.52, "weights_ess": 1.2}] * 3)
    found = lacks(noted(*["By chance."] * 3))
    assert found == [
        "The accuracy of every case is about that of chance.",
        "One draw has all the weight, and no note says so: N = 50, N = 400, N = 1600.",
    ]
    assert lacks(noted(*["By chance."] * 3, too_large="What it comes to")) == []


def test_where_there_is_no_record_the_command_is_named(rows: Any) -> None:
    assert lacks(TABLE) == ["There is no record, and no word on why."]
    large = replace(TABLE, too_large="What it comes to")
    assert lacks(large) == []
    assert large.beyond.endswith("on a CPU in an hour; with a GPU: bnnviz reproduce pmcnet-table2.")
    table = EXPERIMENTS["pdmp-table2"]
    assert table.at("cifar10", None).larger_command == "bnnviz reproduce pdmp-table2 --data cifar10 --scale paper"
    assert table.at(None, "paper").beyond == ""


def test_runs_that_are_all_alike_are_compared_as_the_figure_is_printed() -> None:
    assert Figure("a", "accuracy", 0.91549, 0.0, 0.9155).off == 0.0
    assert Figure("a", "accuracy", 0.9154, 0.0, 0.9155).differs
    assert Figure("a", "accuracy", 0.91, 0.01, 0.9155).verdict == "within two standard errors"
    assert Figure("a", "accuracy", 0.90, 0.005, 0.9155).verdict == "3.1 standard errors below"
    assert Figure("a", "accuracy", 0.90, None, 0.9155).verdict == "a single run"


def test_the_command_says_what_records_lack(
    rows: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    rows({})
    assert run_here("reproduce pmcnet-table2 --check") == 0
    assert "records checked, 0 lacks" in capsys.readouterr().err
    rows({"runs": 4, "seeds": [0, 1, 2, 3]})
    assert run_here("reproduce pmcnet-table2 --check --json") == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert "The record holds 4 runs of a case, of 5 announced." in found["lacks"]
    assert run_here("reproduce --all --scale small --check") == 1
    assert "pdmp-table1: There is no record" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("reproduce --check", "Name one experiment, or give --all"),
        ("reproduce pdmp-fig1 --all", "Name one experiment, or give --all"),
        ("reproduce --all --check --repetitions 2", "--check takes no --repetitions"),
        ("reproduce --all --data mnist --check", "--all takes no --data"),
        ("reproduce --all --scale huge --check", "choose one of small, paper"),
        ("reproduce --all --out all.html", "--all takes no --out"),
    ],
)
def test_what_cannot_be_checked_is_refused(line: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here(line) == 2
    assert says in capsys.readouterr().err
