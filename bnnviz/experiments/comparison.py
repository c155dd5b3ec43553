"""Compare measured figures with the published ones: which differ by more than chance would explain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bnnviz.experiments.experiment import Case, Experiment

ERRORS = 2.0  # standard errors that a figure may be off


@dataclass(frozen=True)
class Figure:
    """One figure of one case."""

    case: str
    measure: str
    measured: float | None
    error: float | None
    published: float | None
    sd: float | None = None
    published_sd: float | None = None

    @property
    def paired(self) -> bool:
        """Whether both figures are known."""
        return self.measured is not None and self.published is not None

    @property
    def off(self) -> float | None:
        """By how much ours is above the paper's, in standard errors; None where that is not known."""
        if not self.paired or self.error is None:
            return None
        gap = self.measured - self.published
        if self.error > 0:
            return gap / self.error
        # Runs that are all alike: what is printed is rounded.
        return math.copysign(math.inf, gap) if abs(gap) > _rounding(self.published) else 0.0

    @property
    def alone(self) -> bool:
        """Whether a published figure stands beside a single run, so that nobody can tell whether they differ."""
        return self.paired and self.error is None

    @property
    def verdict(self) -> str:
        """How ours compares with the paper's, in a few words."""
        if self.measured is None:
            return "not measured"
        if self.published is None:
            return "nothing published"
        if self.alone:
            return "a single run"
        if not self.differs:
            return "within two standard errors"
        side = "above" if self.off > 0 else "below"
        return side if math.isinf(self.off) else f"{abs(self.off):.1f} standard errors {side}"

    @property
    def differs(self) -> bool:
        """Whether it is known to be off by more than two standard errors."""
        return self.off is not None and abs(self.off) > ERRORS


def _rounding(printed: float) -> float:
    """Return by how much a figure may be off that is printed with these digits; a hair more, for a tie."""
    return 0.501 * 10.0 ** Decimal(repr(printed)).as_tuple().exponent


@dataclass(frozen=True)
class Comparison:
    """What a comparison comes to."""

    text: str
    near: int = 0
    tested: int = 0


def figures(experiment: Experiment, rows: Iterable[dict[str, Any]]) -> list[Figure]:
    """Return every figure of every case; published ones are the experiment's, not those of a record's rows."""
    known = {row["case"]: row for row in rows}
    return [_figure(case, key, known.get(case.name, {})) for case in experiment.cases for key in experiment.measures]


def _figure(case: Case, key: str, row: dict[str, Any]) -> Figure:
    return Figure(
        case=case.name,
        measure=key,
        measured=row.get(key),
        error=row.get(f"{key}_se"),
        published=case.published.get(key),
        sd=row.get(f"{key}_sd"),
        published_sd=case.published.get(f"{key}_sd"),
    )


def compare(found: Sequence[Figure]) -> Comparison:
    """Return in a line how measured figures compare with published ones."""
    pairs = [figure for figure in found if figure.paired]
    tested = [figure for figure in pairs if figure.off is not None]
    near = sum(not figure.differs for figure in tested)
    if not any(figure.measured is not None for figure in found):
        return Comparison("not measured yet")
    if tested:
        rest = f", {len(pairs) - len(tested)} of a single run" if len(tested) < len(pairs) else ""
        return Comparison(f"{near} of {len(tested)} within two standard errors{rest}", near, len(tested))
    if pairs:
        return Comparison(f"{len(pairs)} published figures beside a single run each")
    return Comparison("measured; nothing is published of just this")
