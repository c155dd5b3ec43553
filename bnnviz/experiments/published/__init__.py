"""Read the papers' printed values: one CSV per experiment, named after it; empty cells were not printed.

A cell has the printed digits. A column that ends in ``_percent`` is 100 times the measure, and ``_sd`` is the
standard deviation printed with a value: over five runs in the PDMP paper and in the functional paper, over 100 draws
of one run in PMCnet. ``first/`` has the tables of the PDMP paper's first edition. The ECE of the corrected edition is
read as percent, because some of its values are above 1; the paper gives no unit.

PMCnet's Table 3 prints a specificity of .9493 where its Table 2 has .9483 for the same runs.
"""

from __future__ import annotations

import csv
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

#: Runs behind a printed standard deviation, by the paper; PMCnet's is over draws of a single run.
RUNS = {"pdmp": 5, "func": 5}


class Printed(NamedTuple):
    """One printed value."""

    value: float
    sd: float | None
    unit: float


Values = dict[str, Printed]  # by measure


def exists(table: str) -> bool:
    """Return whether there are printed values of a table, named as in `read`."""
    return _file(table).is_file()


@cache
def read(table: str, data: str = "") -> dict[str, Values]:
    """Return the printed values of a table by case and measure, in the units of the measures."""
    with _file(table).open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row.pop("data", data) == data]
    return {row.pop("case"): _values(row) for row in rows}


def _file(table: str) -> Path:
    return Path(__file__).parent / f"{table}.csv"


def _values(row: dict[str, str]) -> Values:
    found = {}
    for column, text in row.items():
        measure = column.removesuffix("_percent")
        if not text or measure.endswith("_sd"):
            continue
        sd = row.get(column.replace(measure, f"{measure}_sd", 1), "")
        scale = 100 if measure != column else 1
        value, sd = (round(float(printed) / scale, 12) if printed else None for printed in (text, sd))
        found[measure] = Printed(value, sd, 10.0 ** Decimal(text).as_tuple().exponent / scale)
    return found
