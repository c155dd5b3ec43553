"""Write docs/papers.md from the records that come with bnnviz: every figure beside the published one.

    python -m bnnviz.experiments.audit.document

A test compares the file with the records.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bnnviz.experiments import EXPERIMENTS, LABELS
from bnnviz.experiments.audit.check import Checked, all_checked
from bnnviz.experiments.comparison import Figure, compare
from bnnviz.experiments.paper import PAPERS, heading, paper_of

PLACE = Path(__file__).parents[3] / "docs" / "papers.md"
_HEAD = """# The papers' figures, beside ours

Written by `python -m bnnviz.experiments.audit.document` from the records in `bnnviz/experiments/records`; a test
compares them. `bnnviz reproduce --all --scale small --check` says what a record lacks, and the page *Papers* has the
pictures, and why figures differ. Ours ± is the standard error over runs; what the papers' own standard errors are they
do not say. Hours are of CPU time. What is wrong in the papers, and what it does: [the corrigendum](corrigendum.md).
"""


def text(checked: Sequence[Checked] | None = None) -> str:
    """Return the document."""
    checked = all_checked(EXPERIMENTS.values()) if checked is None else checked
    parts = [_HEAD, _overview(checked)]
    for paper in PAPERS:
        parts.append(f"## {paper.title}\n")
        parts += [_part(one) for one in checked if paper_of(one.experiment) is paper]
    return "\n".join(parts)


def _overview(checked: Sequence[Checked]) -> str:
    rows = [tuple(described(one).values()) for one in checked]
    return "\n".join(table(("experiment", "place", "runs of a case", "hours", "verdict"), rows)) + "\n"


def described(one: Checked) -> dict[str, str]:
    """Return what a line says of an experiment's record: name, place, runs of a case, hours and verdict."""
    return {
        "experiment": _name(one),
        "place": heading(one.experiment)[1],
        "runs": _runs(one),
        "hours": _hours(one),
        "verdict": _verdict(one),
    }


def _part(one: Checked) -> str:
    """Return the section of an experiment: what it is, and a line for each figure."""
    lines = [f"### {_name(one)}: {heading(one.experiment)[0]}", ""]
    if one.experiment.beyond:
        lines += [one.experiment.beyond, ""]
    rows = [_figure(figure) for figure in one.figures if figure.measured is not None or figure.published is not None]
    if rows:
        lines += [*table(("case", "figure", "published", "ours", "±", "verdict"), rows), ""]
    return "\n".join(lines)


def _figure(figure: Figure) -> tuple[str, ...]:
    published, ours, error = (number(value) for value in (figure.published, figure.measured, figure.error))
    return figure.case, LABELS.get(figure.measure, figure.measure), published, ours, error, figure.verdict


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _name(one: Checked) -> str:
    part = "" if one.record is None else "".join(f", {value}" for value in one.record.part.values())
    return f"{one.experiment.name}{part}"


def _runs(one: Checked) -> str:
    runs = sorted({row["runs"] for row in one.rows if row["runs"]})
    announced = sorted({len(case.specs) for case in one.experiment.cases})
    if not runs:
        return "–"
    return " to ".join(map(str, runs)) + ("" if runs == announced else f" of {announced[-1]}")


def _hours(one: Checked) -> str:
    return "–" if one.record is None else f"{one.record.seconds / 3600:.2g}"


def _verdict(one: Checked) -> str:
    if one.record is None and one.experiment.beyond:
        return "cannot be told on a CPU in an hour"
    return compare(one.figures).text


def number(value: float | None) -> str:
    """Return a figure with four digits; nothing where there is none."""
    return "" if value is None else f"{value:.4g}"


def main() -> int:
    """Write the document; return the exit status."""
    PLACE.write_text(text(), encoding="utf-8")
    sys.stdout.write(f"{PLACE}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
