"""What is said of an experiment's figures has them from its record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bnnviz.experiments import EXPERIMENTS, results
from bnnviz.experiments.comparison import figures
from bnnviz.experiments.notes import _FIELD, fill, fill_rows, of_record, with_notes

ROWS = [
    {"case": "a", "runs": 1, "rmse": 2.0, "off": -0.25, "note": ""},
    {"case": "b, c", "runs": 2, "rmse": 0.5, "off": None, "note": "It has {rmse|.1f}."},
]


@pytest.mark.parametrize(
    ("note", "filled"),
    [
        ("It has {rmse|.2f}.", "It has 2.00."),
        ("It has {rmse@b, c|.1f}.", "It has 0.5."),
        ("It is {rmse / rmse@b, c|.0f} times as large.", "It is 4 times as large."),
        ("It is {-off|.0%} too small.", "It is 25 % too small."),
        ("First. It lacks {nll|.1f}. Last.", "First. Last."),
        ("It lacks {off@b, c|.1f}, so much.", ""),
        ("It lacks {rmse@d|.1f}.", ""),
    ],
)
def test_a_note_has_the_figures_of_its_record(note: str, filled: str) -> None:
    assert fill(note, "a", ROWS) == filled


def test_nothing_is_said_of_what_was_not_measured() -> None:
    assert fill("Prior N(0, 1). It has {rmse|.1f}.", "a", []) == "Prior N(0, 1)."


def test_rows_have_their_notes_filled_in() -> None:
    assert [row["note"] for row in fill_rows(ROWS)] == ["", "It has 0.5."]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_figures_in_notes_are_those_of_the_shipped_record(name: str) -> None:
    experiment = EXPERIMENTS[name]
    names = {case.name for case in experiment.cases}
    fields = [match[1] for case in experiment.cases for match in _FIELD.finditer(case.note)]
    for part in (part for field in fields for part in field.split(" / ")):
        measure, _, other = part.strip().removeprefix("-").partition("@")
        # The runs of a figure and its neighbour share their notes, and each says what it measures.
        assert not other or other in names, part
        assert measure.isidentifier(), part
    known = results.SHIPPED / f"{name}.json"
    if not known.is_file():
        return
    record = results.read(known, name, here=False)
    for case in with_notes(experiment, record.rows).cases:
        assert "{" not in case.note
    unsaid = {f.case for f in figures(experiment, record.rows) if f.differs}
    assert unsaid <= {case.name for case in experiment.cases if case.note}, "a difference has no note"


def test_a_record_with_fewer_runs_says_so() -> None:
    experiment = EXPERIMENTS["pdmp-fig3"]
    record = results.read(results.SHIPPED / "pdmp-fig3.json", "pdmp-fig3", here=False)
    assert of_record(experiment, record) == ["The record holds 1 run of a case, of 5 announced."]
    assert of_record(experiment, None) == []
    fewer = replace(record, rows=record.rows[1:])
    assert of_record(experiment, fewer)[-1] == f"The record has nothing on {record.rows[0]['case']}."
