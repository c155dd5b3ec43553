"""Read the cells of a CSV file, column by column, as numbers or as texts, and tell which of them hold something."""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from datetime import date
from reprlib import repr as short_repr
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnnviz import optional
from bnnviz.data.tables.layout import MISSING, Layout, lines_of
from bnnviz.data.tables.numerals import (
    Decimal,
    Readings,
    chosen,
    decimal_of,
    is_number,
    without_percent,
)
from bnnviz.data.tables.questions import Answer, TableQuestion, leave_out
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import pandas as pd

Columns = dict[str, tuple[np.ndarray, np.ndarray]]
"""Of each column its cells, floats or texts, and which of them hold something."""

MOST_CATEGORIES = 20
FEWEST_ROWS = 5
_LARGEST = 1e30  # its square has to fit into single precision after scaling
_REPEATED = re.compile(r"(?:9{2,}|8{2,}|7{2,}|9{2,}[678])(\.9+)?")  # surveys have several: -999, -998, -888
_OTHER_SENTINELS = (-32768.0, 32767.0, -2147483648.0, 2147483647.0, 1e20, -1e20, 1e30, -1e30)
_FAR = 3.0  # ranges of all other numbers: so far off a sentinel lies
_LARGEST_WHOLE = 2.0**53  # beyond it neighbours are the same number
_ROUNDING = 1e-13  # of a number: what is left of its digits where it is the result of sums
_SHOWN = 12  # names in a sentence
_CODE = re.compile(r"(?:^|(?<=[,;\t\n]))0\d", re.ASCII)
_CODES = "Numbers of {} begin with zeros, such as {}: leave the column out if they are codes."
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = re.compile(
    r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{4}|\d{1,2}([-/])\d{1,2}\3\d{2}"
    rf"|(?:\d{{1,2}}[-. ]+)?{_MONTH}[-., ]+(?:\d{{1,2}}[-., ]+)?\d{{2,4}})(?:[ T]\d{{1,2}}:\d{{2}}.*)?"
    r"|\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[ap]m)?"
    r"|\d{4}(?:[-/](?:0?[1-9]|1[0-2])|[- ]?(?:Q[1-4]|W\d{2}))|(?:0?[1-9]|1[0-2])[-/]\d{4}|Q[1-4][- /]?\d{4}"
    r"|P(?=[\dT])(?:[\d.]+[YMWD])*(?:T(?:[\d.]+[HMS])+)?",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"[+\-−]?(\d{16,})(?:[.,]\d*)?")  # after marks between thousands are taken away
_FIRST_DAY, _LAST_DAY = 19000101, 21001231


def wrong(sentence: str, field: str = "data") -> BnnvizError:
    """Return the error of a sentence on a file."""
    return BnnvizError(sentence, field)


def listed(names: Sequence[str]) -> str:
    """Return names for a sentence, the first dozen of many."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def parse(layout: Layout, name: str, missing: Sequence[str] | None) -> pd.DataFrame:
    """Return the cells, as texts where numbers may be written with commas."""
    pandas = _pandas()
    texts = layout.separator != "," or '"' in layout.body or _CODE.search(layout.body)
    names, ending = layout.names, _ending(layout)
    try:
        with warnings.catch_warnings():
            # A row with more cells than names is cut with a warning only.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            given = {"na_values": [*MISSING, *(missing or ())]}
            frame = _frame(layout, ending, **given, dtype=str if texts else None)
            # Whole numbers beside a gap have become floats.
            floats = frame.select_dtypes("float")
            long = list(floats.columns[(floats.abs() > _LARGEST_WHOLE).any()])
            if long:
                frame[long] = _frame(layout, ending, **given, dtype=str, usecols=long)[long]
    except pandas.errors.EmptyDataError as error:
        raise wrong(f"The file {name} has names but no rows; add rows.") from error
    except pandas.errors.ParserWarning as error:
        raise wrong(f"Lines of {name} have more cells than the {len(names)} columns; check its separators.") from error
    except (ValueError, OverflowError) as error:
        found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        opened = re.search(r"EOF inside string starting at row (\d+)", str(error))
        if found:
            line = layout.lines_before + int(found[2])
            sentence = f"Line {line} of {name} has {found[3]} cells, but there are {found[1]} columns"
        elif opened:
            sentence = (
                f"A quote that opens in line {layout.lines_before + int(opened[1]) + 1} of {name} is never closed"
            )
        else:
            sentence = f"The file {name} cannot be read ({str(error).splitlines()[0].strip().rstrip('.')})"
        raise wrong(f"{sentence}; check its separators and quotes.") from error
    if len(frame) == 0:
        raise wrong(f"The file {name} has names but no rows; add rows.")
    if ending and frame[ending].notna().any():
        raise wrong(f"Lines of {name} have more cells than the {len(names)} columns; check its separators.")
    return frame[names]


def _frame(layout: Layout, ending: str | None, **how: Any) -> pd.DataFrame:
    return _pandas().read_csv(
        io.StringIO(layout.body),
        sep=layout.separator,
        names=[*layout.names, ending] if ending else layout.names,
        header=None,
        index_col=False,
        skipinitialspace=True,
        low_memory=False,
        **how,
    )


def as_they_stand(layout: Layout, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the cells of columns as texts, letter by letter."""
    raw = _frame(layout, _ending(layout), keep_default_na=False, dtype=str, usecols=list(names))
    return {name: raw[name].tolist() for name in names}


def words_for_nothing(columns: Columns, layout: Layout) -> list[str]:
    """Say which words of columns of texts count as no value: they may be values, such as NA for Namibia."""
    asked = [key for key, (values, present) in columns.items() if values.dtype == object and not present.all()]
    if not asked:
        return []
    raw = _frame(layout, _ending(layout), keep_default_na=False, dtype=str, usecols=asked)
    notes = []
    for key in asked:
        cells = raw[key].to_numpy(dtype=object)[~columns[key][1]].astype(str)
        counts = Counter(cell.strip() for cell in cells if cell.strip())
        said = listed([f"{word} ({count:,} times)" for word, count in sorted(counts.items())])
        if said:
            notes.append(f"In the column {key} these count as no value: {said}; give another word to what is one.")
    return notes


def _ending(layout: Layout) -> str | None:
    """Return a name for the empty cell at the end of every row, where rows end with a separator; None where not."""
    lines = lines_of(layout.body)
    rows = (line.rstrip() for line in lines)
    ends = [row.endswith(layout.separator.strip() or layout.separator) for row in rows if row]
    first = next((line for line in lines if line.strip()), "")
    more = first.count(layout.separator) == len(layout.names)
    return "".join(layout.names) if ends and all(ends) and more else None


def _pandas() -> ModuleType:
    return optional.require("pandas", "Reading a CSV file needs")


class TextColumns(NamedTuple):
    """The columns of a file that are read as texts first."""

    cells: dict[str, tuple[np.ndarray, np.ndarray]]
    readings: dict[str, Readings]


def text_columns(frame: pd.DataFrame, layout: Layout, notes: list[str]) -> TextColumns:
    """Return the columns of a file that are no numbers yet, in both writings."""
    texts = {key: frame[key] for key in layout.names if frame[key].dtype.kind not in "iuf"}
    cells = {key: _bare(key, series.notna().to_numpy(), _stripped(series), notes) for key, series in texts.items()}
    return TextColumns(cells, {key: Readings.of(found[present]) for key, (present, found) in cells.items()})


def read_column(
    key: str,
    frame: pd.DataFrame,
    texts: TextColumns,
    mark: Decimal | None,
    layout: Layout,
    is_target: bool,
    name: str,
    notes: list[str],
) -> tuple[np.ndarray, np.ndarray]:
    """Return a column as floats, or as texts, and which of its cells hold something."""
    if key in texts.cells:
        return _column(key, *texts.cells[key], texts.readings[key], mark, layout, is_target, name, notes)
    return _numbers(frame[key].to_numpy(dtype=float), key, frame[key].dtype.kind in "iu")


class FileColumns(NamedTuple):
    """The columns of a file (`read_column`), and its decimal mark."""

    columns: Columns
    decimal: Decimal | None


def read_columns(
    frame: pd.DataFrame,
    layout: Layout,
    target: str,
    decimal: Decimal | None,
    name: str,
    notes: list[str],
    otherwise: Decimal | None = None,
) -> FileColumns:
    """Read each column with the decimal mark that is given, or that the file shows; ``otherwise`` if it shows none."""
    texts = text_columns(frame, layout, notes)
    mark = decimal_of(texts.readings, decimal) or otherwise
    read = {key: read_column(key, frame, texts, mark, layout, key == target, name, notes) for key in layout.names}
    return FileColumns(read, mark)


def _stripped(cells: pd.Series) -> np.ndarray:
    """Return texts without blanks at their ends, and with one between words, which is what can be seen of them."""
    pairs = zip(cells, cells.notna(), strict=True)
    return np.array([" ".join(str(cell).split()) if there else "" for cell, there in pairs], dtype=object)


def _bare(key: str, present: np.ndarray, texts: np.ndarray, notes: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return which cells hold something, and their texts without a percent sign that all have."""
    bare = without_percent(texts[present])
    if bare is not texts[present] and len(bare) and bare[0] != texts[present][0]:
        notes.append(f"The percent signs of {key} are removed.")
        texts[present] = bare
    return present, texts


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
        notes += [_CODES.format(key, code)] if (code := next(filter(_CODE.match, found), "")) else []
        values = np.full(len(texts), np.nan)
        values[present] = numbers
        return _numbers(values, key, any(map(_is_long, found)))
    is_mixed = not strange.all()
    if is_mixed and not (is_target and len(set(found)) <= MOST_CATEGORIES):
        example = found[strange][0]
        line = layout.line_of(int(np.flatnonzero(present)[strange.argmax()]))
        raise TableQuestion(
            f"The column {key} of {name} holds numbers and texts such as {short_repr(example)} in line {line}.",
            (Answer(f"Treat {short_repr(example)} as missing", "missing", (str(example),)), *_way_out(key, is_target)),
            "make all of it numbers",
        )
    return texts, present


def _is_long(text: str) -> bool:
    found = _DIGITS.fullmatch(re.sub(r"[\s'’]|[.,](?=\d{3}(?:[.,]|$))", "", text))
    return found is not None and float(found[1]) > _LARGEST_WHOLE


def with_gaps(
    columns: Columns,
    missing: Sequence[str] | None,
    layout: Layout,
    name: str,
    notes: list[str],
) -> Columns:
    """Take the numbers that stand for no value out; ask where a number looks like one."""
    given = [float(text) for text in missing or () if is_number(text)]
    for key, (values, present) in columns.items():
        if values.dtype == object:
            continue
        present &= ~np.isin(values, given)
        suspect = _sentinel(values[present]) if missing is None else None
        if suspect is not None:
            line = layout.line_of(int(np.flatnonzero(values == suspect)[0]))
            number = f"{suspect:.10g}"
            raise TableQuestion(
                f"Does {number} in the column {key}, line {line} of {name}, stand for a missing value?",
                (
                    Answer("Treat it as missing", "missing", (number,)),
                    Answer("Treat it as a number", "missing", ()),
                ),
            )
    if given:
        notes.append(f"Cells with {listed([f'{number:g}' for number in given])} count as missing.")
    return columns


def _sentinel(values: np.ndarray) -> float | None:
    """Return a number that is used for a missing value and lies far off all others; None where there is none."""
    for number in (values.min(), values.max()) if len(values) else ():
        if not _is_sentinel(float(number)):
            continue
        kinds = np.unique(values)
        others = values[~np.isin(values, [kind for kind in (*kinds[:4], *kinds[-4:]) if _is_sentinel(float(kind))])]
        if len(others) < FEWEST_ROWS:
            continue
        low, high = others.min(), others.max()
        if max(low - number, number - high) > _FAR * max(high - low, 1e-12):
            return float(number)
    return None


def _is_sentinel(number: float) -> bool:
    return number in _OTHER_SENTINELS or _REPEATED.fullmatch(f"{abs(number):.10g}") is not None


def _numbers(values: np.ndarray, key: str, whole: bool) -> tuple[np.ndarray, np.ndarray]:
    finite = np.isfinite(values)
    largest = np.abs(values[finite]).max() if finite.any() else 0.0
    if largest > _LARGEST:
        raise wrong(f"The column {key} holds numbers beyond {_LARGEST:g}; give it in another unit.")
    if whole and largest > _LARGEST_WHOLE:
        raise TableQuestion(
            f"The column {key} holds whole numbers of more digits than are kept ({_LARGEST_WHOLE:.0f} and above).",
            (leave_out(key),),
            "give differences from the smallest",
        )
    return values, finite


def check_texts(columns: dict[str, np.ndarray], name: str) -> None:
    """Raise where texts are no categories: amounts, or most of them in one row alone."""
    check_amounts(columns, name)
    texts = {key: Counter(values.tolist()) for key, values in columns.items() if values.dtype == object}
    crowded = [key for key, counts in texts.items() if len(counts) > MOST_CATEGORIES]
    if crowded:
        raise TableQuestion(
            f"Columns of {name} hold texts with more than {MOST_CATEGORIES} different values ({listed(crowded)}).",
            (leave_out(*crowded),),
            "replace them by numbers",
        )
    single = [key for key, counts in texts.items() if 2 * sum(n == 1 for n in counts.values()) > counts.total()]
    if single:
        raise TableQuestion(
            f"Columns of {name} hold texts of which most stand in one row alone ({listed(single)}), so they are no"
            " categories.",
            (leave_out(*single),),
            "replace them by numbers",
        )


def check_amounts(columns: dict[str, np.ndarray], name: str, is_target: bool = False) -> None:
    """Raise where texts are amounts that are not read as such."""
    for key, values in columns.items():
        if values.dtype != object and are_dates(values):
            raise TableQuestion(
                f"The column {key} of {name} holds dates such as {values[0]:.0f}, which are no amounts.",
                _way_out(key, is_target),
                "give days since the first one",
            )
    texts = {key: set(values.tolist()) for key, values in columns.items() if values.dtype == object}
    for key, kinds in texts.items():
        if are_dates(columns[key]):
            raise TableQuestion(
                f"The column {key} of {name} holds dates or times such as {short_repr(min(kinds))}.",
                _way_out(key, is_target),
                "give numbers, such as days since the first one",
            )


def _way_out(key: str, is_target: bool) -> tuple[Answer, ...]:
    return () if is_target else (leave_out(key),)


def are_dates(values: np.ndarray) -> bool:
    """Tell whether all values of a column are dates or times."""
    return all(map(_DATE.fullmatch, set(values.tolist()))) if values.dtype == object else _are_days(values)


def _are_days(values: np.ndarray) -> bool:
    """Tell whether numbers are all days such as 20240131, of more than one month."""
    if not ((values >= _FIRST_DAY) & (values <= _LAST_DAY) & (values == np.round(values))).all():
        return False
    texts = {f"{value:.0f}" for value in values}
    try:
        for text in texts:
            date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        return False
    return len(texts) > 1


def of_case(key: str, levels: Sequence[str]) -> list[str]:
    """Say which texts of a column differ in nothing but capitals."""
    twice = Counter(level.casefold() for level in levels)
    same = [level for level in levels if twice[level.casefold()] > 1]
    return [f"Texts of {key} that differ in capitals alone count as different: {listed(same)}."] if same else []


def is_constant(values: np.ndarray) -> bool:
    """Tell whether all values of a column are the same, or differ as rounding makes numbers differ."""
    if values.dtype == object:
        return bool((values == values[0]).all())
    return bool(np.ptp(values) <= _ROUNDING * np.abs(values).max())


def check_size(key: str, values: np.ndarray) -> None:
    """Raise where numbers differ by so little that the squares of their distances are 0."""
    if values.dtype != object and 0 < np.ptp(values) < 1 / _LARGEST:
        raise wrong(f"The numbers of {key} differ by less than {1 / _LARGEST:g}; give them in another unit.")


def one_hot(key: str, values: np.ndarray, levels: Sequence[str]) -> dict[str, np.ndarray]:
    """Return a column of 0 and 1 for each value of a column of texts; of two values one says everything."""
    shown = levels[1:] if len(levels) == 2 else levels
    return {f"{key}={' '.join(level.split())}": (values == level).astype(float) for level in shown}
