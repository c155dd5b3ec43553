"""Fill the figures of a record into what is said of it, so that no sentence says what the record does not.

A note names a figure in braces, with how it is written after a bar: ``{rmse|.2f}`` is that of the note's own case,
``{rmse@SGLD|.2f}`` that of another one, ``{band_away / band_near|.0f}`` a ratio, and ``{-widening_share|.0%}`` a figure
with the other sign. A sentence with a figure that the record lacks is left out.

What a sentence claims stands in braces without a bar: in ``It is wider than SGLD's{band_away > band_away@SGLD}.`` the
claim is not printed, and where the record says otherwise, the sentence is left out, and `contradictions` lists it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bnnviz.experiments.experiment import Experiment
    from bnnviz.experiments.results import Record

Rows = Sequence[dict[str, Any]]
_FIELD = re.compile(r"\{([^{}|]+)\|([^{}|]*)\}")
_CLAIM = re.compile(r"\{([^{}|<>]+)([<>])([^{}|<>]+)\}")
_SENTENCE = re.compile(r"(?<=[.:;])\s+(?=[A-Z])")


def fill(note: str, case: str, rows: Rows) -> str:
    """Return a note with the figures of a record."""
    known = {row["case"]: row for row in rows}
    sentences = (_filled(sentence, case, known) for sentence in _SENTENCE.split(note))
    return " ".join(sentence for sentence in sentences if sentence)


def fill_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of an experiment with their notes filled in."""
    rows = list(rows)
    return [row | {"note": fill(row.get("note", ""), row["case"], rows)} for row in rows]


def contradictions(note: str, case: str, rows: Rows) -> list[str]:
    """Return the sentences of a note whose claims are false by the record."""
    known = {row["case"]: row for row in rows}
    return [
        _CLAIM.sub("", _FIELD.sub("...", sentence))
        for sentence in _SENTENCE.split(note)
        if False in _claims(sentence, case, known)
    ]


def of_record(experiment: Experiment, record: Record | None) -> list[str]:
    """Return in words what a record lacks of what its experiment announces."""
    if record is None:
        return []
    announced = {case.name: len(case.specs) for case in experiment.cases}
    found = {row["case"]: row["runs"] for row in record.rows}
    fewer = sorted({(found[name], number) for name, number in announced.items() if 0 < found.get(name, 0) < number})
    sentences = [f"The record holds {_runs(held)} of a case, of {number} announced." for held, number in fewer]
    if missing := [name for name in announced if not found.get(name)]:
        sentences.append(f"The record has nothing on {', '.join(missing)}.")
    return sentences


def with_notes(experiment: Experiment, rows: Rows) -> Experiment:
    """Return an experiment whose notes have the figures of its record."""
    cases = tuple(replace(case, note=fill(case.note, case.name, rows)) for case in experiment.cases)
    return replace(experiment, cases=cases)


def named_figures(note: str) -> list[str]:
    """Return the figures that a note names, in its claims too, each as ``measure`` or ``measure@case``."""
    both = [match[1] for match in _FIELD.finditer(note)]
    both += [side for match in _CLAIM.finditer(note) for side in (match[1], match[3])]
    parts = (part.strip().removeprefix("-") for each in both for part in each.split(" / "))
    return [part for part in parts if not _is_number(part)]


def _filled(sentence: str, case: str, known: dict[str, dict[str, Any]]) -> str | None:
    values = [_value(match[1], case, known) for match in _FIELD.finditer(sentence)]
    if None in values or not all(_claims(sentence, case, known)):
        return None
    coming = iter(values)
    text = _FIELD.sub(lambda match: format(next(coming), match[2]).replace("%", " %"), sentence)
    return _CLAIM.sub("", text)


def _claims(sentence: str, case: str, known: dict[str, dict[str, Any]]) -> Iterator[bool | None]:
    """Yield of each claim of a sentence whether it is true; None where the record lacks a figure."""
    for match in _CLAIM.finditer(sentence):
        left, right = (_value(match[side], case, known) for side in (1, 3))
        if left is None or right is None:
            yield None
        else:
            yield left < right if match[2] == "<" else left > right


def _value(expression: str, case: str, known: dict[str, dict[str, Any]]) -> float | None:
    above, _, below = expression.partition(" / ")
    value = _figure(above, case, known)
    if value is None or not below:
        return value
    by = _figure(below, case, known)
    return None if not by else value / by


def _figure(name: str, case: str, known: dict[str, dict[str, Any]]) -> float | None:
    name = name.strip()
    if _is_number(name):
        return float(name)
    measure, _, other = name.removeprefix("-").partition("@")
    value = known.get(other or case, {}).get(measure)
    return -value if value is not None and name.startswith("-") else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _runs(number: int) -> str:
    return f"{number} run{'' if number == 1 else 's'}"
