"""Read a CSV file of the user's own into a table of numbers, or say in one sentence why not."""

from __future__ import annotations

import difflib
import hashlib
import io
import os
import re
import warnings
from collections.abc import Sequence
from reprlib import repr as short_repr
from types import ModuleType
from typing import TYPE_CHECKING, get_args

import numpy as np

from bnnviz import optional
from bnnviz.data.dataset import DataSet, Task
from bnnviz.data.tables import layout
from bnnviz.data.tables import source as source_file
from bnnviz.data.tables.layout import MISSING, MOST_COLUMNS, Layout
from bnnviz.data.tables.numerals import Decimal, Readings, chosen, decimal_of, is_number
from bnnviz.data.tables.user_table import UserTable
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import pandas as pd

MOST_CATEGORIES = 20
FEWEST_ROWS = 5
_AMBIGUOUS = 10  # so few different whole numbers may be classes or amounts
_LARGEST = 1e30  # its square has to fit into single precision after scaling
_INDEX = re.compile(
    r"unnamed: \d+|index|idx|id|row|rows?[ _.]?(id|name|number|index)s?|rownames|no|nr|#", re.IGNORECASE
)
_SENTINELS = [sign * number for number in (99, 999, 9999, 99999, 999999) for sign in (-1.0, 1.0)]
_FAR = 3.0  # ranges of all other numbers: so far off a sentinel lies
_SHOWN = 12  # names in a sentence


def read_csv(
    source: str | os.PathLike | bytes,
    target_column: str | None,
    task: Task | None = None,
    name: str | None = None,
    split: int = 0,
) -> DataSet:
    """Read a CSV file and divide its rows; takes what `read_table` takes.

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
    """
    return read_table(source, target_column, task, name).load(split)


def read_header(source: str | os.PathLike | bytes, name: str | None = None) -> list[str]:
    """Return the names of a file's columns; takes what `read_table` takes.

    Raises
    ------
    BnnvizError
        If it is no CSV file.
    """
    content, name = source_file.content(source, name)
    return layout.find(source_file.decode(content, name), name).names


def read_table(
    source: str | os.PathLike | bytes,
    target_column: str | None,
    task: Task | None = None,
    name: str | None = None,
    *,
    decimal: Decimal | None = None,
    missing: Sequence[str] | None = None,
) -> UserTable:
    """Read a CSV file into a table of numbers.

    Parameters
    ----------
    source : path or bytes
        The file, or what is in it: a text in UTF-8 whose cells are separated by commas, semicolons or
        tabs. The first line names the columns; if it holds a number it is a row, and the columns are
        called c1, c2, ...
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

    Returns
    -------
    UserTable
        Rows with a missing value are left out and so are constant columns; a text column with at most
        20 different values becomes one column for each value. ``notes`` says so.

    Raises
    ------
    BnnvizError
        If the file cannot be used; the sentence names the cause and the remedy.
    """
    content, name = source_file.content(source, name)
    if task is not None and task not in get_args(Task):
        raise BnnvizError(f"The task cannot be {task!r}; choose {' or '.join(get_args(Task))}.", "task")
    if decimal is not None and decimal not in get_args(Decimal):
        raise _wrong(f"The decimal mark cannot be {decimal!r}; choose a point or a comma.")
    found = layout.find(source_file.decode(content, name), name, target_column)
    notes = list(found.notes)
    target = _find_target(target_column, found.names, name)
    columns = _columns(_parse(found, name, missing), found, target, decimal, name, notes)
    columns = _without_index(columns, found, target, notes)
    columns = _complete(_with_gaps(columns, missing, found, name, notes), name, notes)
    y, class_names, task = _target(columns.pop(target), target, task)
    inputs = _inputs(columns, name, notes)
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
    )


def _wrong(sentence: str, field: str = "data") -> BnnvizError:
    return BnnvizError(sentence, field)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


# --- rows


def _find_target(target: str | None, names: list[str], name: str) -> str:
    if target is None:
        raise _wrong(f"Say which column of {name} is the target; its columns are {_listed(names)}.", "target_column")
    if target not in names:
        close = difflib.get_close_matches(target, names, n=3) or [n for n in names if n.lower() == target.lower()]
        hint = f"; did you mean {' or '.join(close)}?" if close else f"; its columns are {_listed(names)}."
        raise _wrong(f"The file {name} has no column {short_repr(target)}{hint}", "target_column")
    return target


def _parse(layout: Layout, name: str, missing: Sequence[str] | None) -> pd.DataFrame:
    """Return the cells, as texts where numbers may be written with commas."""
    pandas = _pandas()
    texts = layout.separator != "," or '"' in layout.body
    names, ending = layout.names, _ending(layout)
    try:
        with warnings.catch_warnings():
            # A row with more cells than names is cut with a warning only.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            frame = pandas.read_csv(
                io.StringIO(layout.body),
                sep=layout.separator,
                names=[*names, ending] if ending else names,
                header=None,
                index_col=False,
                skipinitialspace=True,
                na_values=[*MISSING, *(missing or ())],
                dtype=str if texts else None,
                low_memory=False,
            )
    except pandas.errors.EmptyDataError as error:
        raise _wrong(f"The file {name} has names but no rows; add rows.") from error
    except pandas.errors.ParserWarning as error:
        raise _wrong(f"Lines of {name} have more cells than the {len(names)} columns; check its separators.") from error
    except (ValueError, OverflowError) as error:
        found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if found:
            line = layout.lines_before + int(found[2])
            sentence = f"Line {line} of {name} has {found[3]} cells, but there are {found[1]} columns"
        else:
            sentence = f"The file {name} cannot be read ({str(error).splitlines()[0].strip().rstrip('.')})"
        raise _wrong(f"{sentence}; check its separators and quotes.") from error
    if len(frame) == 0:
        raise _wrong(f"The file {name} has names but no rows; add rows.")
    if ending and frame[ending].notna().any():
        raise _wrong(f"Lines of {name} have more cells than the {len(names)} columns; check its separators.")
    return frame[names]


def _ending(layout: Layout) -> str | None:
    """Return a name for the empty cell at the end of every row, where rows end with a separator; None where not."""
    rows = (line.rstrip() for line in layout.body.splitlines())
    ends = [row.endswith(layout.separator.strip() or layout.separator) for row in rows if row]
    first = next((line for line in layout.body.splitlines() if line.strip()), "")
    more = first.count(layout.separator) == len(layout.names)
    return "".join(layout.names) if ends and all(ends) and more else None


def _pandas() -> ModuleType:
    return optional.require("pandas", "Reading a CSV file needs", "data")


# --- columns


def _columns(
    frame: pd.DataFrame, layout: Layout, target: str, decimal: Decimal | None, name: str, notes: list[str]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return each column as floats, or as texts, and which of its cells hold something."""
    texts = {key: frame[key] for key in layout.names if frame[key].dtype.kind not in "iuf"}
    cells = {key: (series.notna().to_numpy(), _stripped(series)) for key, series in texts.items()}
    readings = {key: Readings.of(found[present]) for key, (present, found) in cells.items()}
    mark = decimal_of(readings, decimal)
    columns = {}
    for key in layout.names:
        if key in texts:
            columns[key] = _column(key, *cells[key], readings[key], mark, layout, key == target, name, notes)
        else:
            columns[key] = _numbers(frame[key].to_numpy(dtype=float), key)
    return columns


def _stripped(cells: pd.Series) -> np.ndarray:
    return np.where(cells.notna().to_numpy(), cells.astype(str).str.strip().to_numpy(dtype=object), "")


def _column(
    key: str,
    present: np.ndarray,
    texts: np.ndarray,
    reading: Readings,
    mark: Decimal | None,
    layout: Layout,
    is_target: bool,
    name: str,
    notes: list[str],
) -> tuple[np.ndarray, np.ndarray]:
    """Return a column of texts as floats where they are numbers, and which of its cells hold something."""
    found = texts[present]
    row = int(np.flatnonzero(present)[reading.differing.argmax()]) if reading.is_open else 0
    numbers, said = chosen(key, reading, mark, f"line {layout.line_of(row)} of {name}" if reading.is_open else "")
    strange = np.isnan(numbers)
    if len(found) == 0 or not strange.any():
        notes += [said] if said else []
        values = np.full(len(texts), np.nan)
        values[present] = numbers
        return _numbers(values, key)
    is_mixed = not strange.all()
    if is_mixed and not (is_target and len(set(found)) <= MOST_CATEGORIES):
        example = short_repr(found[strange][0])
        raise _wrong(
            f"The column {key} of {name} holds numbers and texts such as {example}; make all of it numbers, leave"
            " those cells empty, or leave the column out."
        )
    return texts, present


def _without_index(
    columns: dict[str, tuple[np.ndarray, np.ndarray]], layout: Layout, target: str, notes: list[str]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Leave out what numbers or names the rows: it says where a row stands in the file, and nothing else.

    That is a first column without a name whose cells are all different, as table programs write it, or one called as an
    index is that counts the rows; and any unnamed column without cells, as lines that end with a separator have it.
    """
    left = {key for key in layout.unnamed if key != target and not columns[key][1].any()}
    first = layout.names[0]
    values, present = columns[first]
    if first != target and present.all() and len(np.unique(values.astype(str))) == len(values):
        counts = values.dtype != object and (np.diff(values) == 1).all()
        whole = values.dtype == object or (values == np.round(values)).all()
        if (first in layout.unnamed and whole) or (counts and _INDEX.fullmatch(first)):
            what = "without a name" if first in layout.unnamed else first
            notes.append(f"The first column, {what}, numbers or names the rows and is left out.")
            left.add(first)
    return {key: column for key, column in columns.items() if key not in left}


def _with_gaps(
    columns: dict[str, tuple[np.ndarray, np.ndarray]],
    missing: Sequence[str] | None,
    layout: Layout,
    name: str,
    notes: list[str],
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Take the numbers that stand for no value out; ask where a number looks like one.

    Raises
    ------
    BnnvizError
        If a number such as -999 lies far off all others of its column, and nobody has said what it is.
    """
    given = [float(text) for text in missing or () if is_number(text)]
    for key, (values, present) in columns.items():
        if values.dtype == object:
            continue
        present &= ~np.isin(values, given)
        suspect = _sentinel(values[present]) if missing is None else None
        if suspect is not None:
            line = layout.line_of(int(np.flatnonzero(values == suspect)[0]))
            raise _wrong(
                f"Does {suspect:g} in the column {key}, line {line} of {name}, stand for a missing value? Say"
                f" --missing {suspect:g}, or leave those cells empty; --missing none keeps it as a number."
            )
    if given:
        notes.append(f"Cells with {_listed([f'{number:g}' for number in given])} count as missing.")
    return columns


def _sentinel(values: np.ndarray) -> float | None:
    """Return a number that is used for a missing value and lies far off all others; None where there is none."""
    for number in np.intersect1d(values, _SENTINELS):
        others = values[values != number]
        if len(others) < FEWEST_ROWS:
            continue
        low, high = others.min(), others.max()
        if max(low - number, number - high) > _FAR * max(high - low, 1e-12):
            return float(number)
    return None


def _numbers(values: np.ndarray, key: str) -> tuple[np.ndarray, np.ndarray]:
    finite = np.isfinite(values)
    if finite.any() and np.abs(values[finite]).max() > _LARGEST:
        raise _wrong(f"The column {key} holds numbers beyond {_LARGEST:g}; give it in another unit.")
    return values, finite


def _complete(columns: dict[str, tuple[np.ndarray, np.ndarray]], name: str, notes: list[str]) -> dict[str, np.ndarray]:
    """Leave out the rows in which a cell is missing."""
    whole = np.logical_and.reduce([present for _, present in columns.values()])
    left = int(whole.sum())
    if left == 0:
        worst = max(columns, key=lambda key: int((~columns[key][1]).sum()))
        raise _wrong(
            f"Every row of {name} has a missing value, most of them in the column {worst}; fill it or leave it out."
        )
    if left < FEWEST_ROWS:
        raise _wrong(f"The file {name} has {left} rows without a missing value; at least {FEWEST_ROWS} are needed.")
    if left < len(whole):
        notes.append(f"{len(whole) - left:,} of {len(whole):,} rows have a missing or infinite value and are left out.")
    return {key: values[whole] for key, (values, _) in columns.items()}


def _target(values: np.ndarray, key: str, task: Task | None) -> tuple[np.ndarray, tuple[str, ...], Task]:
    """Return the target's numbers, the classes' names, and the task."""
    kinds, labels = np.unique(values, return_inverse=True)
    if len(kinds) == 1:
        raise _wrong(f"The target {key} is {kinds[0]} in every row; there is nothing to predict.", "target_column")
    is_text = values.dtype == object
    if is_text and task == "regression":
        raise _wrong(
            f"The target {key} holds texts such as {short_repr(kinds[0])}; a regression needs numbers.", "task"
        )
    if task is None:
        task = _guess(kinds, is_text, key)
    if task == "regression":
        return values, (), task
    if len(kinds) > MOST_CATEGORIES:
        raise _wrong(
            f"The target {key} has {len(kinds):,} different values; classes are at most {MOST_CATEGORIES}: choose"
            " another target" + ("." if is_text else ", or regression."),
            "target_column" if is_text else "task",
        )
    names = tuple(str(kind) if is_text else f"{kind:g}" for kind in kinds)
    return labels.astype(float), names, task


def _guess(kinds: np.ndarray, is_text: bool, key: str) -> Task:
    if is_text:
        return "classification"
    if len(kinds) <= _AMBIGUOUS and (kinds == np.round(kinds)).all():
        shown = _listed([f"{kind:g}" for kind in kinds])
        raise _wrong(
            f"The target {key} has {len(kinds)} different whole numbers ({shown}), which may be classes or amounts;"
            " say which: --task classification or --task regression.",
            "task",
        )
    return "regression"


def _inputs(columns: dict[str, np.ndarray], name: str, notes: list[str]) -> dict[str, np.ndarray]:
    """Return the inputs' numbers: constant columns left out, texts as one column for each value."""
    crowded = [k for k, values in columns.items() if values.dtype == object and len(set(values)) > MOST_CATEGORIES]
    if crowded:
        raise _wrong(
            f"Columns of {name} hold texts with more than {MOST_CATEGORIES} different values ({_listed(crowded)});"
            " leave them out or put numbers in their place."
        )
    constant = [key for key, values in columns.items() if (values == values[0]).all()]
    if constant:
        notes.append(f"Constant columns are left out: {_listed(constant)}.")
    inputs: dict[str, np.ndarray] = {}
    for key, values in columns.items():
        if key in constant:
            continue
        made = {key: values.astype(float)} if values.dtype != object else _one_hot(key, values)
        if values.dtype == object:
            notes.append(f"The text column {key} is read as {_listed(list(made))}, each 0 or 1.")
        inputs |= made
    if not inputs:
        raise _wrong(f"Every column of {name} but the target is constant; at least one input has to vary.")
    if len(inputs) > MOST_COLUMNS:
        raise _wrong(
            f"The texts of {name} make {len(inputs):,} columns, one for each value; at most {MOST_COLUMNS:,} can be"
            " used: leave some text columns out."
        )
    return inputs


def _one_hot(key: str, values: np.ndarray) -> dict[str, np.ndarray]:
    kinds = sorted(set(values))
    # Of two values one says everything.
    return {f"{key}={kind}": (values == kind).astype(float) for kind in (kinds[1:] if len(kinds) == 2 else kinds)}
