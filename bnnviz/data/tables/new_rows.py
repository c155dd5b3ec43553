"""Read rows that a network has not seen, in the columns of the table that it was trained on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnnviz import optional
from bnnviz.data.tables import reading, source
from bnnviz.data.tables.columns import (
    CATEGORY,
    DATE,
    LARGEST,
    Column,
    Content,
    days,
    days_in,
    describe,
    listed,
    texts_of,
)
from bnnviz.data.tables.encoder import Imputed, framed
from bnnviz.data.tables.numerals import Decimal, read_numbers
from bnnviz.data.tables.user_table import UserTable
from bnnviz.errors import BnnvizError, nearest

if TYPE_CHECKING:
    import pandas as pd


class NewRows(NamedTuple):
    """Rows to predict.

    Attributes
    ----------
    x : ndarray, shape (rows, inputs), or Imputed
        Rows encoded like the training rows; several versions if cells are unknown that no training row lacks.
    row_notes : ndarray of str, shape (rows,)
        Missing and unknown values of each row; usually empty.
    observed : ndarray or None, shape (rows,)
        Numbers or class numbers in the target's column, nan if missing; None without that column.
    notes : list of str
        Notes on the whole file.
    kept : dict
        Columns that are kept next to the predictions, as texts.
    """

    x: np.ndarray | Imputed
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
    texts = [key for key, kind in table.kinds.items() if kind == CATEGORY]
    texts += [table.target] if table.class_names else []
    found = reading.read(
        given,
        name or ("the new rows" if isinstance(given, bytes) else None),
        target=table.target,
        decimal=decimal,
        missing=table.missing if missing is None else missing,
        otherwise=table.decimal,
        texts=texts,
        verbatim=keep,
        fewest=1,
    )
    check_lacking(list(found.frame), table.kinds, found.name)
    x, row_notes = table.encoder.encode(*_typed(found, table.kinds))
    observed = _observed(found, table) if table.target in found.frame else None
    kept = {key: list(map(str, found.frame[key])) for key in keep}
    return NewRows(x, row_notes, observed, _summary(row_notes), kept)


def frame_columns(given: Any) -> list[Column]:
    """Return the columns of a frame as inputs; those that are constant or number the rows are left out."""
    found = reading.read(given, "the frame")
    columns = [describe(key, found) for key in found.frame]
    if wrong := next((column.error for column in columns if column.error is not None), None):
        raise wrong
    return [column for column in columns if not column.is_passed_over]


def matched(given: Any, kinds: Mapping[str, str]) -> pd.DataFrame:
    """Return the columns of a frame in the kinds that they had in training."""
    if not source.is_frame(given):
        raise BnnvizError(f"Give a DataFrame with the columns of the training rows ({listed(list(kinds))}).", "X")
    found = reading.read(given, "the frame")
    check_lacking(list(found.frame), kinds, found.name)
    return _typed(found, kinds)[0]


def _typed(found: Content, kinds: Mapping[str, str]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return columns in the kinds that they had in training, and by column the texts of rows that do not fit."""
    misfits: dict[str, Any] = {}
    return framed({key: _column(key, kind, found, misfits) for key, kind in kinds.items()}), misfits


def _framed(x: np.ndarray, table: UserTable) -> pd.DataFrame:
    """Return an array as a frame; refuse one whose columns cannot be those of the table."""
    if x.dtype.kind not in "biuf" or x.ndim != 2 or x.shape[1] != len(table.kinds) or CATEGORY in table.kinds.values():
        raise BnnvizError(
            f"The rows have the shape {x.shape}; the run was trained on the columns {listed(list(table.kinds))}. Give a"
            " frame or a file with these names.",
            "x",
        )
    return optional.require("pandas", "Reading a table needs").DataFrame(x, columns=list(table.kinds))


def check_lacking(names: list[str], needed: Iterable[str], name: str) -> None:
    """Refuse a file or a frame that lacks a column."""
    lacking = [key for key in needed if key not in names]
    if lacking:
        meant = nearest(lacking[0], names)
        hint = f"there are {listed(names)}." if meant is None else f"rename {meant} to {lacking[0]}."
        raise BnnvizError(f"Columns of the training rows are missing in {name} ({listed(lacking)}); {hint}", "x")


def _column(key: str, kind: str, found: Content, misfits: dict[str, Any]) -> np.ndarray:
    """Return a column in the kind that it had in training; texts that do not fit are missing, and noted by row."""
    cells = found.frame[key]
    if kind == CATEGORY:
        return texts_of(cells)
    if cells.dtype.kind == "M":
        return days(cells)
    if kind != DATE and cells.dtype.kind in "biuf" and str(cells.dtype) != "category":
        values = cells.to_numpy(dtype=float, na_value=np.nan)
        return np.where(np.isfinite(values), values, np.nan)
    pandas = optional.require("pandas", "Reading a table needs")
    texts = pandas.Series(texts_of(cells), dtype=object)
    present = texts.dropna()
    values = np.full(len(texts), np.nan)
    if present.empty:
        return values
    read = days_in(present, key) if kind == DATE else read_numbers(key, present, found.decimal).to_numpy()
    if read is None or np.isnan(read).all():
        what = "dates, written as in training" if kind == DATE else "numbers"
        raise BnnvizError(
            f"The column {key} of {found.name} holds texts such as {present.iloc[0]!r:.40}, and the network was trained"
            f" on its {what}; give these.",
            "x",
        )
    values[present.index] = np.where(np.isfinite(read), read, np.nan)
    misfits[key] = present[np.isnan(read)]
    return values


def _observed(found: Content, table: UserTable) -> np.ndarray | None:
    """Return the target's numbers or class numbers; None if none is known."""
    if table.class_names:
        places = {word: float(i) for i, word in enumerate(table.class_names)}
        texts = texts_of(found.frame[table.target])
        values = np.array([places.get(_class_word(text, places), np.nan) for text in texts])
    else:
        try:
            values = _column(table.target, "number", found, {})
        except BnnvizError:
            return None
    return values if np.isfinite(values).any() else None


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


# --- a row of a form


class RowField(NamedTuple):
    """One input of a table in a form: a number, or one of its levels."""

    name: str
    value: str
    levels: tuple[str, ...]
    hint: str


def fields_of(table: UserTable) -> list[RowField]:
    """Return the fields of a table, in the order of its columns."""
    fields = []
    for key, levels in table.encoder.levels.items():
        values = table.frame[key].dropna()
        unit = " days since 1970" if table.kinds[key] == DATE else ""
        value = str(values.mode().iloc[0]) if levels else f"{values.median():.6g}"
        hint = f"{len(levels)} levels" if levels else f"{values.min():.6g} to {values.max():.6g}{unit}"
        fields.append(RowField(key, value, levels, hint))
    return fields


def read_texts(texts: Mapping[str, str], table: UserTable) -> tuple[np.ndarray | None, dict[str, str]]:
    """Return the encoded row of a form's texts, and an error message for each invalid field."""
    pandas = optional.require("pandas", "Reading a table needs")
    cells, wrong = {}, {}
    for key, levels in table.encoder.levels.items():
        text = str(texts.get(key, "")).strip()
        if levels:
            cells[key] = np.array([text], dtype=object)
            if text not in levels:
                wrong[key] = "No training row has this value; choose another one."
            continue
        try:
            cells[key] = read_numbers(key, pandas.Series([text], dtype=object), table.decimal).to_numpy()
        except BnnvizError as error:
            wrong[key] = error.message.text
        else:
            if not np.abs(cells[key][0]) <= LARGEST:
                wrong[key] = f"{text[:20]!r} is not a number; enter one such as 1.5."
    return (None if wrong else table.encoder.transform(framed(cells))[0]), wrong
