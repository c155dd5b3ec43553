"""Read a CSV file or a frame into a frame of pandas."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bnnviz import optional
from bnnviz.data.tables import source
from bnnviz.data.tables.columns import Content, listed
from bnnviz.data.tables.numerals import Decimal, are_numbers, decimal_of
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import pandas as pd

csv.field_size_limit(1 << 30)  # the default refuses cells of 131,072 characters
MOST_COLUMNS = 2_000
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_HEAD = 1 << 20  # characters that show the layout of a file
_LOOKED_AT = 50  # rows that distinguish names from numbers
_SAMPLE = 1000  # rows that show the decimal mark
_MISSING = ("?", "-", "--", ".", "–", "—", "\\N", "#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?")
_HINT = re.compile(r'"?sep=([,;\t|])"?\s*', re.IGNORECASE)  # the line that Excel writes for itself
_INEXACT = r"\s*[+-]?(?:0\d|\d{16})"  # codes such as 00017, and whole numbers of many digits, that floats do not hold
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")  # a form feed is part of a cell


class _Layout(NamedTuple):
    """How a file is laid out."""

    body: str
    lines_before: int
    separator: str
    names: list[str]
    has_names: bool
    unnamed: list[str]


def read(
    given: Any,
    name: str | None,
    *,
    target: str | None = None,
    decimal: Decimal | None = None,
    missing: Sequence[str] | None = None,
    otherwise: Decimal | None = None,
    texts: Sequence[str] = (),
    verbatim: Sequence[str] = (),
    fewest: int = 2,
) -> Content:
    """Read a file or a frame.

    ``otherwise`` is the fallback decimal mark; ``texts`` are columns without numbers, and ``verbatim`` columns with
    unchanged cells.
    """
    if source.is_frame(given):
        return _of_frame(given, name or "the frame", missing or (), verbatim)
    content, name = source.content(given, name)
    layout = _layout(source.decode(content, name), name, target, fewest)
    _check_names(layout.names, verbatim, name)
    try:
        frame, mark = _parsed(layout, decimal, otherwise, texts, {"na_values": [*_MISSING, *(missing or ())]})
        if verbatim:
            frame[list(verbatim)] = _frame(layout, keep_default_na=False, dtype=str)[list(verbatim)]
    except (ValueError, OverflowError, Warning) as error:
        raise _unreadable(error, layout, name) from error
    if len(frame) == 0:
        raise BnnvizError(f"The file {name} has names but no rows; add rows.", "data")
    is_numbered = layout.names == [f"c{i + 1}" for i in range(len(layout.names))] and not layout.has_names
    notes = [f"{name} has no line of names; the columns are c1 to c{len(layout.names)}."] if is_numbered else []
    notes += ["Commas are read as decimal points."] if mark == "," else []
    return Content(frame, name, notes, hashlib.sha256(content).hexdigest(), mark, layout.unnamed)


def _of_frame(given: Any, name: str, missing: Sequence[str], verbatim: Sequence[str]) -> Content:
    pandas = optional.require("pandas", "Reading a table needs")
    frame = source.frame_of(given)
    _check_names(list(frame), verbatim, name)
    if len(frame) == 0:
        raise BnnvizError("The frame has no rows; add rows.", "data")
    digest = hashlib.sha256(pandas.util.hash_pandas_object(frame.astype(str), index=False).to_numpy().tobytes())
    digest.update("\0".join(frame.columns).encode())
    frame = frame.reset_index(drop=True)
    if missing:
        frame = frame.mask(frame.isin([*missing, *pandas.to_numeric(pandas.Series(missing), errors="coerce").dropna()]))
    return Content(frame, name, source.of_index(given), digest.hexdigest(), ".", from_text=False)


def _check_names(names: Sequence[str], requested: Sequence[str], name: str) -> None:
    for key in requested:
        if key not in names:
            raise BnnvizError(f"The file {name} has no column {key} to keep; it has {listed(names)}.", "keep")


# --- layout


def _layout(text: str, name: str, target: str | None, fewest: int) -> _Layout:
    """Find the separator, and the names of the columns, below lines of comments."""
    hint = _HINT.match(text)
    head = list(itertools.takewhile(lambda line: line.startswith("#") or not line.strip(), _lines(text[:_HEAD])))
    if hint is not None:
        head = _lines(text[: hint.end()])
    body = text[sum(map(len, head)) :]
    comments = [line.lstrip("# ") for line in head if line.startswith("#")]
    if comments:
        # A file with comments at its head may have others further down; empty lines keep the numbers of lines.
        body = "".join("\n" if line.startswith("#") else line for line in _lines(body))
    if not body.strip():
        raise BnnvizError(f"The file {name} holds comments alone; add a line of names and rows.", "data")
    separator = hint[1] if hint is not None else _separator(body, name, fewest)
    first, *rows = _rows(body, separator, name)
    if len(first) > MOST_COLUMNS:
        raise BnnvizError(f"The file {name} has {len(first):,} columns; give at most {MOST_COLUMNS:,}.", "data")
    if _has_row_names(first, rows):
        first = ["", *first]
    if rows and not any(len(row) == len(first) for row in rows):
        raise BnnvizError(
            f"The first line of {name} has {len(first)} cells and the next one {len(rows[0])}; give every line as many"
            f" cells, separated by one of {', '.join(_SEPARATORS.values())}.",
            "data",
        )
    if len(first) < fewest:
        marks = ", ".join(_SEPARATORS.values())
        raise BnnvizError(
            f"The file {name} has one column only; it needs a target and an input, separated by one of {marks}.", "data"
        )
    has_names = _is_header(first, rows, target)
    names = first if has_names else [""] * len(first)
    if not has_names and comments:
        commented = next(iter(_rows(comments[-1], separator, name)), [])
        if len(commented) == len(first) and not are_numbers(commented).any():
            names = commented  # as numpy.savetxt writes them
    unnamed = [f"c{i + 1}" for i, cell in enumerate(names) if not cell and has_names]
    names = [cell or f"c{i + 1}" for i, cell in enumerate(names)]
    twice = [key for key, count in Counter(names).items() if count > 1]
    if twice:
        raise BnnvizError(f"Two columns of {name} are called {twice[0]}; give each its own name.", "data")
    return _Layout(body, len(head), separator, names, has_names, unnamed)


def _has_row_names(first: list[str], rows: list[list[str]]) -> bool:
    """Return whether only the names lack a cell, above numbers from 1 or texts, as R's ``write.table`` writes them."""
    if not rows or any(len(row) != len(first) + 1 for row in rows):
        return False
    keys = [row[0] for row in rows]
    return keys == [str(i + 1) for i in range(len(rows))] or not (are_numbers(keys).any() or len(set(keys)) < len(keys))


def _lines(text: str) -> list[str]:
    return _LINE.findall(text)


def _rows(body: str, separator: str, name: str) -> list[list[str]]:
    """Return the cells of the first lines."""
    reader = csv.reader(_lines(body[:_HEAD]), delimiter=separator, skipinitialspace=True)
    try:
        rows = [[" ".join(cell.split()) for cell in row] for row in itertools.islice(reader, _LOOKED_AT)]
    except csv.Error as error:
        raise BnnvizError(f"The file {name} cannot be read ({error}); check its quotes.", "data") from error
    rows = [row for row in rows if any(row)]
    is_cut = len(body) > _HEAD and 1 < len(rows) < _LOOKED_AT
    return rows[:-1] if is_cut else rows


def _separator(body: str, name: str, fewest: int) -> str:
    """Return the separator that makes most numbers, so that a decimal comma is none, and then most columns."""

    def evidence(mark: str) -> tuple[float, int]:
        first, *rows = _rows(body, mark, name) or [[]]
        if len(first) < 2:
            return 0.0, len(first)
        fitting = [cell for row in rows if len(row) == len(first) for cell in row]
        return are_numbers(fitting).sum() / max(sum(map(len, rows)), 1), len(first)

    best = max(_SEPARATORS, key=evidence)
    # In a single column a comma is a decimal mark.
    return ";" if fewest == 1 and evidence(best)[1] < 2 else best


def _is_header(first: list[str], rows: list[list[str]], target: str | None) -> bool:
    """Return whether the first line has names: no number, or the target's name, or a text above numbers."""
    numeric = are_numbers(first)
    if target in first or not numeric.any():
        return True
    texts = [i for i, cell in enumerate(first) if cell and cell not in _MISSING and not numeric[i]]
    columns = [[row[i] for row in rows if i < len(row) and row[i]] for i in texts]
    return any(column and are_numbers(column).all() for column in columns)


# --- cells


def _parsed(
    layout: _Layout, decimal: Decimal | None, otherwise: Decimal | None, texts: Sequence[str], given: dict[str, Any]
) -> tuple[pd.DataFrame, Decimal | None]:
    """Return the cells, numbers as numbers if pandas can read them, and the decimal mark of the file."""
    mark = decimal
    if mark is None and layout.separator == "," and '"' not in layout.body:
        mark = "."
    mark = mark or decimal_of(_frame(layout, **given, dtype=str, nrows=_SAMPLE))
    if mark is None or mark == layout.separator:
        frame = _frame(layout, **given, dtype=str)
        return frame, mark or decimal_of(frame) or otherwise
    frame = _frame(layout, **given, decimal=mark, dtype=dict.fromkeys(texts, str))
    numbers = frame.select_dtypes("number")
    maybe = [key for key, cells in numbers.head(_SAMPLE).items() if not (cells % 1).any()]
    whole = [key for key in maybe if not (numbers[key] % 1).any()]
    as_texts = _frame(layout, **given, usecols=whole, dtype=str) if whole else frame[[]]
    for key, cells in as_texts.items():
        if cells.drop_duplicates().str.match(_INEXACT).any():
            frame[key] = cells
    return frame, mark


def _frame(layout: _Layout, **how: Any) -> pd.DataFrame:
    pandas = optional.require("pandas", "Reading a CSV file needs")
    with warnings.catch_warnings():
        # pandas cuts a row with more cells than names and warns.
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        return pandas.read_csv(
            io.BytesIO(layout.body.encode()),  # as texts they would be converted piece by piece
            sep=layout.separator,
            names=layout.names,
            header=0 if layout.has_names else None,
            index_col=False,
            skipinitialspace=True,
            low_memory=False,
            **how,
        )


def _unreadable(error: Exception, layout: _Layout, name: str) -> BnnvizError:
    """Return an error that names the line, as far as pandas does."""
    wide = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
    opened = re.search(r"EOF inside string starting at row (\d+)", str(error))
    if wide:
        line = layout.lines_before + int(wide[2])
        problem = f"Line {line} of {name} has {wide[3]} cells, but there are {wide[1]} columns"
    elif opened:
        problem = f"A quote that opens in line {layout.lines_before + int(opened[1]) + 1} of {name} is never closed"
    elif isinstance(error, Warning):
        problem = f"Lines of {name} have more cells than the {len(layout.names)} columns"
    else:
        problem = f"The file {name} cannot be read ({str(error).splitlines()[0].strip().rstrip('.')})"
    return BnnvizError(f"{problem}; check its separators and quotes.", "data")
