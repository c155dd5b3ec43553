"""Fill the figures of a record into what is said of it, so that no sentence says what the record does not.

A note names a figure in braces, with how it is written after a bar: ``{rmse|.2f}`` is that of the note's own case,
``{rmse@SGLD|.2f}`` that of another one, ``{band_away / band_near|.0f}`` a ratio, and ``{-widening_share|.0%}`` a figure
with the other sign. A sentence with a figure that the record lacks is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bnnviz.experiments.experiment import Experiment
    from bnnviz.experiments.results import Record

Rows = Sequence[dict[str, Any]]
_FIELD = re.compile(r"\{([^{}|]+)\|([^{}|]*)\}")
_SENTENCE = re.compile(r"(?<=[.:;])\s+(?=[A-Z])")


def fill(note: str, case: str, rows: Rows) -> str:
    """Return a note with the figures of a record.

    Parameters
    ----------
    note : str
    case : str
        Whose note it is.
    rows : sequence of dict
        Of the record, as `Experiment.row` gives them; none where nothing was measured.
    """
    known = {row["case"]: row for row in rows}
    sentences = (_filled(sentence, case, known) for sentence in _SENTENCE.split(note))
    return " ".join(sentence for sentence in sentences if sentence)


def fill_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of an experiment with their notes filled in."""
    rows = list(rows)
    return [row | {"note": fill(row.get("note", ""), row["case"], rows)} for row in rows]


def of_record(experiment: Experiment, record: Record | None) -> list[str]:
    """Return in words what a record lacks of what its experiment announces."""
    if record is None:
        return []
    announced = {case.name: len(case.specs) for case in experiment.cases}
    found = {row["case"]: row["runs"] for row in record.rows}
    fewer = sorted({(found[name], number) for name, number in announced.items() if 0 < found.get(name, 0) < number})
    sentences = [f"The record holds {_runs(held)} of a case, of {number} announced." for held, number in fewer]
    if missing := [name for name in announced if name not in found]:
        sentences.append(f"The record has nothing on {', '.join(missing)}.")
    return sentences


def with_notes(experiment: Experiment, rows: Rows) -> Experiment:
    """Return an experiment whose notes have the figures of its record."""
    cases = tuple(replace(case, note=fill(case.note, case.name, rows)) for case in experiment.cases)
    return replace(experiment, cases=cases)


def _filled(sentence: str, case: str, known: dict[str, dict[str, Any]]) -> str | None:
    values = [_value(match[1], case, known) for match in _FIELD.finditer(sentence)]
    if None in values:
        return None
    coming = iter(values)
    return _FIELD.sub(lambda match: format(next(coming), match[2]).replace("%", " %"), sentence)


def _value(expression: str, case: str, known: dict[str, dict[str, Any]]) -> float | None:
    above, _, below = expression.partition(" / ")
    value = _figure(above, case, known)
    if value is None or not below:
        return value
    by = _figure(below, case, known)
    return None if not by else value / by


def _figure(name: str, case: str, known: dict[str, dict[str, Any]]) -> float | None:
    measure, _, other = name.strip().removeprefix("-").partition("@")
    value = known.get(other or case, {}).get(measure)
    return -value if value is not None and name.strip().startswith("-") else value


def _runs(number: int) -> str:
    return f"{number} run{'' if number == 1 else 's'}"
