"""Read rows that a network has not seen, in the columns of the table that it was trained on."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnnviz import optional
from bnnviz.data.tables import reading, source
from bnnviz.data.tables.columns import CATEGORY, DATE, Column, Context, days, days_in_texts, describe, listed, texts_of
from bnnviz.data.tables.encoder import framed
from bnnviz.data.tables.numerals import Decimal, Readings, chosen, is_number, without_percent
from bnnviz.data.tables.reading import Content
from bnnviz.data.tables.user_table import UserTable
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import pandas as pd


class NewRows(NamedTuple):
    """Rows to predict.

    Attributes
    ----------
    x : ndarray, shape (rows, inputs)
        Rows encoded like the training rows.
    row_notes : ndarray of str, shape (rows,)
        Missing and unknown values of each row; usually empty.
    observed : ndarray or None, shape (rows,)
        Numbers or class numbers in the target's column, nan if missing; None without that column.
    notes : list of str
        Notes on the whole file.
    kept : dict
        Columns that are kept next to the predictions, as texts.
    """

    x: np.ndarray
    row_notes: np.ndarray
    observed: np.ndarray | None
    notes: list[str]
    kept: dict[str, list[str]]


def read_rows(
    given: Any,
    table: UserTable,
    name: str | None = None,
    *,
    decimal: Decimal | None = None,
    missing: Sequence[str] | None = None,
    keep: Sequence[str] = (),
) -> NewRows:
    """Read rows to predict from a CSV file, a frame, or an array with the inputs in the order of the table's columns.

    Raises
    ------
    BnnvizError
        If a column is missing, or differs in kind from the training rows.
    """
    if not isinstance(given, bytes | str) and hasattr(given, "__array__") and not source.is_frame(given):
        given = _framed(np.asarray(given), table)
    missing = table.missing if missing is None else missing
    texts = [key for key, kind in table.kinds.items() if kind == CATEGORY]
    texts += [table.target] if table.class_names else []
    name = name or ("the new rows" if isinstance(given, bytes) else None)
    found = reading.read(
        *(given, name),
        target=table.target,
        decimal=decimal,
        missing=missing,
        otherwise=table.decimal,
        texts=texts,
        verbatim=() if source.is_frame(given) else keep,
        fewest=1,
    )
    _check_names(list(found.frame), table, found.name)
    frame, row_notes = _typed(found, table.kinds)
    notes = table.encoder.notes(frame)
    row_notes = np.array([note or other for note, other in zip(row_notes, notes, strict=True)], dtype=object)
    observed = _observed(found.frame[table.target], found.context, table) if table.target in found.frame else None
    kept = {key: list(map(str, found.frame[key])) for key in keep}
    return NewRows(table.encoder.transform(frame), row_notes, observed, _summary(row_notes), kept)


def frame_columns(given: Any) -> list[Column]:
    """Return the columns of a frame as inputs; those that are constant or number the rows are left out."""
    found = reading.read(given, "the frame", missing=())
    columns = [describe(found.frame[key], found.context) for key in found.frame]
    if wrong := next((column.error for column in columns if column.error is not None), None):
        raise wrong
    return [column for column in columns if not column.is_passed_over]


def matched(given: Any, kinds: Mapping[str, str]) -> pd.DataFrame:
    """Return the columns of a frame in the kinds that they had in training."""
    if not source.is_frame(given):
        raise BnnvizError(f"Give a DataFrame with the columns of the training rows ({listed(list(kinds))}).", "X")
    found = reading.read(given, "the frame", missing=())
    _check_lacking(list(found.frame), kinds, found.name)
    return _typed(found, kinds)[0]


def _typed(found: Content, kinds: Mapping[str, str]) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns in the kinds that they had in training, and notes on cells that do not fit."""
    row_notes = np.full(len(found.frame), "", dtype=object)
    return framed(
        {key: _column(found.frame[key], kind, found.context, row_notes) for key, kind in kinds.items()}
    ), row_notes


def encoded_row(cells: Mapping[str, float | str], table: UserTable) -> np.ndarray:
    """Return one row (inputs,) in the columns that the network has."""
    for key, levels in table.encoder.levels.items():
        value = cells.get(key)
        if not levels and (not isinstance(value, int | float) or not np.isfinite(value)):
            raise BnnvizError(f"{key} is a number, not {value!r}; type one.", key)
        if levels and value not in levels:
            raise BnnvizError(f"{key} is one of {listed(levels)}, not {value!r}; choose one.", key)
    kinds = {key: object if kind == CATEGORY else float for key, kind in table.kinds.items()}
    frame = framed({key: np.array([cells[key]], dtype=dtype) for key, dtype in kinds.items()})
    return table.encoder.transform(frame)[0]


def _framed(x: np.ndarray, table: UserTable) -> pd.DataFrame:
    """Return an array as a frame; refuse one whose columns cannot be those of the table."""
    if x.dtype.kind not in "biuf" or x.ndim != 2 or x.shape[1] != len(table.kinds) or CATEGORY in table.kinds.values():
        raise BnnvizError(
            f"The rows have the shape {x.shape}; the run was trained on the columns {listed(list(table.kinds))}. Give a"
            " frame or a file with these names.",
            "x",
        )
    return optional.require("pandas", "Reading a table needs").DataFrame(x, columns=list(table.kinds))


def _check_lacking(names: list[str], kinds: Mapping[str, str], name: str) -> None:
    """Refuse a file that lacks a column."""
    lacking = [key for key in kinds if key not in names]
    if lacking:
        close = difflib.get_close_matches(lacking[0], names, n=1)
        hint = f"; did you mean {close[0]} by {lacking[0]}?" if close else f"; it has {listed(names)}."
        raise BnnvizError(f"{name} lacks columns that the network was trained on ({listed(lacking)}){hint}", "x")


def _check_names(names: list[str], table: UserTable, name: str) -> None:
    """Refuse a file that lacks a column, or whose columns have moved."""
    _check_lacking(names, table.kinds, name)
    made_up = all(key == f"c{i + 1}" for i, key in enumerate(names))
    places = [int(key[1:]) for key in (*table.kinds, table.target) if key[1:].isdigit()]
    if made_up and places and max(places) > len(names) and table.target != f"c{max(places)}":
        raise BnnvizError(
            f"{name} has no line of names and {len(names)} columns, so their places have moved; keep an empty column"
            f" for {table.target}, or give both files names.",
            "x",
        )


def _column(cells: pd.Series, kind: str, context: Context, row_notes: np.ndarray) -> np.ndarray:
    """Return a column in the kind that it had in training; cells that do not fit are missing, with a note."""
    key = str(cells.name)
    if kind == CATEGORY:
        return texts_of(cells)
    if kind == DATE:
        return _days(cells, context)
    if cells.dtype.kind in "biuf" and str(cells.dtype) != "category":
        values = cells.to_numpy(dtype=float, na_value=np.nan)
    else:
        values = _numbers(key, texts_of(cells), context, row_notes)
    given = [float(text) for text in context.missing or () if is_number(text)]
    return np.where(np.isfinite(values) & ~np.isin(values, given), values, np.nan)


def _numbers(key: str, texts: np.ndarray, context: Context, row_notes: np.ndarray) -> np.ndarray:
    present = np.array([text is not None for text in texts], bool)
    values = np.full(len(texts), np.nan)
    if not present.any():
        return values
    bare = without_percent(texts[present])
    reading_of = Readings.of(bare)
    row = int(np.flatnonzero(present)[reading_of.differing.argmax()]) if reading_of.is_open else 0
    found = chosen(key, reading_of, context.decimal, context.place(row))
    strange = np.isnan(found)
    if strange.all():
        raise BnnvizError(
            f"The column {key} of {context.name} holds texts such as {bare[0]!r}, and the network was trained on its"
            " numbers; make it numbers.",
            "x",
        )
    values[present] = np.where(strange, np.nan, found)
    for row in np.flatnonzero(present)[strange]:
        row_notes[row] = f"{key} is {texts[row]!r:.40}, which is not a number; taken as missing"
    return values


def _days(cells: pd.Series, context: Context) -> np.ndarray:
    if str(cells.dtype).startswith("datetime"):
        return days(cells)
    found = days_in_texts(texts_of(cells), str(cells.name), context.name)
    if found is None:
        pandas = optional.require("pandas", "Reading a table needs")
        found = days(pandas.to_datetime(pandas.Series(texts_of(cells)), format="%Y%m%d", errors="coerce"))
        if cells.notna().any() and np.isnan(found).all():
            raise BnnvizError(
                f"The column {cells.name} of {context.name} holds no dates; write them as in training.", "x"
            )
    return found


def _observed(cells: pd.Series, context: Context, table: UserTable) -> np.ndarray | None:
    """Return the target's numbers or class numbers; None if none is known."""
    if not table.class_names:
        try:
            found = _column(cells, "number", context, np.full(len(cells), "", dtype=object))
        except BnnvizError:
            return None
    else:
        places = {word: float(i) for i, word in enumerate(table.class_names)}
        found = np.array([places.get(_class_word(text, places), np.nan) for text in texts_of(cells)])
    return found if np.isfinite(found).any() else None


def _class_word(text: str | None, places: Mapping[str, float]) -> str | None:
    """Return the name of a class, which may be written as another text of the same number."""
    try:
        return text if text is None or text in places else f"{float(text):g}"
    except ValueError:
        return text


def _summary(row_notes: np.ndarray) -> list[str]:
    """Return a summary of the rows with notes."""
    noted = np.flatnonzero(row_notes != "")
    if not len(noted):
        return []
    rows = "1 row has" if len(noted) == 1 else f"{len(noted):,} rows have"
    return [
        f"{rows} missing or unknown values; the column notes names them (row {noted[0] + 1}: {row_notes[noted[0]]})."
    ]
