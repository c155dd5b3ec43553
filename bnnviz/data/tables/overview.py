"""Say of each column of a CSV file what it would be taken for, whatever is wrong with the others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bnnviz.data.tables import layout
from bnnviz.data.tables import source as source_file
from bnnviz.data.tables.cells import (
    TextColumns,
    are_dates,
    check_texts,
    is_constant,
    parse,
    read_column,
    text_columns,
    with_gaps,
)
from bnnviz.data.tables.csv_file import without_index
from bnnviz.data.tables.layout import Layout
from bnnviz.data.tables.numerals import Decimal, decimal_of
from bnnviz.data.tables.questions import TableQuestion
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import pandas as pd

_EXAMPLES, _LONGEST = 3, 24
NUMBER, CATEGORY, DATE, TEXT, MIXED = "number", "category", "date", "text", "numbers and texts"
ROW_NUMBER, CONSTANT, EMPTY = "row number", "constant", "empty"


class ColumnOverview(NamedTuple):
    """What a column of a file holds."""

    name: str
    kind: str
    missing: int
    examples: tuple[str, ...]
    levels: int = 0
    remark: str = ""
    is_refused: bool = False

    @property
    def is_passed_over(self) -> bool:
        """Whether the reader leaves it out by itself."""
        return self.kind in (ROW_NUMBER, CONSTANT, EMPTY)


class TableOverview(NamedTuple):
    """What the columns of a file hold."""

    name: str
    rows: int
    columns: list[ColumnOverview]

    @property
    def target(self) -> str:
        """The last column that can be predicted; the last one where none can."""
        able = [column.name for column in self.columns if column.kind in (NUMBER, CATEGORY)]
        return (able or [column.name for column in self.columns])[-1]


def overview(
    source: str | os.PathLike | bytes,
    name: str | None = None,
    *,
    decimal: Decimal | None = None,
    missing: Sequence[str] | None = None,
) -> TableOverview:
    r"""Say what the columns of a CSV file would be taken for; takes what `bnnviz.data.read_table` takes.

    Raises
    ------
    BnnvizError
        If it is no CSV file.

    Examples
    --------
    >>> from bnnviz.data.tables.overview import overview
    >>> found = overview(b"day,area,kind\n2024-01-31,2.5,a\n2024-02-01,3.5,b\n2024-02-02,4,a\n")
    >>> [column.kind for column in found.columns]
    ['date', 'number', 'category']
    """
    content, name = source_file.content(source, name)
    found = layout.find(source_file.decode(content, name), name)
    frame = parse(found, name, missing)
    texts = text_columns(frame, found, [])
    mark = decimal_of(texts.readings, decimal)
    columns = [_described(key, frame, texts, mark, found, missing, name) for key in found.names]
    return TableOverview(name, len(frame), columns)


def _described(
    key: str,
    frame: pd.DataFrame,
    texts: TextColumns,
    mark: Decimal | None,
    found: Layout,
    missing: Sequence[str] | None,
    name: str,
) -> ColumnOverview:
    gaps, examples = int(frame[key].isna().sum()), _examples(frame[key])
    try:
        values, present = read_column(key, frame, texts, mark, found, False, name, [])
    except TableQuestion as error:
        mixed = key in texts.readings and not texts.readings[key].whole
        # Numbers that can be read in two ways are an input once it is said which is meant.
        refused = any(answer.option == "leave_out" for answer in error.answers)
        return ColumnOverview(key, MIXED if mixed else NUMBER, gaps, examples, 0, error.question, refused)
    except BnnvizError as error:
        return ColumnOverview(key, NUMBER, gaps, examples, 0, error.message.text, True)
    remark = _ask_for_gaps(key, values, present, missing, found, name)
    kind, levels, why = _kind(key, values, present, found, name)
    gaps = int((~present).sum())
    return ColumnOverview(key, kind, gaps, examples, levels, why or remark, kind in (DATE, TEXT))


def _ask_for_gaps(
    key: str, values: np.ndarray, present: np.ndarray, missing: Sequence[str] | None, found: Layout, name: str
) -> str:
    """Take numbers that stand for no value out of ``present``; return what is open about them."""
    try:
        with_gaps({key: (values, present)}, missing, found, name, [])
    except TableQuestion as error:
        return error.question
    return ""


def _kind(key: str, values: np.ndarray, present: np.ndarray, found: Layout, name: str) -> tuple[str, int, str]:
    """Return the kind of a column, its levels, and why it is no input."""
    if not present.any():
        return EMPTY, 0, "It holds no value and is left out."
    notes: list[str] = []
    if not without_index({key: (values, present)}, found, None, notes):
        return ROW_NUMBER, 0, notes[0]
    held = values[present]
    if are_dates(held):
        return DATE, 0, "Dates are no amounts: give numbers, such as days since the first one."
    if is_constant(held):
        return CONSTANT, 0, "It is the same in every row and is left out."
    if values.dtype != object:
        return NUMBER, 0, notes[0] if notes else ""
    try:
        check_texts({key: held}, name)
    except TableQuestion as error:
        return TEXT, 0, error.question
    return CATEGORY, len(set(held)), ""


def _examples(cells: pd.Series) -> tuple[str, ...]:
    values = cells.dropna().drop_duplicates().head(_EXAMPLES).tolist()
    shown = [f"{value:.10g}" if isinstance(value, float) else str(value).strip() for value in values]
    return tuple(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in shown)
