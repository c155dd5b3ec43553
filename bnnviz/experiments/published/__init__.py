"""Read the figures that stand beside ours, as CSV: a file for each experiment, by its name; empty: not printed.

All but those of ``func-wells.csv`` are printed in the papers; that paper shows a picture only, and the file holds
what another program came to in 400 runs. A figure stands as in print, so a column whose name ends in ``_percent``
holds 100 times what we measure. ``first/`` has the tables of the PDMP paper's first edition, as printed. PMCnet's
Table 3 prints a specificity of .9493 where its Table 2 has .9483 for the same runs.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

Figures = dict[str, float]


def is_there(experiment: str) -> bool:
    """Tell whether there are published figures of a name, as `read` takes it."""
    return _file(experiment).is_file()


@cache
def read(experiment: str, data: str = "") -> dict[str, Figures]:
    """Return published figures by case, each by the names of the experiment's measures."""
    with _file(experiment).open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row.pop("data", data) == data]
    return {row.pop("case"): dict(_figure(name, text) for name, text in row.items() if text) for row in rows}


def _file(experiment: str) -> Path:
    return Path(__file__).parent / f"{experiment}.csv"


def _figure(name: str, text: str) -> tuple[str, float]:
    """Return a column's name and figure in the unit of the measure."""
    value = int(text) if text.isdecimal() else float(text)
    measure = name.removesuffix("_percent")
    return measure, value if measure == name else round(value / 100, 6)
