"""List the fields of a form with one row of a table, and read their texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bnnviz.data.tables.columns import DATE
from bnnviz.data.tables.user_table import UserTable

_LONGEST, _LARGEST = 60, 1e30  # characters of a number, and its size
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_OPEN = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)


class RowField(NamedTuple):
    """One input of a table: a number, or one of its levels."""

    name: str
    value: str
    levels: tuple[str, ...]
    hint: str


def fields_of(table: UserTable) -> list[RowField]:
    """Return the fields of a table, in the order of its columns."""
    return [_field(key, levels, table) for key, levels in table.encoder.levels.items()]


def _field(key: str, levels: tuple[str, ...], table: UserTable) -> RowField:
    values = table.frame[key].dropna()
    if levels:
        return RowField(key, str(values.mode().iloc[0]), levels, f"{len(levels)} levels")
    unit = " days since 1970" if table.kinds[key] == DATE else ""
    return RowField(key, f"{values.median():.6g}", (), f"{values.min():.6g} to {values.max():.6g}{unit}")


def read_texts(
    fields: list[RowField], texts: Mapping[str, Any], decimal: str | None
) -> tuple[dict[str, float | str], dict[str, str]]:
    """Return the numbers and levels in the fields, and an error message for each invalid field."""
    cells: dict[str, float | str] = {}
    wrong: dict[str, str] = {}
    for field in fields:
        text = str(texts.get(field.name, field.value)).strip()
        if field.levels:
            cells[field.name] = text
            if text not in field.levels:
                wrong[field.name] = "No training row has this value; choose another one."
            continue
        number, problem = _number(text, decimal)
        if problem:
            wrong[field.name] = problem
        else:
            cells[field.name] = number
    return cells, wrong


def _number(text: str, decimal: str | None) -> tuple[float, str]:
    """Return a number and an error message, "" if valid; an unambiguous comma is a decimal point."""
    written = text.replace("−", "-")
    if _OPEN.fullmatch(written) and decimal != ",":
        return (
            0.0,
            f"{text} can be {written.replace(',', '.')} or {written.replace(',', '')}; write it without a comma.",
        )
    written = written.replace(",", ".")
    if len(text) > _LONGEST or not _NUMBER.fullmatch(written) or not np.abs(float(written)) <= _LARGEST:
        return 0.0, f"{text[:20]!r} is not a number; enter one such as 1.5."
    return float(written), ""
