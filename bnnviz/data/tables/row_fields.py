"""Say which fields the form of a table has, and read what was typed into them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bnnviz.data.tables.cells import one_hot
from bnnviz.data.tables.user_table import UserTable

_LONGEST, _LARGEST = 60, 1e30  # letters of a number that is read, and its size
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
    levels = dict.fromkeys(table.x_names, ()) if table.levels is None else table.levels
    places = {name: i for i, name in enumerate(table.x_names)}
    return [
        _of_levels(name, texts, table, places) if texts else _of_numbers(name, table.x[:, places[name]])
        for name, texts in levels.items()
    ]


def _of_numbers(name: str, values: np.ndarray) -> RowField:
    low, high = f"{values.min():.6g}", f"{values.max():.6g}"
    return RowField(name, f"{np.median(values):.6g}", (), f"{low} to {high}")


def _of_levels(name: str, texts: tuple[str, ...], table: UserTable, places: Mapping[str, int]) -> RowField:
    """Return the field of a category; of two levels there is a column of the second alone."""
    made = [places[each] for each in one_hot(name, np.empty(0, dtype=object), texts)]
    shares = table.x[:, made].mean(0)
    shares = np.append(1 - shares, shares) if len(texts) == 2 else shares
    return RowField(name, texts[int(shares.argmax())], texts, f"{len(texts)} levels")


def read_texts(
    fields: list[RowField], texts: Mapping[str, Any], decimal: str | None
) -> tuple[dict[str, float | str], dict[str, str]]:
    """Return what stands in the fields as numbers and levels, and a sentence for each that holds neither."""
    cells: dict[str, float | str] = {}
    wrong: dict[str, str] = {}
    for field in fields:
        text = str(texts.get(field.name, field.value)).strip()
        if field.levels:
            cells[field.name] = text
            if text not in field.levels:
                wrong[field.name] = "No training row has this value; choose another one."
            continue
        number, sentence = _number(text, decimal)
        if sentence:
            wrong[field.name] = sentence
        else:
            cells[field.name] = number
    return cells, wrong


def _number(text: str, decimal: str | None) -> tuple[float, str]:
    """Return a number, and a sentence on what is wrong with it; a comma is read as a point where that is clear."""
    written = text.replace("−", "-")
    if _OPEN.fullmatch(written) and decimal != ",":
        return (
            0.0,
            f"{text} can be {written.replace(',', '.')} or {written.replace(',', '')}; write it without a comma.",
        )
    written = written.replace(",", ".")
    if len(text) > _LONGEST or not _NUMBER.fullmatch(written) or abs(float(written)) > _LARGEST:
        return 0.0, f"{text[:20]!r} is no number; type one such as 1.5."
    return float(written), ""
