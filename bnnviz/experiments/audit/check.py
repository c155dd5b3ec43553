"""Check records: what each lacks of what its experiment announces and says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bnnviz import data as datasets
from bnnviz import diagnostics
from bnnviz.experiments import notes, results
from bnnviz.experiments.comparison import Figure, figures
from bnnviz.experiments.experiment import Case, Experiment, fingerprint
from bnnviz.experiments.results import Record

_AT_THE_FLOOR = 1.1  # times the ESS of a straight line
_ABOVE_CHANCE = 0.1  # by so much an accuracy has to be above chance to say something
_ONE_DRAW = 1.5  # weight ESS below which one draw has all the weight
_VERSION = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True)
class Checked:
    """One experiment, or a part of one, with its record and what that lacks."""

    experiment: Experiment
    record: Record | None
    lacks: tuple[str, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the record; none where there is no record."""
        return [] if self.record is None else self.record.rows

    @property
    def figures(self) -> list[Figure]:
        """Every figure of every case."""
        return figures(self.experiment, self.rows)


def check(experiment: Experiment) -> list[Checked]:
    """Check the records of an experiment that come with bnnviz: of its first part, and of the others that there are."""
    records, unread = results.shipped(experiment.name)
    parts = {tuple(sorted(record.part.items())): record for record in records}
    first = parts.pop((), None)
    checked = [_checked(experiment, first, unread)]
    for record in parts.values():
        checked.append(_checked(experiment.at(record.part.get("data"), record.part.get("scale")), record, []))
    return checked


def _checked(experiment: Experiment, record: Record | None, unread: list[str]) -> Checked:
    return Checked(experiment, record, (*unread, *_lacks(experiment, record)))


def _lacks(experiment: Experiment, record: Record | None) -> Iterator[str]:
    """Yield what a record lacks, each in a sentence."""
    if record is None:
        if not experiment.beyond:
            yield "There is no record, and no word on why."
        return
    if not _VERSION.fullmatch(record.version):
        yield f"The record's version is {record.version!r}."
    yield from notes.of_record(experiment, record)
    known = {row["case"]: row for row in record.rows}
    for case in experiment.cases:
        yield from _of_case(experiment, case, known.get(case.name), record.rows)
    if not experiment.beyond:
        yield from _silent(experiment, record.rows)


def _of_case(experiment: Experiment, case: Case, row: dict[str, Any] | None, rows: list) -> Iterator[str]:
    """Yield what the record lacks of one case."""
    if row is None:
        return
    if row.get("seeds") != case.seeds[: row["runs"]]:
        yield f"{case.name}: seeds are {row.get('seeds')}, where {case.seeds[: row['runs']]} are announced."
    if row.get("specs") != fingerprint(case.specs[: row["runs"]]):
        yield f"{case.name}: its runs had other settings than they have now."
    note = notes.fill(case.note, case.name, rows)
    if not note and any(row.get(measure) is None for measure in experiment.measures):
        yield f"{case.name}: a figure is missing, and no note says why."
    if not note and any(f.differs or f.alone for f in figures(experiment, rows) if f.case == case.name):
        yield f"{case.name}: it differs from what is published, and no note says why."
    for sentence in notes.contradictions(case.note, case.name, rows):
        yield f"{case.name}: the record contradicts its note: {sentence}"


# --- what says nothing


def _silent(experiment: Experiment, rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield of each measure that says nothing of any case why it does not."""
    measured = [(case, row) for case in experiment.cases for row in rows if row["case"] == case.name and row["runs"]]
    ess = [(row["ess_pc1"], case) for case, row in measured if row.get("ess_pc1") is not None]
    if ess and all(value < _AT_THE_FLOOR * _floor(case) for value, case in ess):
        yield "The ESS of every case is that of a straight line: no chain has mixed."
    accuracies = [(row["accuracy"], case) for case, row in measured if row.get("accuracy") is not None]
    if accuracies and all(value < _chance(case) + _ABOVE_CHANCE for value, case in accuracies):
        yield "The accuracy of every case is about that of chance."
    unsaid = [case.name for case, row in measured if _alone(row) and "weight" not in case.note]
    if unsaid:
        yield f"One draw has all the weight, and no note says so: {', '.join(unsaid)}."


def _alone(row: dict[str, Any]) -> bool:
    return row.get("weights_ess") is not None and row["weights_ess"] < _ONE_DRAW


def _floor(case: Case) -> float:
    """Return the ESS of a trace that goes straight on in every chain, as one that did not mix has it."""
    spec = case.specs[0]
    line = np.linspace(0.0, 1.0, spec.draws)
    return diagnostics.ess(np.stack([line + 2 * chain for chain in range(spec.chains)]))


def _chance(case: Case) -> float:
    classes = datasets.describe(case.specs[0].target_settings["data"])["classes"]
    return 1 / classes if classes else 0.0


def all_checked(experiments: Iterable[Experiment]) -> list[Checked]:
    """Return what `check` finds of each experiment, in order."""
    return [one for experiment in experiments for one in check(experiment)]
