"""Write the results table as Markdown and HTML, for the Papers page and for docs/papers.md and docs/corrigendum.md.

    python -m bnnviz.experiments.render

writes the two documents. docs/corrigendum.md is written by hand except its tables: a mark before each names the cases
and measures of a record (``<!-- record: EXPERIMENT | CASE | CASE | MEASURE MEASURE -->``) or a table of both editions
of the PDMP paper (``<!-- editions: EXPERIMENT DATA -->``), and ``<!-- end -->`` follows.
"""

from __future__ import annotations

import html as escaping
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bnnviz.experiments import EXPERIMENTS, LABELS, find, published
from bnnviz.experiments.experiment import Experiment
from bnnviz.experiments.paper import PAPERS, heading, paper_of
from bnnviz.experiments.record import Record, records
from bnnviz.experiments.table import AGREE, DIFFER, UNTESTED, Result, results, summary

DOCS = Path(__file__).parents[2] / "docs"
KEY = "Ours ± standard error = the paper's ± standard error; = agree, ≠ differ, ? untested; z in standard errors."
_SIGNS = {AGREE: "=", DIFFER: "≠", UNTESTED: "?", "": "?"}
_MARK = re.compile(r"(<!-- (record|editions): (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)
_AVERAGED = "_averaged"
_EDITIONS = ("first", "corrected")
_INTRO = """# The papers' tables, and ours

This page is written by `python -m bnnviz.experiments.render`. The page *Papers* of the dashboard has the figures too.
`bnnviz reproduce NAME` repeats an experiment.
[The corrigendum](corrigendum.md) lists errors in the papers.

z is the difference in standard errors. It has both errors and the rounding of the printed value. The printed standard
deviations of the PDMP paper and of the functional paper are over five runs and are divided by the square root of five.
PMCnet's values are of a single run, which is taken to vary as much as a run of ours. Values agree if |z| is at most 2.
A comparison is untested if we have a single run, if two standard errors are more than half of the printed value, or if
a printed ESS is at the lower limit of its estimator (about 2.7).
"""


def cell(result: Result) -> str:
    """Return our value with its error, the sign of the verdict and the paper's value with its error."""
    ours = number(result.ours, result.error)
    if result.paper is None:
        return ours
    paper = f"{result.paper:.6g}" + (f" ± {result.paper_error:.2g}" if result.paper_n > 1 else "")
    z = "" if result.z is None else f" (z {result.z:.1f})"
    return f"{ours} {_SIGNS[result.verdict]} {_signed(paper + z)}"


def number(value: float | None, error: float | None = None) -> str:
    """Write a value to the second digit of its error, or with four digits."""
    if value is None:
        return "–"
    if not error or not math.isfinite(error):
        return _signed(f"{value:.4g}")
    digits = 1 - math.floor(math.log10(error))
    if not -6 < digits < 7:
        return _signed(f"{value:.3g} ± {error:.2g}")
    return _signed(f"{value:.{max(digits, 0)}f} ± {error:.{max(digits, 0)}f}")


def _signed(text: str) -> str:
    return re.sub(r"-(?=\d)", "−", text)


def grid(found: Sequence[Result]) -> tuple[list[str], list[list[Result | str]]]:
    """Return the head and the lines of a table: a line for each case, and a column for each measure."""
    measures = list(dict.fromkeys(result.measure for result in found))
    lines: dict[str, dict[str, Result]] = {}
    for result in found:
        lines.setdefault(result.case, {})[result.measure] = result
    head = ["case", *(LABELS.get(measure, measure) for measure in measures)]
    return head, [[case, *(line.get(m, "–") for m in measures)] for case, line in lines.items()]


def markdown(head: Sequence[str], lines: Iterable[Sequence[Result | str]]) -> str:
    """Write a table in Markdown."""
    rows = [[cell(each) if isinstance(each, Result) else each for each in line] for line in lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def html(head: Sequence[str], lines: Iterable[Sequence[Result | str]], links: Mapping[str, str] | None = None) -> str:
    """Write a table in HTML; ``links`` is what follows the name of a case."""
    heads = "".join(f"<th scope='col'>{escaping.escape(text)}</th>" for text in head)
    body = []
    for case, *values in lines:
        cells = "".join(
            f"<td class='{each.verdict}'>{escaping.escape(cell(each))}</td>"
            if isinstance(each, Result)
            else f"<td>{escaping.escape(each)}</td>"
            for each in values
        )
        body.append(f"<tr><td class='case'>{escaping.escape(case)}{(links or {}).get(case, '')}</td>{cells}</tr>")
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>"


# --- docs/papers.md


def papers() -> str:
    """Return docs/papers.md."""
    known = {name: records(name)[0] for name in EXPERIMENTS}
    measured = {e.name: results(e, next(iter(known[e.name]), None)) for e in EXPERIMENTS.values()}
    total = summary([result for found in measured.values() for result in found])
    printed = [e for e in EXPERIMENTS.values() if any(result.paper is not None for result in measured[e.name])]
    lines = [_overview(e, next(iter(known[e.name]), None), measured[e.name]) for e in printed]
    others = sum(bool(known[e.name]) for e in EXPERIMENTS.values() if e not in printed)
    parts = [_INTRO, f"All printed values with one of ours: {total}. {others} more figures have no printed values.\n"]
    parts.append(markdown(("experiment", "place", "runs of a case", "CPU hours", "printed values"), lines) + "\n")
    tested = [e for e in EXPERIMENTS.values() if {AGREE, DIFFER} & {result.verdict for result in measured[e.name]}]
    for paper in PAPERS:
        shown = [e for e in tested if paper_of(e) is paper]
        if shown:
            parts.append(f"## {paper.title}\n\n{KEY}\n")
        parts += [_section(e, measured[e.name]) for e in shown]
    return "\n".join(parts)


def _overview(experiment: Experiment, record: Record | None, found: list[Result]) -> tuple[str, ...]:
    place = heading(experiment)[1]
    if record is None:
        return experiment.name, place, "–", "–", summary(found)
    runs = sorted({row["runs"] for row in record.rows if row["runs"]})
    each = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    return experiment.name, place, each, f"{record.seconds / 3600:.2g}", summary(found)


def _section(experiment: Experiment, found: list[Result]) -> str:
    printed = {result.measure for result in found if result.paper is not None}
    table = markdown(*grid([result for result in found if result.measure in printed]))
    why = f"{experiment.why}\n\n" if experiment.why else ""
    return f"### {experiment.name}: {heading(experiment)[0]}\n\n{summary(found)}. {why}{table}\n"


# --- the tables of docs/corrigendum.md


def filled(text: str) -> str:
    """Return the corrigendum with its tables."""
    makers = {"record": _of_record, "editions": _of_editions}
    return _MARK.sub(lambda mark: f"{mark[1]}\n{makers[mark[2]](mark[3])}\n\n{mark[4]}", text)


def _of_record(words: str) -> str:
    """Return a table of cases, a line for each measure."""
    name, *cases, measures = (word.strip() for word in words.split(" | "))
    known = {row["case"]: row for row in records(find(name).name)[0][0].rows}
    lines = [
        (_label(measure), *(number(known[case].get(measure), known[case].get(f"{measure}_se")) for case in cases))
        for measure in measures.split()
    ]
    lines.append(("runs", *(str(known[case]["runs"]) for case in cases)))
    return markdown((f"`{name}`", *cases), lines)


def _label(measure: str) -> str:
    plain = measure.removesuffix(_AVERAGED)
    return LABELS.get(plain, plain) + (", of the averaged prediction" if plain != measure else "")


def _of_editions(words: str) -> str:
    """Return the table of both editions, as printed; ± are standard deviations over five runs."""
    name, _, data = words.partition(" ")
    first, corrected = (published.read(place, data) for place in (f"first/{name}", name))
    pairs = list(zip(next(iter(first.values())), next(iter(corrected.values())), strict=True))
    heads = [f"{LABELS[m]}, {edition}" for pair in pairs for m, edition in zip(pair, _EDITIONS, strict=True)]
    columns = [(values, m) for pair in pairs for values, m in zip((first, corrected), pair, strict=True)]
    lines = [
        (case, *(_as_printed(values.get(case, {}).get(measure)) for values, measure in columns))
        for case in dict.fromkeys([*corrected, *first])
    ]
    return markdown((f"`{name}`", *heads), lines)


def _as_printed(printed: published.Printed | None) -> str:
    return "–" if printed is None else f"{printed.value:.6g} ± {printed.sd:.6g}"


def main() -> int:
    """Write both documents; return the exit status."""
    (DOCS / "papers.md").write_text(papers(), encoding="utf-8")
    place = DOCS / "corrigendum.md"
    place.write_text(filled(place.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
