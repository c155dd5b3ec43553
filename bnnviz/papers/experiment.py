"""What an experiment is: cases of repeated specs, and published numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bnnviz.spec import Spec


@dataclass(frozen=True)
class Case:
    """One row of a table.

    Parameters
    ----------
    name : str
    specs : tuple of Spec
        The repetitions, such as one for each split.
    published : dict of str to float
        The paper's figures, by the names of `Run.summary`.
    note : str
        How the published figures differ in kind from ours.
    at : dict
        Where it stands in a sweep: setting, value and sampler. Empty in a table.
    """

    name: str
    specs: tuple[Spec, ...]
    published: dict[str, float]
    note: str = ""
    at: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """A table or a sweep of a paper.

    Parameters
    ----------
    name, title, doc : str
    measures : tuple of str
        Keys of `Run.summary` that the table shows, or ``ess_per_million``: effective draws of the first component for
        a million gradients of one example each.
    cases : tuple of Case
    """

    name: str
    title: str
    doc: str
    measures: tuple[str, ...]
    cases: tuple[Case, ...]

    @property
    def swept(self) -> bool:
        """Whether its cases are the points of a sweep, which a figure shows."""
        return any(case.at for case in self.cases)

    def reproduce(self, repetitions: int | None = None) -> Iterator[tuple[Case, int, dict[str, Any]]]:
        """Run the cases and yield (case, repetition, summary) as each run ends.

        Parameters
        ----------
        repetitions : int, optional
            Runs of each case; all of them by default.
        """
        from bnnviz.engine.run import Run

        for case in self.cases:
            for i, spec in enumerate(case.specs[:repetitions]):
                run = Run(spec)
                while not run.finished:
                    run.advance(0.5)
                yield case, i, _with_rate(run.summary())

    def row(self, case: Case, summaries: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """Return a case's means and standard errors beside the published figures."""
        summaries = list(summaries)
        row: dict[str, Any] = {"experiment": self.name, "case": case.name, "runs": len(summaries)}
        for key in self.measures:
            values = [s[key] for s in summaries if s.get(key) is not None]
            mean = sum(values) / len(values) if values else None
            row[key] = mean
            row[f"{key}_se"] = _standard_error(values)
            row[f"{key}_published"] = case.published.get(key)
        return row | case.at | {"note": case.note}


def _with_rate(summary: dict[str, Any]) -> dict[str, Any]:
    ess = summary.get("ess_pc1")
    return summary | {"ess_per_million": None if ess is None else 1e6 * ess / summary["grad_evals"]}


def _standard_error(values: list[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    return math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))
