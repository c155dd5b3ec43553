"""Read rows of a file that a network has not seen, in the columns of the table that it was trained on."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bnnviz.data.tables import layout
from bnnviz.data.tables import source as source_file
from bnnviz.data.tables.cells import (
    Columns,
    as_they_stand,
    listed,
    one_hot,
    parse,
    read_columns,
    with_gaps,
    wrong,
)
from bnnviz.data.tables.layout import Layout
from bnnviz.data.tables.numerals import Decimal
from bnnviz.data.tables.user_table import UserTable

if TYPE_CHECKING:
    import pandas as pd


class NewRows(NamedTuple):
    """Hold rows to predict.

    Attributes
    ----------
    x : ndarray, shape (rows, inputs)
        In original units; nan in rows that are not complete.
    complete : ndarray of bool, shape (rows,)
        Which rows have all inputs, each with a value that the training rows allow.
    observed : ndarray or None, shape (rows,)
        What the target's column holds, numbers or class numbers, nan where it holds nothing; None without that column.
    """

    x: np.ndarray
    complete: np.ndarray
    observed: np.ndarray | None
    notes: list[str]
    kept: dict[str, list[str]]


def read_rows(
    source: str | os.PathLike | bytes | pd.DataFrame,
    table: UserTable,
    name: str | None = None,
    *,
    decimal: Decimal | None = None,
    missing: Sequence[str] | None = None,
    keep: Sequence[str] = (),
) -> NewRows:
    """Read rows to predict from a CSV file or a frame."""
    if source_file.is_frame(source):
        name, decimal = name or "the frame", "."
    content, name = source_file.content(source, name or (None if not isinstance(source, bytes) else "the new rows"))
    found = layout.find(source_file.decode(content, name), name, table.target, fewest=1)
    levels = _levels(table)
    notes: list[str] = []
    wanted = _wanted(found, table, levels, name)
    for key in keep:
        if key not in found.names:
            raise wrong(f"The file {name} has no column {key} to keep; it has {listed(found.names)}.", "keep")
    frame = parse(found, name, table.missing if missing is None else missing)
    read = found._replace(names=wanted)
    columns, _ = read_columns(frame, read, table.target, decimal, name, notes, otherwise=table.decimal)
    columns = with_gaps(columns, table.missing if missing is None else missing, read, name, notes)
    observed = _observed(columns.pop(table.target), table) if table.target in columns else None
    left = [key for key in found.names if key not in wanted and key not in keep]
    if left:
        notes.append(f"Columns that the network was not trained on are left out: {listed(left)}.")
    made = _encoded(columns, levels, table, observed, notes)
    return made._replace(kept=as_they_stand(found, keep)) if keep else made


def encoded_row(cells: Mapping[str, float | str], table: UserTable) -> np.ndarray:
    """Return one row (inputs,) in the columns that the network has."""
    levels = _levels(table)
    columns: Columns = {}
    for key, texts in levels.items():
        value = cells.get(key)
        if not texts and (not isinstance(value, int | float) or not np.isfinite(value)):
            raise wrong(f"{key} is a number, not {value!r}; type one.", key)
        if texts and value not in texts:
            raise wrong(f"{key} is one of {listed(texts)}, not {value!r}; choose one.", key)
        columns[key] = np.array([value], dtype=object if texts else float), np.ones(1, dtype=bool)
    return _encoded(columns, levels, table, None, []).x[0]


def _levels(table: UserTable) -> dict[str, tuple[str, ...]]:
    if table.levels is not None:
        return table.levels
    if any("=" in name for name in table.x_names):
        raise wrong(
            f"The run on {table.name} was made by a version that did not keep the texts of its columns; sample it again"
            " to predict new rows."
        )
    return dict.fromkeys(table.x_names, ())


def _wanted(found: Layout, table: UserTable, levels: dict[str, tuple[str, ...]], name: str) -> list[str]:
    """Return the columns to read; refuse a file that lacks one."""
    lacking = [key for key in levels if key not in found.names]
    if lacking:
        close = difflib.get_close_matches(lacking[0], found.names, n=1)
        hint = f"; is {close[0]} what is called {lacking[0]} there?" if close else f"; it has {listed(found.names)}."
        raise wrong(f"The file {name} lacks columns that the network was trained on ({listed(lacking)}){hint}")
    made_up = all(key == f"c{i + 1}" for i, key in enumerate(found.names))
    places = [int(key[1:]) for key in (*levels, table.target) if key[1:].isdigit()]
    if made_up and places and max(places) > len(found.names) and table.target != f"c{max(places)}":
        raise wrong(
            f"The file {name} has no line of names and {len(found.names)} columns, so that their places have moved;"
            f" keep an empty column for {table.target}, or give both files names."
        )
    return [*levels, *([table.target] if table.target in found.names else [])]


def _observed(column: tuple[np.ndarray, np.ndarray], table: UserTable) -> np.ndarray | None:
    """Return the target's numbers, or its class numbers; None where nothing is known."""
    values, present = column
    if table.task == "regression":
        if values.dtype == object or not present.any():
            return None
        return np.where(present, values, np.nan)
    numbers = {word: float(i) for i, word in enumerate(table.class_names)}
    words = [str(value) if values.dtype == object else f"{value:g}" for value in values]
    found = [numbers.get(word, np.nan) if there else np.nan for word, there in zip(words, present, strict=True)]
    return np.array(found) if np.isfinite(found).any() else None


def _encoded(
    columns: Columns,
    levels: dict[str, tuple[str, ...]],
    table: UserTable,
    observed: np.ndarray | None,
    notes: list[str],
) -> NewRows:
    made: dict[str, np.ndarray] = {}
    rows = len(next(iter(columns.values()))[0])
    empty, strange = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=bool)
    for key, (values, present) in columns.items():
        empty |= ~present
        if not levels[key]:
            made[key] = _as_numbers(values, present, key)
            continue
        texts = values.astype(str)
        unknown = present & ~np.isin(texts, levels[key])
        if unknown.any():
            first = int(np.flatnonzero(unknown)[0])
            notes.append(
                f"No prediction for {_rows(unknown)} with a value of {key} that no training row has, such as"
                f" {_shown(values[first])!r} in row {first + 1}."
            )
        strange |= unknown
        made |= one_hot(key, texts, levels[key])
    if empty.any():
        notes.append(f"No prediction for {_rows(empty)} of {rows:,} with a missing value.")
    x = np.column_stack([made[name] for name in table.x_names]).astype(float)
    x[empty | strange] = np.nan
    return NewRows(x, ~(empty | strange), observed, notes, {})


def _as_numbers(values: np.ndarray, present: np.ndarray, key: str) -> np.ndarray:
    if values.dtype != object:
        return np.where(present, values, np.nan)
    if not present.any():
        return np.full(len(values), np.nan)
    first = int(np.flatnonzero(present)[0])
    raise wrong(
        f"The column {key} holds texts such as {values[first]!r} in row {first + 1}, and the network was trained on its"
        " numbers; make it numbers."
    )


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.10g}"


def _rows(chosen: np.ndarray) -> str:
    count = int(chosen.sum())
    return "1 row" if count == 1 else f"{count:,} rows"
