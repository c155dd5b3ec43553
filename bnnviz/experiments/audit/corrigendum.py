"""Fill the tables of docs/corrigendum.md from the records that come with bnnviz.

    python -m bnnviz.experiments.audit.corrigendum

The page is written by hand, but for its tables. A mark before each says what it holds: cases and measures of a record
(``<!-- record: EXPERIMENT | CASE | CASE | MEASURE MEASURE -->``), or a table of both editions of the PDMP paper
(``<!-- editions: EXPERIMENT DATA -->``). ``<!-- end -->`` follows it. A test compares the page with the records.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from bnnviz.experiments import LABELS, find, published
from bnnviz.experiments.audit.check import check
from bnnviz.experiments.audit.document import PLACE as PAPERS_PLACE
from bnnviz.experiments.audit.document import number, table
from bnnviz.experiments.editions import CORRECTED, FIRST, PRINTED_LABELS

PLACE = PAPERS_PLACE.with_name("corrigendum.md")
_MARK = re.compile(r"(<!-- (record|editions): (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)
_AVERAGED = "_averaged"
_EDITIONS = (FIRST, CORRECTED)


def filled(text: str) -> str:
    """Return the page with the tables of the records."""
    makers = {"record": _of_record, "editions": _of_editions}
    return _MARK.sub(lambda mark: f"{mark[1]}\n{makers[mark[2]](mark[3])}\n\n{mark[4]}", text)


def _of_record(words: str) -> str:
    """Return the table of cases beside each other."""
    name, *cases, measures = (word.strip() for word in words.split(" | "))
    known = {row["case"]: row for row in check(find(name))[0].rows}
    rows = [(_label(measure), *(_with_error(known[case], measure) for case in cases)) for measure in measures.split()]
    rows.append(("runs", *(str(known[case]["runs"]) for case in cases)))
    return "\n".join(table((f"`{name}`", *cases), rows))


def _with_error(row: dict[str, Any], measure: str) -> str:
    """Return a figure of a record with its standard error; a dash where it is no number."""
    value, error = row.get(measure), row.get(f"{measure}_se")
    if value is None:
        return "–"
    return number(value) if error is None else f"{number(value)} ± {error:.2g}"


def _label(measure: str) -> str:
    plain = measure.removesuffix(_AVERAGED)
    return LABELS.get(plain, plain) + (", of the averaged prediction" if plain != measure else "")


def _of_editions(words: str) -> str:
    """Return the table of a paper's two editions beside each other, each measure of the first before the corrected."""
    name, _, data = words.partition(" ")
    first, corrected = (published.read(place, data) for place in (f"first/{name}", name))
    pairs = list(zip(next(iter(first.values())), next(iter(corrected.values())), strict=True))
    heads = [
        f"{PRINTED_LABELS[name]}, {edition}" for pair in pairs for name, edition in zip(pair, _EDITIONS, strict=True)
    ]
    rows = []
    for case in dict.fromkeys([*corrected, *first]):
        found = [(first.get(case, {}).get(before), corrected.get(case, {}).get(now)) for before, now in pairs]
        rows.append((case, *("–" if value is None else f"{value:.6g}" for pair in found for value in pair)))
    return "\n".join(table((f"`{name}`", *heads), rows))


def main() -> int:
    """Fill the tables; return the exit status."""
    PLACE.write_text(filled(PLACE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PLACE}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
