"""Read a CSV file of the user's own into a table of numbers, or say in one sentence why not."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Sequence
from reprlib import repr as short_repr
from typing import Any, get_args

import numpy as np

from bnnviz.data.dataset import DataSet, Task
from bnnviz.data.tables import layout
from bnnviz.data.tables import source as source_file
from bnnviz.data.tables.cells import (
    FEWEST_ROWS,
    MOST_CATEGORIES,
    check_amounts,
    check_size,
    check_texts,
    is_constant,
    listed,
    of_case,
    one_hot,
    parse,
    read_columns,
    with_gaps,
    words_for_nothing,
    wrong,
)
from bnnviz.data.tables.layout import MOST_COLUMNS, Layout
from bnnviz.data.tables.numerals import Decimal, is_number
from bnnviz.data.tables.questions import Answer, TableQuestion
from bnnviz.data.tables.user_table import UserTable
from bnnviz.errors import BnnvizError

_MANY = 0.2  # of the rows, which one column costs
_AMBIGUOUS = 10  # so few different whole numbers may be classes or amounts
_INDEX = re.compile(r"unnamed: \d+|index|idx|id|row|rows?[ _.]?(id|name|number|index)s?|rownames", re.IGNORECASE)
_COUNT = re.compile(r"no|nr|#", re.IGNORECASE)  # which may be called so and be amounts
# The name of a key: flat_id, Customer ID, PassengerId, id_flat; a word such as "paid" or "humid" is none.
_KEY = re.compile(r"(?i:(.*[\W_])?(id|key|uuid|idx)|id[\W_].*)|.*[a-z](Id|ID|Key|Idx)")
_AMOUNTS = Answer("Treat them as amounts (regression)", "task", ("regression",))
_CLASSES = Answer("Treat them as classes (classification)", "task", ("classification",))


def read_csv(
    source: Any,
    target_column: str | None,
    task: Task | None = None,
    name: str | None = None,
    split: int = 0,
) -> DataSet:
    r"""Read a CSV file and divide its rows; takes what `read_table` takes.

    Parameters
    ----------
    source, target_column, task, name
        As in `read_table`.
    split : int, default 0
        Which division into training rows and a tenth of test rows, from 0 to 19.

    Returns
    -------
    DataSet
        Its ``doc`` says what was done to the rows and columns.

    Examples
    --------
    >>> from bnnviz import data
    >>> text = "x,y\n" + "\n".join(f"{i},{2 * i + 1}.5" for i in range(30))
    >>> data.read_csv(text.encode(), "y").task
    'regression'
    """
    return read_table(source, target_column, task, name).load(split)


def read_header(source: Any, name: str | None = None) -> list[str]:
    r"""Return the names of a file's columns; takes what `read_table` takes.

    Raises
    ------
    BnnvizError
        If it is no CSV file.

    Examples
    --------
    >>> from bnnviz import data
    >>> data.read_header(b"rooms,area,price\n1,2,3\n")
    ['rooms', 'area', 'price']
    """
    content, name = source_file.content(source, name)
    return layout.find(source_file.decode(content, name), name).names


def read_table(
    source: Any,
    target_column: str | None,
    task: Task | None = None,
    name: str | None = None,
    *,
    decimal: Decimal | None = None,
    missing: Sequence[str] | None = None,
    leave_out: Sequence[str] = (),
) -> UserTable:
    r"""Read a CSV file into a table of numbers.

    Parameters
    ----------
    source : path, bytes, open file or frame
        The file, or what is in it: a text in UTF-8 whose cells are separated by commas, semicolons,
        tabs or vertical bars. Or a frame of pandas, polars or PyArrow, whose index is left out. The first line names
        the columns; if it holds a number it is a row, and the columns are called c1, c2, ...
    target_column : str or None
        The column to predict; all others are inputs. None is refused with the names to choose from.
    task : {"regression", "classification"} or None, default None
        What the target is. None tells texts (classes) from numbers, and asks where the numbers are a
        few different whole ones.
    name : str or None, default None
        What to call it; the file's name where not given.
    decimal : {".", ","} or None, default None
        The mark before the decimals of its numbers. None takes what its columns show, and asks where a number such as
        ``1,952`` can be read in both ways.
    missing : sequence of str or None, default None
        What stands in a cell without a value, besides nothing, ``?``, ``-`` and what pandas takes for it. None asks
        where a number such as -999 looks like it; an empty sequence takes all numbers as they are.
    leave_out : sequence of str, default ()
        Columns that are no inputs; what they hold is not looked at.

    Returns
    -------
    UserTable
        Rows with a missing value are left out and so are constant columns; a text column with at most
        20 different values becomes one column for each value. ``notes`` says so.

    Raises
    ------
    BnnvizError
        If the file cannot be used; the sentence names the cause and the remedy. A `TableQuestion` where one of these
        options answers.

    Examples
    --------
    >>> from bnnviz import data
    >>> text = "rooms,kind,price\n" + "\n".join(f"{i},{'ab'[i % 2]},{100 + 3 * i}.5" for i in range(30))
    >>> data.read_table(text.encode(), "price").x_names
    ('rooms', 'kind=b')
    """
    of_frame = source_file.is_frame(source)
    content, name = source_file.content(source, name)
    if task is not None and task not in get_args(Task):
        raise BnnvizError(f"The task cannot be {task!r}; choose {' or '.join(get_args(Task))}.", "task")
    if decimal is not None and decimal not in get_args(Decimal):
        raise wrong(f"The decimal mark cannot be {decimal!r}; choose a point or a comma.")
    found = layout.find(source_file.decode(content, name), name, target_column)
    notes = [*found.notes, *source_file.of_index(source)]
    decimal = decimal or ("." if of_frame else None)
    target = _find_target(target_column, found.names, name)
    used = _used(found, leave_out, target, name, notes)
    columns, decimal = read_columns(parse(found, name, missing), used, target, decimal, name, notes)
    notes += words_for_nothing(columns, found)
    columns = without_index(columns, found, target, notes)
    columns = _complete(with_gaps(columns, missing, found, name, notes), target, name, notes)
    if task != "classification":
        check_amounts({target: columns[target]}, name, is_target=True)
    y, class_names, task = _target(columns.pop(target), target, task)
    notes += [*of_case(target, class_names), *_of_few(target, y, class_names)]
    inputs, levels = _inputs(columns, name, notes)
    return UserTable(
        name=name,
        sha256=hashlib.sha256(content).hexdigest(),
        task=task,
        x=np.column_stack(list(inputs.values())),
        y=y,
        x_names=tuple(inputs),
        target=target,
        class_names=class_names,
        notes=tuple(notes),
        levels=levels,
        decimal=decimal,
        missing=None if missing is None else tuple(missing),
    )


# --- rows


def _find_target(target: str | None, names: list[str], name: str) -> str:
    if target is None:
        raise wrong(f"Say which column of {name} is the target; its columns are {listed(names)}.", "target_column")
    if target not in names:
        raise wrong(f"The file {name} has no column {short_repr(target)}{_hint(target, names)}", "target_column")
    return target


def _hint(given: str, names: list[str]) -> str:
    """Return how a sentence on a column that is not there ends."""
    close = difflib.get_close_matches(given, names, n=3) or [n for n in names if n.lower() == given.lower()]
    return f"; did you mean {' or '.join(close)}?" if close else f"; its columns are {listed(names)}."


# --- columns


def _used(found: Layout, leave_out: Sequence[str], target: str, name: str, notes: list[str]) -> Layout:
    """Return the layout with the columns alone that are read."""
    unknown = [key for key in leave_out if key not in found.names]
    if unknown:
        raise wrong(
            f"The file {name} has no column {short_repr(unknown[0])} that could be left out"
            f"{_hint(unknown[0], found.names)}",
            "leave_out",
        )
    if target in leave_out:
        raise wrong(f"The target {target} cannot be left out; choose another target, or keep it.", "leave_out")
    left = [key for key in found.names if key in set(leave_out)]
    if len(left) == len(found.names) - 1:
        raise wrong(f"Every column of {name} but the target is left out; keep one as an input.", "leave_out")
    if left:
        notes.append(f"Left out, as was asked for: {listed(left)}.")
    return found._replace(names=[key for key in found.names if key not in left])


def without_index(
    columns: dict[str, tuple[np.ndarray, np.ndarray]], layout: Layout, target: str | None, notes: list[str]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Leave out what numbers or names the rows: it says where a row stands in the file, and nothing else.

    That is a first column without a name whose cells are all different, as table programs write it, another one without
    a name whose cells count the rows, or one called as an index or a key is whose whole numbers are all different; and
    any unnamed column without cells, as lines that end with a separator have it. What counts the rows under another
    name is kept, and told.
    """
    left = {key for key in layout.unnamed if key in columns and key != target and not columns[key][1].any()}
    for key, (values, present) in columns.items():
        if key == target or key in left:
            continue
        if not present.all() or len(np.unique(values.astype(str))) < len(values):
            if values.dtype != object and _KEY.fullmatch(key):
                notes.append(_kept_key(key))
            continue
        is_text, first = values.dtype == object, key == layout.names[0]
        whole = not is_text and (values == np.round(values)).all()
        counts = whole and np.ptp(values) == len(values) - 1
        unnamed = key in layout.unnamed and (first or counts)
        called = (whole and (_INDEX.fullmatch(key) or _KEY.fullmatch(key))) or (counts and _COUNT.fullmatch(key))
        if (unnamed and (is_text or whole)) or called:
            place = "first column" if first else f"column {key[1:]}"
            what = f"{place}, without a name," if unnamed else f"column {key}"
            notes.append(f"The {what} numbers or names the rows and is left out.")
            left.add(key)
        elif counts and (np.abs(np.diff(values)) == 1).all():
            notes.append(_counting(key, values))
    return {key: column for key, column in columns.items() if key not in left}


def _kept_key(key: str) -> str:
    """Say that a column is called as a key, and does not tell every row from the others."""
    return f"The column {key} looks like an identifier, but is used as a number; leave it out if it is one."


def _counting(key: str, values: np.ndarray) -> str:
    """Say that a column counts the rows."""
    return (
        f"The column {key} counts the rows, {values[0]:.15g} to {values[-1]:.15g}; leave it out if it is an identifier."
    )


def _complete(
    columns: dict[str, tuple[np.ndarray, np.ndarray]], target: str, name: str, notes: list[str]
) -> dict[str, np.ndarray]:
    """Leave out columns without a value, and the rows in which a cell of another one is missing."""
    empty = [key for key, (_, present) in columns.items() if key != target and not present.any()]
    if empty and len(empty) < len(columns) - 1:
        notes.append(f"Columns without a value are left out: {listed(empty)}.")
        columns = {key: column for key, column in columns.items() if key not in empty}
    whole = np.logical_and.reduce([present for _, present in columns.values()])
    left = int(whole.sum())
    if left == 0:
        worst = max(columns, key=lambda key: int((~columns[key][1]).sum()))
        raise wrong(
            f"Every row of {name} has a missing value, most of them in the column {worst}; fill it"
            f"{'' if worst == target else ' or leave it out'}."
        )
    if left < FEWEST_ROWS:
        rows = "row" if left == 1 else "rows"
        raise wrong(f"The file {name} has {left} {rows} without a missing value; at least {FEWEST_ROWS} are needed.")
    if left < len(whole):
        lost = f"{len(whole) - left:,} of {len(whole):,} rows have a missing or infinite value and are left out."
        notes.append(lost + _to_blame(columns, target, left))
    return {key: values[whole] for key, (values, _) in columns.items()}


def _to_blame(columns: dict[str, tuple[np.ndarray, np.ndarray]], target: str, left: int) -> str:
    """Say which column costs many rows by itself; "" where none does."""
    inputs = [key for key in columns if key != target]
    held = {key: present for key, (_, present) in columns.items()}
    held = {key: present for key, (_, present) in columns.items()}
    kept = {key: int(np.logical_and.reduce([held[other] for other in held if other != key]).sum()) for key in inputs}
    worst = max(inputs, key=lambda key: kept[key])
    if len(inputs) == 1 or kept[worst] - left < _MANY * len(columns[target][1]):
        return ""
    return f" Without the column {worst} there would be {kept[worst]:,} rows."


def _target(values: np.ndarray, key: str, task: Task | None) -> tuple[np.ndarray, tuple[str, ...], Task]:
    """Return the target's numbers, the classes' names, and the task."""
    kinds, labels = np.unique(values, return_inverse=True)
    check_size(key, values)
    if is_constant(kinds):
        raise wrong(f"The target {key} is {kinds[0]} in every row; there is nothing to predict.", "target_column")
    is_text = values.dtype == object
    if is_text and task == "regression":
        text = next(kind for kind in kinds if not is_number(kind))
        raise TableQuestion(
            f"The target {key} holds texts such as {short_repr(text)}, but a regression needs numbers.",
            (_CLASSES,),
            field="task",
        )
    if task is None:
        task = _guess(kinds, is_text, key)
    if task == "regression":
        return values, (), task
    if len(kinds) > MOST_CATEGORIES:
        raise TableQuestion(
            f"The target {key} has {len(kinds):,} different values, but there are at most {MOST_CATEGORIES} classes.",
            () if is_text else (_AMOUNTS,),
            "choose another target",
            "target_column" if is_text else "task",
        )
    names = tuple(str(kind) if is_text else f"{kind:g}" for kind in kinds)
    return labels.astype(float), names, task


def _of_few(key: str, labels: np.ndarray, names: Sequence[str]) -> list[str]:
    """Say which classes have so few rows that a split may leave none of them to train on or to test by."""
    few = [f"{name} ({int((labels == k).sum())})" for k, name in enumerate(names) if (labels == k).sum() < FEWEST_ROWS]
    return [f"Of these classes of {key} there are few rows: {listed(few)}."] if few else []


def _guess(kinds: np.ndarray, is_text: bool, key: str) -> Task:
    if is_text:
        numbers = [kind for kind in kinds if is_number(kind)]
        if len(numbers) <= _AMBIGUOUS and not any(mark in number for mark in ".,eE" for number in numbers):
            return "classification"
        text = next(kind for kind in kinds if kind not in numbers)
        raise TableQuestion(
            f"The target {key} holds numbers such as {numbers[0]} and texts such as {short_repr(text)}.",
            (_CLASSES, Answer(f"Treat {short_repr(text)} as missing", "missing", (str(text),))),
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


def _inputs(
    columns: dict[str, np.ndarray], name: str, notes: list[str]
) -> tuple[dict[str, np.ndarray], dict[str, tuple[str, ...]]]:
    """Return the inputs' numbers, and the values of each column of the file that is one: () of a column of numbers.

    Constant columns are left out; of texts there is one column for each value.
    """
    check_texts(columns, name)
    constant = [key for key, values in columns.items() if is_constant(values)]
    if constant:
        notes.append(f"Constant columns are left out: {listed(constant)}.")
    inputs: dict[str, np.ndarray] = {}
    levels: dict[str, tuple[str, ...]] = {}
    for key, values in columns.items():
        if key in constant:
            continue
        check_size(key, values)
        levels[key] = tuple(sorted(set(values))) if values.dtype == object else ()
        made = one_hot(key, values, levels[key]) if levels[key] else {key: values.astype(float)}
        if values.dtype == object:
            notes += of_case(key, levels[key])
            notes.append(f"The text column {key} is read as {listed(list(made))}, each 0 or 1.")
        others = {*inputs, *columns} - {key}
        twice = next((each for each in made if each in others), None)
        if twice is not None:
            raise wrong(f"The texts of {key} in {name} make a column {twice}, and there is one; call that otherwise.")
        inputs |= made
    if not inputs:
        raise wrong(f"Every column of {name} but the target is constant; at least one input has to vary.")
    if len(inputs) > MOST_COLUMNS:
        raise wrong(
            f"The texts of {name} make {len(inputs):,} columns, one for each value; at most {MOST_COLUMNS:,} can be"
            f" used. Leave out {listed([key for key, texts in levels.items() if len(texts) > 2])}."
        )
    return inputs, levels
