"""Read a CSV file of the user's own into a table of numbers, or say in one sentence why not."""

from __future__ import annotations

import csv
import difflib
import errno
import hashlib
import io
import os
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from reprlib import repr as short_repr
from types import ModuleType
from typing import TYPE_CHECKING, get_args

import numpy as np

from bnnviz import optional
from bnnviz.data.dataset import DataSet, Task
from bnnviz.data.table import UserTable
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 50_000_000
MOST_ROWS = 200_000
MOST_COLUMNS = 2_000
MOST_CATEGORIES = 20
FEWEST_ROWS = 5
_AMBIGUOUS = 10  # so few different whole numbers may be classes or amounts
_LARGEST = 1e30  # its square has to fit into single precision after scaling
_CHUNK = 1 << 20
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
_MISSING = ("?", "-", "--", ".")
_COMPRESSED = (b"PK\x03\x04", b"\x1f\x8b", b"\xd0\xcf\x11\xe0")
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
    content, name = _content(source, name)
    return _column_names(_first_line(_decode(content, name), name)[0], name, [])


def read_table(
    source: str | os.PathLike | bytes,
    target_column: str | None,
    task: Task | None = None,
    name: str | None = None,
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
    content, name = _content(source, name)
    if task is not None and task not in get_args(Task):
        raise BnnvizError(f"The task cannot be {task!r}; choose {' or '.join(get_args(Task))}.", "task")
    notes: list[str] = []
    text = _decode(content, name)
    first, separator = _first_line(text, name)
    names = _column_names(first, name, notes)
    target = _find_target(target_column, names, name)
    frame = _parse(text, names, separator, not _is_header(first), name)
    columns = {key: _column(frame[key], key, key == target, separator, name, notes) for key in names}
    columns = _complete(columns, name, notes)
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


# --- bytes


def _content(source: str | os.PathLike | bytes, name: str | None) -> tuple[bytes, str]:
    if isinstance(source, bytes):
        name = _clean(name or "your file")
        _check_size(len(source), name)
        content = source
    else:
        path = Path(source)
        name = _clean(name or path.name)
        content = _read_file(path, name)
    # Counted before anything is made of them: each line becomes many objects.
    if content.count(b"\n") > MOST_ROWS + 1 or content.count(b"\r") > MOST_ROWS + 1:
        raise _wrong(f"The file {name} has more than {MOST_ROWS:,} rows; give a random part of them.")
    return content, name


def _clean(name: str) -> str:
    return "".join(letter for letter in Path(name).name if letter.isprintable())[:100] or "your file"


def _check_size(size: int, name: str) -> None:
    if size > MOST_BYTES:
        raise _wrong(
            f"The file {name} has {size / 1e6:,.0f} MB; the limit is {MOST_BYTES / 1e6:.0f} MB:"
            " give fewer rows or columns."
        )


def _read_file(path: Path, name: str) -> bytes:
    pieces: list[bytes] = []
    size = lines = total = 0
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            # A pipe has no size.
            while max(size, total) <= MOST_BYTES and lines <= MOST_ROWS + 1 and (piece := stream.read(_CHUNK)):
                pieces.append(piece)
                lines += piece.count(b"\n")
                total += len(piece)
    except FileNotFoundError as error:
        raise _wrong(f"There is no file {path}; give the path of a CSV file.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is no path"
        raise _wrong(f"{short_repr(str(path))} cannot be read ({reason}); give the path of a CSV file.") from error
    _check_size(max(size, total), name)
    return b"".join(pieces)


def _decode(content: bytes, name: str) -> str:
    if content.startswith(_COMPRESSED):
        raise _wrong(f"The file {name} is a spreadsheet or compressed; save or unpack it as CSV first.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong(f"The file {name} is no UTF-8 text (byte {error.start + 1}); save it as CSV UTF-8.") from error
    if "\0" in text:
        raise _wrong(f"The file {name} is no text; give a CSV file in UTF-8.")
    if not text.strip():
        raise _wrong(f"The file {name} is empty; give one with a line of names and a line for each row.")
    return text


# --- cells


def _first_line(text: str, name: str) -> tuple[list[str], str]:
    """Return the cells of the first line that is not blank, and the separator that makes most of them."""
    line = re.search(r"[^\r\n]*\S[^\r\n]*", text)[0]
    if len(line) > MOST_BYTES // 50:
        raise _wrong(f"The first line of {name} is longer than {MOST_BYTES // 50:,} characters; is it a CSV file?")
    try:
        cells = {mark: next(csv.reader([line], delimiter=mark, skipinitialspace=True)) for mark in _SEPARATORS}
    except csv.Error as error:
        raise _wrong(f"The first line of {name} cannot be read ({error}); check its quotes.") from error
    separator = max(cells, key=lambda mark: len(cells[mark]))
    first = [cell.strip() for cell in cells[separator]]
    if len(first) == 1:
        marks = ", ".join(_SEPARATORS.values())
        raise _wrong(
            f"The file {name} has one column only; it needs a target and an input, separated by one of {marks}."
        )
    if len(first) > MOST_COLUMNS:
        raise _wrong(f"The file {name} has {len(first):,} columns; give at most {MOST_COLUMNS:,}.")
    return first, separator


def _is_header(first: list[str]) -> bool:
    return not any(_is_number(cell) for cell in first)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


def _column_names(first: list[str], name: str, notes: list[str]) -> list[str]:
    if not _is_header(first):
        notes.append(f"The first line of {name} holds a number: it is a row, and the columns are c1 to c{len(first)}.")
        return [f"c{i + 1}" for i in range(len(first))]
    names = [cell[:100] or f"c{i + 1}" for i, cell in enumerate(first)]
    twice = [key for key, count in Counter(names).items() if count > 1]
    if twice:
        raise _wrong(f"Two columns of {name} are called {twice[0]}; give each its own name.")
    return names


def _find_target(target: str | None, names: list[str], name: str) -> str:
    if target is None:
        raise _wrong(f"Say which column of {name} is the target; its columns are {_listed(names)}.", "target_column")
    if target not in names:
        close = difflib.get_close_matches(target, names, n=3) or [n for n in names if n.lower() == target.lower()]
        hint = f"; did you mean {' or '.join(close)}?" if close else f"; its columns are {_listed(names)}."
        raise _wrong(f"The file {name} has no column {short_repr(target)}{hint}", "target_column")
    return target


def _parse(text: str, names: list[str], separator: str, headless: bool, name: str) -> pd.DataFrame:
    pandas = _pandas()
    try:
        with warnings.catch_warnings():
            # A row with more cells than names is cut with a warning only.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            frame = pandas.read_csv(
                io.StringIO(text),
                sep=separator,
                names=names,
                header=None if headless else 0,
                index_col=False,
                skipinitialspace=True,
                na_values=list(_MISSING),
                low_memory=False,
            )
    except pandas.errors.ParserWarning as error:
        raise _wrong(f"Lines of {name} have more cells than the {len(names)} columns; check its separators.") from error
    except (ValueError, OverflowError) as error:
        found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if found:
            sentence = f"Line {found[2]} of {name} has {found[3]} cells, but there are {found[1]} columns"
        else:
            sentence = f"The file {name} cannot be read ({str(error).splitlines()[0].strip().rstrip('.')})"
        raise _wrong(f"{sentence}; check its separators and quotes.") from error
    if len(frame) == 0:
        raise _wrong(f"The file {name} has names but no rows; add rows.")
    return frame


def _pandas() -> ModuleType:
    return optional.require("pandas", "Reading a CSV file needs", "data")


# --- columns


def _column(
    cells: pd.Series, key: str, is_target: bool, separator: str, name: str, notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return a column as floats, or as texts, and which of its cells hold something."""
    pandas = _pandas()
    if cells.dtype.kind in "iuf":
        return _numbers(cells.to_numpy(dtype=float), key)
    present = cells.notna().to_numpy()
    texts = np.where(present, cells.astype(str).str.strip().to_numpy(dtype=object), "")
    found = texts[present]
    numbers = pandas.to_numeric(pandas.Series(found, dtype=object), errors="coerce").to_numpy(dtype=float)
    if separator != "," and np.isnan(numbers).any():
        commas = pandas.Series([text.replace(",", ".", 1) for text in found], dtype=object)
        with_points = pandas.to_numeric(commas, errors="coerce").to_numpy(dtype=float)
        if not np.isnan(with_points).any():
            notes.append(f"The commas in the numbers of {key} are read as decimal points.")
            numbers = with_points
    strange = np.isnan(numbers) & (np.char.lower(found.astype(str)) != "nan")
    if len(found) and not strange.any():
        values = np.full(len(cells), np.nan)
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
