"""Read the user's CSV file or frame into a table, or ask about ambiguities."""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as short_repr
from typing import Any, NamedTuple, get_args

import numpy as np

from bnnviz.data.dataset import Task
from bnnviz.data.tables import reading
from bnnviz.data.tables.columns import (
    CATEGORY,
    CONSTANT,
    DATE,
    EMPTY,
    FEWEST_ROWS,
    MOST_CATEGORIES,
    NUMBER,
    Column,
    describe,
    listed,
)
from bnnviz.data.tables.encoder import framed
from bnnviz.data.tables.numerals import DECIMALS, Decimal, are_numbers
from bnnviz.data.tables.questions import TableQuestion, treat_as_missing
from bnnviz.data.tables.user_table import UserTable
from bnnviz.errors import BnnvizError, nearest
from bnnviz.messages import Remedy

_AMBIGUOUS = 10  # so few different whole numbers may be classes or amounts
_AMOUNTS = Remedy("treat them as amounts (regression)", {"task": "regression"})
_CLASSES = Remedy("treat them as classes (classification)", {"task": "classification"})


class TableOverview(NamedTuple):
    """Description of the columns of a file."""

    name: str
    rows: int
    columns: list[Column]

    @property
    def target(self) -> str:
        """The last column that can be predicted, or the last one if none can."""
        able = [column.name for column in self.columns if column.kind in (NUMBER, CATEGORY) and not column.is_refused]
        return (able or [column.name for column in self.columns])[-1]


def overview(
    given: Any, name: str | None = None, *, decimal: Decimal | None = None, missing: Sequence[str] | None = None
) -> TableOverview:
    r"""Describe the columns of a file, including invalid ones."""
    found = reading.read(given, name, decimal=decimal, missing=missing)
    return TableOverview(found.name, len(found.frame), [describe(key, found) for key in found.frame])


def read_table(
    given: Any,
    target_column: str | None,
    task: Task | None = None,
    name: str | None = None,
    *,
    decimal: Decimal | None = None,
    missing: Sequence[str] | None = None,
    leave_out: Sequence[str] = (),
) -> UserTable:
    r"""Read a CSV file or a data frame.

    Parameters
    ----------
    given : path, bytes, open file or frame
        A UTF-8 text whose cells are separated by commas, semicolons, tabs or vertical bars, or a frame of pandas,
        polars or PyArrow, whose dtypes are kept and whose index is dropped. The first line names the columns. If it
        contains a number, it is treated as a row and the columns are named c1, c2, ...
    target_column : str or None
        The column to predict. All others are inputs. If None, the error lists the available columns.
    task : {"regression", "classification"} or None, default None
        The kind of the target. By default text is treated as classes and numbers as quantities. Columns with few
        distinct integers are ambiguous and raise a `TableQuestion`.
    name : str or None, default None
        Name of the table. The default is the name of the file.
    decimal : {".", ","} or None, default None
        The decimal mark. By default it is detected. Files in which ``1,952`` can be 1.952 or 1952 raise a
        `TableQuestion`.
    missing : sequence of str or None, default None
        Markers of missing values, such as ``-999``, in addition to empty cells, ``?``, ``-`` and those of pandas.
    leave_out : sequence of str, default ()
        Columns to exclude from the inputs.

    Returns
    -------
    UserTable
        Table in which text is one-hot encoded, missing values are replaced by the median and indicated by an additional
        column, and dates are days since 1970. Rows without a target and constant columns are excluded. ``notes``
        describes these changes.

    Raises
    ------
    BnnvizError
        If the file is invalid. A `TableQuestion` is raised if one of the options resolves an ambiguity.

    Examples
    --------
    >>> from bnnviz import data
    >>> text = "rooms,kind,price\n" + "\n".join(f"{i},{'ab'[i % 2]},{100 + 3 * i}.5" for i in range(30))
    >>> data.read_table(text.encode(), "price").x_names
    ('rooms', 'kind=a', 'kind=b')
    """
    if task is not None and task not in get_args(Task):
        raise BnnvizError(f"The task cannot be {task!r}; choose {' or '.join(get_args(Task))}.", "task")
    if decimal is not None and decimal not in DECIMALS:
        raise BnnvizError(f"The decimal mark cannot be {decimal!r}; choose a point or a comma.", "decimal")
    found = reading.read(given, name, target=target_column, decimal=decimal, missing=missing)
    names = list(found.frame)
    target = _find_target(target_column, names, found.name)
    used = _used(names, leave_out, target, found.name)
    notes = list(found.notes)
    if left := [key for key in names if key not in used]:
        notes.append(f"Left out on request: {listed(left)}.")
    columns = {key: describe(key, found, is_target=key == target) for key in used}
    for column in columns.values():
        if column.error is not None:
            raise column.error
    goal = columns.pop(target)
    present = _known_rows(goal, found.name, notes)
    y, class_names, task = _target(goal, goal.values[present], task)
    # A split may leave no row of these classes to train on or to test.
    counts = [(kind, int((y == k).sum())) for k, kind in enumerate(class_names)]
    if few := [f"{kind} ({count})" for kind, count in counts if count < FEWEST_ROWS]:
        notes.append(f"These classes of {target} have few rows: {listed(few)}.")
    inputs = _inputs(list(columns.values()), found.name, notes)
    table = UserTable(
        name=found.name,
        sha256=found.sha256,
        task=task,
        frame=framed({column.name: column.values[present] for column in inputs}),
        kinds={column.name: column.kind for column in inputs},
        y=y,
        target=target,
        class_names=class_names,
        notes=tuple(notes),
        decimal=found.decimal,
        missing=None if missing is None else tuple(missing),
    )
    return _with_encoder_notes(table)


def _find_target(target: str | None, names: list[str], name: str) -> str:
    if target is None:
        raise BnnvizError(f"Name the column of {name} to predict; its columns are {listed(names)}.", "target_column")
    if target not in names:
        raise BnnvizError(f"The file {name} has no column {short_repr(target)}{_hint(target, names)}", "target_column")
    return target


def _hint(given: str, names: list[str]) -> str:
    """Return the hint of a message on a column that does not exist."""
    meant = nearest(given, names)
    return f"; its columns are {listed(names)}." if meant is None else f"; did you mean {meant}?"


def _used(names: list[str], leave_out: Sequence[str], target: str, name: str) -> list[str]:
    """Return the columns to read."""
    unknown = [key for key in leave_out if key not in names]
    if unknown:
        raise BnnvizError(
            f"The file {name} has no column {short_repr(unknown[0])} to leave out{_hint(unknown[0], names)}",
            "leave_out",
        )
    if target in leave_out:
        raise BnnvizError(f"The target {target} cannot be left out; choose another target, or keep it.", "leave_out")
    used = [key for key in names if key not in set(leave_out)]
    if len(used) == 1:
        raise BnnvizError(f"Every column of {name} but the target is left out; keep one as an input.", "leave_out")
    return used


def _known_rows(goal: Column, name: str, notes: list[str]) -> np.ndarray:
    """Return which rows have a target."""
    present = goal.present
    count = int(present.sum())
    if count < FEWEST_ROWS:
        raise BnnvizError(
            f"The target {goal.name} of {name} has {count} values; at least {FEWEST_ROWS} are needed.", "data"
        )
    if count < len(present):
        notes.append(
            f"{len(present) - count:,} of {len(present):,} rows have no value of {goal.name} and are left out."
        )
    return present


def _target(goal: Column, values: np.ndarray, task: Task | None) -> tuple[np.ndarray, tuple[str, ...], Task]:
    """Return the target's numbers, the classes' names, and the task."""
    key, is_text = goal.name, values.dtype == object
    kinds, labels = np.unique(values, return_inverse=True)
    if goal.kind == CONSTANT:
        raise BnnvizError(f"The target {key} is {kinds[0]} in every row; there is nothing to predict.", "target_column")
    if goal.kind == DATE and task != "classification":
        raise BnnvizError(f"The target {key} holds dates; choose a column of numbers or classes.", "target_column")
    if is_text and task == "regression":
        text = kinds[~are_numbers(kinds)][0]
        raise TableQuestion(
            f"The target {key} holds texts such as {short_repr(text)}, but a regression needs numbers.",
            (_CLASSES,),
            field="task",
        )
    task = _guess(kinds, is_text, key) if task is None else task
    if task == "regression":
        return values, (), task
    if len(kinds) > min(MOST_CATEGORIES, len(values) // 2):
        raise TableQuestion(
            f"The target {key} has {len(kinds):,} different values in {len(values):,} rows, which is too many classes"
            f" (at most {MOST_CATEGORIES}, with two rows each).",
            () if is_text else (_AMOUNTS,),
            "choose another target",
            "target_column" if is_text else "task",
        )
    names = tuple(str(kind) if is_text else f"{kind:g}" for kind in kinds)
    return labels.astype(float), names, task


def _guess(kinds: np.ndarray, is_text: bool, key: str) -> Task:
    if is_text:
        numbers = list(kinds[are_numbers(kinds)])
        if len(numbers) <= _AMBIGUOUS and not any(mark in number for number in numbers for mark in ".,eE"):
            return "classification"
        text = next(kind for kind in kinds if kind not in numbers)
        raise TableQuestion(
            f"The target {key} holds numbers such as {numbers[0]} and texts such as {short_repr(text)}.",
            (_CLASSES, treat_as_missing(str(text))),
            field="task",
        )
    if len(kinds) <= _AMBIGUOUS and (kinds == np.round(kinds)).all():
        shown = listed([f"{kind:g}" for kind in kinds])
        raise TableQuestion(
            f"The target {key} has {len(kinds)} different whole numbers ({shown}), which may be classes or amounts.",
            (_AMOUNTS, _CLASSES),
            field="task",
        )
    return "regression"


def _inputs(columns: list[Column], name: str, notes: list[str]) -> list[Column]:
    """Return the columns that are inputs."""
    for kind, what in ((EMPTY, "Columns without a value"), (CONSTANT, "Constant columns")):
        if left := [column.name for column in columns if column.kind == kind]:
            notes.append(f"{what} are left out: {listed(left)}.")
    inputs = [column for column in columns if not column.is_passed_over]
    notes += [column.remark for column in columns if column.is_passed_over and column.kind not in (EMPTY, CONSTANT)]
    dates = [column.name for column in inputs if column.kind == DATE]
    if dates:
        notes.append(f"Dates are read as days: {listed(dates)}.")
    if not inputs:
        raise BnnvizError(f"Every column of {name} but the target is constant; at least one input has to vary.", "data")
    return inputs


def _with_encoder_notes(table: UserTable) -> UserTable:
    """Return the table with notes on categories and gaps."""
    encoder = table.encoder
    if len(encoder.names) > reading.MOST_COLUMNS:
        widest = sorted(encoder.levels, key=lambda key: -len(encoder.levels[key]))[:5]
        raise BnnvizError(
            f"The texts of {table.name} make {len(encoder.names):,} columns, one for each level; at most"
            f" {reading.MOST_COLUMNS:,} can be used. Leave out {listed(widest)}.",
            "data",
        )
    gaps = table.frame.isna().any(axis=1).sum()
    filled = f"{gaps:,} of {len(table.y):,} rows have missing inputs: numbers are filled by the median and marked,"
    notes = [*table.notes, *encoder.describe_categories()]
    notes += [f"{filled} missing texts are a separate level."] if gaps else []
    object.__setattr__(table, "notes", tuple(notes))
    return table
