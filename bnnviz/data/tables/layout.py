"""Find the lines of a CSV file: its separator, its comments, the names of its columns, and where its rows begin."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from reprlib import repr as short_repr
from typing import NamedTuple

from bnnviz.data.tables.numerals import is_number
from bnnviz.errors import BnnvizError

csv.field_size_limit(1 << 30)  # the default refuses cells of 131,072 characters
MOST_COLUMNS = 2_000
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_SPACE = " "  # the separator of R's write.table; used only without any other separator
_LONGEST_LINE = 10_000_000
_MOST_HEAD = 10_000  # lines that may precede the names
_LOOKED_AT = 50  # rows that distinguish names from numbers
MISSING = ("?", "-", "--", ".", "–", "—", "\\N", "#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?")
"""Markers of missing values that pandas does not know."""

_WITHOUT_VALUE = {*map(str.lower, MISSING), "na", "n/a", "nan", "null", "none", "#n/a"}
_HINT = re.compile(r'"?sep=(?P<mark>[,;\t|])"?\s*', re.IGNORECASE)  # the line that Excel writes for itself


_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_BREAK = re.compile(r"\s*[\r\n]+\s*")  # table programs break long names within quotes


class Layout(NamedTuple):
    """How a file is laid out."""

    names: list[str]
    separator: str
    body: str
    lines_before: int
    unnamed: list[str]
    notes: list[str]
    ends_empty: bool = False

    def line_of(self, row: int) -> int:
        """Return the line of the file in which a row, counted from 0, ends."""
        reader = csv.reader(io.StringIO(self.body), delimiter=self.separator, skipinitialspace=True)
        rows = (reader.line_num for cells in reader if any(cell.strip() for cell in cells))
        return self.lines_before + next(itertools.islice(rows, row, None), 0)


def find(text: str, name: str, target: str | None = None, fewest: int = 2) -> Layout:
    """Return the layout of a file."""
    lines = [line[0] for line in itertools.islice(_LINE.finditer(text), _MOST_HEAD)]
    notes: list[str] = []
    at, separator, comment = _passed(lines, name)
    if at == len(lines):
        raise BnnvizError(f"The file {name} holds comments alone; add a line of names and rows.", "data")
    head, below = _joined(lines, at)
    first, separator = _cells(head, separator, name, fewest, lines[below : below + _LOOKED_AT])
    looked_at = [_split(line, separator, name) for line in lines[below : below + _LOOKED_AT] if line.strip()]
    _check_marks(first, looked_at, separator, name)
    if comment is not None and all(is_number(cell) for cell in first):
        names = _split(comment, separator, name)
        if len(names) == len(first) and not any(is_number(cell) for cell in names):
            return _named(names, separator, text, lines[:at], notes, name)
    if _is_header(first, looked_at, target):
        if any(is_number(cell) for cell in first):
            notes.append(f"The first line of {name} is read as names, though some are numbers.")
        more = bool(looked_at) and all(len(row) == len(first) + 1 for row in looked_at)
        ends_empty = more and not any(row[-1] for row in looked_at)
        # R's write.table gives the column of row names no name.
        names = ["", *first] if more and not ends_empty else first
        return _named(names, separator, text, lines[:below], notes, name)._replace(ends_empty=ends_empty)
    notes.append(f"The first line of {name} holds a number: it is a row, and the columns are c1 to c{len(first)}.")
    return _named([f"c{i + 1}" for i in range(len(first))], separator, text, lines[:at], notes, name)


def _lines_of(text: str) -> list[str]:
    """Return the lines of a text with their ends: other marks, such as a form feed, are part of a cell."""
    return _LINE.findall(text)


def _check_marks(first: list[str], rows: list[list[str]], separator: str, name: str) -> None:
    """Raise if rows and names have different separators, or cells are in single quotes."""
    if rows and len(first) > 1 and all(len(row) == 1 for row in rows):
        mark = _SEPARATORS.get(separator, "space")
        raise BnnvizError(
            f"The first line of {name} has {len(first)} cells between {mark}s and the lines below have one;"
            " separate all lines by the same mark.",
            "data",
        )
    if all(len(cell) > 1 and cell.startswith("'") and cell.endswith("'") for cell in first):
        raise BnnvizError(f"The cells of {name} are in single quotes; use double quotes, or no quotes.", "data")


def _joined(lines: list[str], at: int) -> tuple[str, int]:
    """Return the line at a place, with those after it that its quotes hold together, and where the next one begins."""
    line = lines[at]
    for below in range(at + 1, min(at + 1 + _LOOKED_AT, len(lines))):
        if line.count('"') % 2 == 0:
            return line, below
        line += lines[below]
    return lines[at], at + 1


def _named(names: list[str], separator: str, text: str, head: list[str], notes: list[str], name: str) -> Layout:
    unnamed = [f"c{i + 1}" for i, cell in enumerate(names) if not cell]
    names = [_BREAK.sub(" ", cell) or f"c{i + 1}" for i, cell in enumerate(names)]
    twice = [key for key, count in Counter(names).items() if count > 1]
    if twice:
        raise BnnvizError(f"Two columns of {name} are called {twice[0]}; give each its own name.", "data")
    body = text[sum(map(len, head)) :]
    if any(line.startswith("#") for line in head):
        # A file with comments at its head may have others further down.
        body = "".join("\n" if line.startswith("#") else line for line in _lines_of(body))
    return Layout(names, separator, body, len(head), unnamed, notes)


def _passed(lines: list[str], name: str) -> tuple[int, str | None, str | None]:
    """Return the number of the first line with cells, the separator that a line before names, and the last comment."""
    separator = comment = None
    for at, line in enumerate(lines):
        hint = _HINT.fullmatch(line)
        if hint is not None and separator is None:
            separator = hint["mark"]
        elif line.startswith("#") and not _continues(line, lines[at + 1 :]):
            comment = line.lstrip("# ")
        elif line.strip():
            return at, separator, comment
    return len(lines), separator, comment


def _continues(line: str, later: list[str]) -> bool:
    """Return whether a line starting with # has names: as many cells as the next line, which has numbers."""
    following = next((each for each in later if each.strip()), "")
    if not following or following.startswith("#"):
        return False
    mark = max(_SEPARATORS, key=following.count)
    cells = [cell.strip() for cell in following.split(mark)]
    is_row = len(cells) > 1 and line.count(mark) + 1 == len(cells) and any(is_number(cell) for cell in cells)
    # numpy.savetxt puts "# " before its names.
    return is_row and not line.startswith("# ")


def _cells(line: str, separator: str | None, name: str, fewest: int, later: Sequence[str]) -> tuple[list[str], str]:
    """Return the cells of a line, and the separator that is given or makes most of them."""
    if len(line) > _LONGEST_LINE:
        raise BnnvizError(
            f"The first line of {name} is longer than {_LONGEST_LINE:,} characters; is it a CSV file?", "data"
        )
    marks = _SEPARATORS if separator is None else {separator: ""}
    cells = {mark: _split(line, mark, name) for mark in marks}
    separator = max(cells, key=lambda mark: (_evidence(cells[mark], later, mark, name), len(cells[mark])))
    first = cells[separator]
    if len(first) == 1 and len(spaced := _split(line, _SPACE, name)) > 1:
        rows = [_split(each, _SPACE, name) for each in later if each.strip()]
        if rows and {len(row) - len(spaced) for row in rows} in ({0}, {1}):
            return spaced, _SPACE
    if len(first) == 1 and fewest == 1:
        return first, ";"  # in a single column a comma is not a separator
    if len(first) == 1 and any(mark in row for mark in marks for row in later):
        raise BnnvizError(
            f"The first line of {name}, {short_repr(line.strip())}, has one cell and later ones have more; remove"
            " the lines above the names.",
            "data",
        )
    if len(first) == 1:
        marks = ", ".join(_SEPARATORS.values())
        raise BnnvizError(
            f"The file {name} has one column only; it needs a target and an input, separated by one of {marks}.", "data"
        )
    if len(first) > MOST_COLUMNS:
        raise BnnvizError(f"The file {name} has {len(first):,} columns; give at most {MOST_COLUMNS:,}.", "data")
    return first, separator


def _evidence(first: list[str], later: Sequence[str], separator: str, name: str) -> float:
    """Return the share of numbers in rows as long as the first line, so that a decimal comma is not a separator."""
    if len(first) == 1:
        return 0.0
    rows = [_split(line, separator, name) for line in later if line.strip()]
    fitting = [cell for row in rows if len(row) == len(first) for cell in row]
    return sum(map(is_number, fitting)) / max(sum(map(len, rows)), 1)


def _split(line: str, separator: str, name: str) -> list[str]:
    try:
        cells = next(csv.reader(_lines_of(line.rstrip("\r\n")), delimiter=separator, skipinitialspace=True), [])
    except csv.Error as error:
        raise BnnvizError(f"The first line of {name} cannot be read ({error}); check its quotes.", "data") from error
    return [cell.strip() for cell in cells]


def _is_header(first: list[str], rows: list[list[str]], target: str | None) -> bool:
    """Return whether the first line has names: no number, or the target's name, or a text above a column of numbers."""
    if not any(is_number(cell) for cell in first) or target in first:
        return True
    columns = (
        [row[i] for row in rows if i < len(row) and row[i] and row[i].lower() not in _WITHOUT_VALUE]
        for i in range(len(first))
    )
    return any(
        bool(cell and column)
        and not is_number(cell)
        and cell.lower() not in _WITHOUT_VALUE
        and all(is_number(each) for each in column)
        for cell, column in zip(first, columns, strict=True)
    )
