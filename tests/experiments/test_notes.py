"""What is said of an experiment's figures has them from its record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bnnviz.experiments import EXPERIMENTS, results
from bnnviz.experiments.notes import contradictions, fill, fill_rows, named_figures, of_record, with_notes

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
        ("It is above the other{rmse > rmse@b, c}. Last.", "It is above the other. Last."),
        ("It is below the other{rmse < rmse@b, c}. Last.", "Last."),
        ("It is negative{off < 0}: {off|.2f}.", "It is negative: -0.25."),
        ("It is twice as large{rmse / rmse@b, c > 2}.", "It is twice as large."),
        ("It is below what is missing{rmse < nll}.", ""),
    ],
)
def test_a_note_has_the_figures_of_its_record(note: str, filled: str) -> None:
    assert fill(note, "a", ROWS) == filled


def test_a_sentence_that_its_record_contradicts_is_listed() -> None:
    note = "It is below the other{rmse < rmse@b, c}, at {rmse|.1f}. It is negative{off < 0}. It lacks it{nll > 1}."
    assert contradictions(note, "a", ROWS) == ["It is below the other, at ...."]


def test_the_figures_of_a_note_are_those_of_its_claims_too() -> None:
    note = "Of {-off / rmse@b, c|.0%} it is more{rmse > rmse@d}, below{off < 0.5}."
    assert named_figures(note) == ["off", "rmse@b, c", "rmse", "rmse@d", "off"]


def test_nothing_is_said_of_what_was_not_measured() -> None:
    assert fill("Prior N(0, 1). It has {rmse|.1f}.", "a", []) == "Prior N(0, 1)."


def test_rows_have_their_notes_filled_in() -> None:
    assert [row["note"] for row in fill_rows(ROWS)] == ["", "It has 0.5."]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_figures_in_notes_are_those_of_the_shipped_record(name: str) -> None:
    experiment = EXPERIMENTS[name]
    names = {case.name for case in experiment.cases}
    for part in (part for case in experiment.cases for part in named_figures(case.note)):
        measure, _, other = part.partition("@")
        # The runs of a figure and its neighbour share their notes, and each says what it measures.
        assert not other or other in names, part
        assert measure.isidentifier(), part
    known = results.SHIPPED / f"{name}.json"
    if not known.is_file():
        return
    record = results.read(known, name, here=False)
    for case in with_notes(experiment, record.rows).cases:
        assert "{" not in case.note


def test_a_record_with_fewer_runs_says_so() -> None:
    experiment = EXPERIMENTS["pmcnet-table2"]
    record = results.read(results.SHIPPED / "pmcnet-table2.json", "pmcnet-table2", here=False)
    assert of_record(experiment, record) == []
    assert of_record(experiment, None) == []
    single = replace(record, rows=[row | {"runs": 1} for row in record.rows])
    assert of_record(experiment, single) == ["The record holds 1 run of a case, of 5 announced."]
    fewer = replace(record, rows=record.rows[1:])
    assert of_record(experiment, fewer)[-1] == f"The record has nothing on {record.rows[0]['case']}."
