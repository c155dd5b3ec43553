"""Convert the cells of each column to numbers or texts, and detect the kind of the column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from reprlib import repr as short_repr
from typing import TYPE_CHECKING

import numpy as np

from bnnviz import optional
from bnnviz.data.tables.numerals import Decimal, Readings, chosen, is_number, without_percent
from bnnviz.data.tables.questions import Answer, TableQuestion, leave_out
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import pandas as pd

NUMBER, CATEGORY, DATE, TEXT, MIXED = "number", "category", "date", "text", "numbers and texts"
ROW_NUMBER, CONSTANT, EMPTY = "row number", "constant", "empty"
MOST_CATEGORIES = 100
FEWEST_ROWS = 5
_EXAMPLES, _LONGEST = 3, 24
_LARGEST = 1e30  # squares have to fit into single precision after scaling
_LARGEST_WHOLE = 2.0**53  # larger integers are not exact floats
_ROUNDING = 1e-13  # relative; rounding differences in a constant column
_CODE = re.compile(r"0\d+", re.ASCII)
_DIGITS = re.compile(r"[+\-−]?(\d{16,})(?:[.,]\d*)?")  # after marks between thousands are removed
_REPEATED = re.compile(r"(?:9{2,}|8{2,}|7{2,}|9{2,}[678])(\.9+)?")  # surveys use several: -999, -998, -888
_OTHER_SENTINELS = (-32768.0, 32767.0, -2147483648.0, 2147483647.0, 1e20, -1e20, 1e30, -1e30)
_FAR = 3.0  # a sentinel's smallest distance from the other numbers, in ranges of these
_INDEX = re.compile(r"unnamed: \d+|index|idx|id|row|rows?[ _.]?(id|name|number|index)s?|rownames", re.IGNORECASE)
_COUNT = re.compile(r"no|nr|#", re.IGNORECASE)  # names of counters and of amounts alike
# Names of keys: flat_id, Customer ID, PassengerId, id_flat; but not words such as paid or humid.
_KEY = re.compile(r"(?i:(.*[\W_])?(id|key|uuid|idx)|id[\W_].*)|.*[a-z](Id|ID|Key|Idx)")
_DATE_FORMATS = (
    *("ISO8601", "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%Y/%m/%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y"),
    *("%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S"),
    "%m/%d/%Y %H:%M:%S",
)
_LIKE_A_DATE = re.compile(r"\d.*[-/. ].*\d|[A-Za-z]{3,9} \d.*\d")
_FIRST_DAY, _LAST_DAY = 19000101, 21001231


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names joined by commas, by default at most a dozen."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


@dataclass
class Context:
    """The file of the columns and the options of its reader."""

    name: str
    line_of: Callable[[int], int | None]
    decimal: Decimal | None = None
    missing: Sequence[str] | None = None
    unnamed: Sequence[str] = ()
    from_text: bool = True

    def place(self, row: int) -> str:
        """Return the location of a row for a message."""
        line = self.line_of(row)
        return f"row {row + 1} of {self.name}" if line is None else f"line {line} of {self.name}"


@dataclass
class Column:
    """A column: ``values`` are floats (nan if missing), or texts (None if missing)."""

    name: str
    kind: str
    values: np.ndarray
    missing: int = 0
    examples: tuple[str, ...] = ()
    remark: str = ""
    error: BnnvizError | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def levels(self) -> int:
        """Number of different texts of a category."""
        return len(set(self.values[self.present].tolist())) if self.kind == CATEGORY else 0

    @property
    def present(self) -> np.ndarray:
        """Return which cells hold a value."""
        return present_in(self.values)

    @property
    def is_refused(self) -> bool:
        """Whether the column cannot be an input unless the file is changed."""
        if isinstance(self.error, TableQuestion):
            return any(answer.option == "leave_out" for answer in self.error.answers)
        return self.error is not None

    @property
    def is_passed_over(self) -> bool:
        """Whether the reader leaves it out by itself."""
        return self.kind in (ROW_NUMBER, CONSTANT, EMPTY)


def present_in(values: np.ndarray) -> np.ndarray:
    """Return which floats are not nan, or which texts are not None."""
    return np.array([value is not None for value in values], bool) if values.dtype == object else ~np.isnan(values)


def describe(cells: pd.Series, context: Context, *, is_target: bool = False, is_first: bool = False) -> Column:
    """Return the description of a column, with any problem in ``error``."""
    key = str(cells.name)
    column = Column(key, NUMBER, np.empty(0), int(cells.isna().sum()), _examples(cells))
    try:
        column.values, is_date = _values(cells, context, column.notes, is_target)
        _drop_sentinels(column, context)
        present = column.present
        column.missing = int((~present).sum())
        column.kind = _kind(column, present, is_date, context, is_target, is_first)
    except BnnvizError as error:
        column.error = error
        column.remark = error.question if isinstance(error, TableQuestion) else error.message.text
        if isinstance(error, _Mixed):
            column.kind = MIXED
        elif isinstance(error, _Text):
            column.kind = TEXT
    return column


class _Mixed(TableQuestion):
    """A column holds numbers and texts."""


class _Text(TableQuestion):
    """A column has texts that are not categories."""


# --- values


def _values(cells: pd.Series, context: Context, notes: list[str], is_target: bool) -> tuple[np.ndarray, bool]:
    """Return the floats or texts of a column, and whether they are days."""
    key, kind = str(cells.name), getattr(cells.dtype, "kind", "O")
    if kind == "M" or str(cells.dtype).startswith("datetime"):
        return days(cells), True
    if kind in "mc" or str(cells.dtype).startswith(("period", "interval")):
        raise TableQuestion(
            f"The column {key} of {context.name} has the dtype {cells.dtype}.",
            _way_out(key, is_target),
            "convert it to numbers",
        )
    if str(cells.dtype) == "category" or kind == "b":
        return texts_of(cells), False
    if kind in "iuf":
        whole = kind in "iu"
        values = _checked_numbers(cells.to_numpy(dtype=float, na_value=np.nan), key, whole, is_target)
        return _days_in_numbers(values) if whole else (values, False)
    if not context.from_text and not _holds_texts(cells):
        numbers = optional.require("pandas", "Reading a table needs").to_numeric(cells, errors="coerce")
        return _checked_numbers(numbers.to_numpy(dtype=float, na_value=np.nan), key, False, is_target), False
    texts = texts_of(cells)
    numbers = None if not context.from_text else _numbers_in_texts(key, texts, context, notes, is_target)
    if numbers is not None:
        return _days_in_numbers(numbers)
    found = days_in_texts(texts, key, context.name, is_target)
    return (texts, False) if found is None else (found, True)


def _holds_texts(cells: pd.Series) -> bool:
    return any(isinstance(value, str | bytes) for value in cells.dropna())


def texts_of(cells: pd.Series) -> np.ndarray:
    """Return cells as texts with single blanks between words, None where missing."""
    pandas = optional.require("pandas", "Reading a table needs")
    codes, kinds = pandas.factorize(cells)
    names = np.array([*(" ".join(_text(kind).split()) for kind in kinds), None], dtype=object)
    found = names[codes]
    found[found == ""] = None
    return found


def _text(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, float | np.floating) else str(value)


def _numbers_in_texts(
    key: str, texts: np.ndarray, context: Context, notes: list[str], is_target: bool
) -> np.ndarray | None:
    """Return a column of texts as floats; None if it holds no numbers, or codes such as 00017."""
    places, kinds = _factorized(texts)
    if not len(kinds) or any(map(_CODE.fullmatch, kinds)):
        return np.full(len(texts), np.nan) if not len(kinds) else None
    bare = without_percent(kinds)
    if bare is not kinds:
        notes.append(f"The percent signs of {key} are removed.")
    reading = Readings.of(bare)
    at = int((places == int(reading.differing.argmax())).argmax()) if reading.is_open else 0
    numbers = chosen(key, reading, context.decimal, context.place(at) if reading.is_open else "")
    strange = np.isnan(numbers)
    if strange.all():
        return None
    if strange.any():
        if is_target and len(kinds) <= MOST_CATEGORIES:
            return None
        example = kinds[strange][0]
        as_missing = Answer(f"Treat {short_repr(example)} as missing", "missing", (example,))
        raise _Mixed(
            f"The column {key} holds numbers and texts such as {short_repr(example)} in"
            f" {context.place(int((places == int(strange.argmax())).argmax()))}.",
            ((as_missing,) if len(example) <= _LONGEST else ()) + _way_out(key, is_target),
            "make all of it numbers",
        )
    values = np.append(numbers, np.nan)[places]
    return _checked_numbers(values, key, any(map(_is_long, bare)), is_target)


def _factorized(texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of each text among the different ones (-1 where missing), and these."""
    places, kinds = optional.require("pandas", "Reading a table needs").factorize(texts)
    return places, np.array(kinds, dtype=object)


def _is_long(text: str) -> bool:
    found = _DIGITS.fullmatch(re.sub(r"[\s'’]|[.,](?=\d{3}(?:[.,]|$))", "", text))
    return found is not None and float(found[1]) > _LARGEST_WHOLE


def _checked_numbers(values: np.ndarray, key: str, whole: bool, is_target: bool) -> np.ndarray:
    """Return floats with nan for infinite ones; refuse those that cannot be represented."""
    values = np.where(np.isfinite(values), values, np.nan)
    largest = np.nanmax(np.abs(values), initial=0.0)
    if largest > _LARGEST:
        raise BnnvizError(f"The column {key} holds numbers beyond {_LARGEST:g}; give it in another unit.", "data")
    if whole and largest > _LARGEST_WHOLE:
        raise TableQuestion(
            f"The column {key} holds whole numbers above {_LARGEST_WHOLE:.0f}, which floats cannot represent.",
            _way_out(key, is_target),
            "subtract the smallest one",
        )
    return values


def _days_in_numbers(values: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return numbers such as 20240131 as days, where all of them are dates."""
    held = np.unique(values[~np.isnan(values)])
    if len(held) < 2 or not ((held >= _FIRST_DAY) & (held <= _LAST_DAY) & (held == np.round(held))).all():
        return values, False
    pandas = optional.require("pandas", "Reading a table needs")
    parsed = pandas.to_datetime(pandas.Series(values).map("{:.0f}".format), format="%Y%m%d", errors="coerce")
    found = days(parsed)
    return (values, False) if np.isnan(found[~np.isnan(values)]).any() else (found, True)


def days(cells: pd.Series) -> np.ndarray:
    """Return times as days since 1970, nan where missing."""
    pandas = optional.require("pandas", "Reading a table needs")
    times = pandas.to_datetime(cells, utc=True)
    since = (times - pandas.Timestamp("1970-01-01", tz="UTC")) / pandas.Timedelta(days=1)
    return since.to_numpy(dtype=float, na_value=np.nan)


def days_in_texts(texts: np.ndarray, key: str, name: str, is_target: bool = False) -> np.ndarray | None:
    """Return dates as days since 1970, or None if the texts are not dates."""
    pandas = optional.require("pandas", "Reading a table needs")
    places, kinds = _factorized(texts)
    if not len(kinds) or not all(map(_LIKE_A_DATE.search, kinds)):
        return None
    found: list[np.ndarray] = []
    for each in _DATE_FORMATS:
        times = pandas.to_datetime(pandas.Series(kinds), format=each, errors="coerce", utc=True)
        if not times.isna().any() and not any(np.array_equal(days(times), other) for other in found):
            found.append(days(times))
    if len(found) > 1:
        raise TableQuestion(
            f"Day and month of the dates in the column {key} of {name}, such as {kinds[0]}, can be exchanged.",
            _way_out(key, is_target),
            "write them as 2024-01-31",
        )
    return np.append(found[0], np.nan)[places] if found else None


def _drop_sentinels(column: Column, context: Context) -> None:
    """Replace markers of missing values by nan; ask if a number looks like one."""
    if column.values.dtype == object:
        return
    given = [float(text) for text in context.missing or () if is_number(text)]
    column.values = np.where(np.isin(column.values, given), np.nan, column.values)
    held = column.values[~np.isnan(column.values)]
    suspect = _sentinel(held) if context.missing is None else None
    if suspect is not None:
        place = context.place(int(np.flatnonzero(column.values == suspect)[0]))
        number = f"{suspect:.10g}"
        raise TableQuestion(
            f"Does {number} in the column {column.name}, {place}, mark a missing value?",
            (
                Answer("Treat it as missing", "missing", (number,)),
                Answer("Treat it as a number", "missing", ()),
            ),
        )


def _sentinel(values: np.ndarray) -> float | None:
    """Return a common marker of missing values that is far from all other numbers, or None."""
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


# --- kinds


def _kind(column: Column, present: np.ndarray, is_date: bool, context: Context, is_target: bool, is_first: bool) -> str:
    held = column.values[present]
    if not len(held):
        column.remark = "It holds no value and is left out."
        return EMPTY
    if not is_target and (numbers := _numbers_rows(column, bool(present.all()), context, is_first)):
        return numbers
    if is_constant(held):
        column.remark = "It is the same in every row and is left out."
        return CONSTANT
    if held.dtype != object:
        if np.ptp(held) < 1 / _LARGEST:
            raise BnnvizError(
                f"The numbers of {column.name} differ by less than {1 / _LARGEST:g}; give them in another unit.", "data"
            )
        return DATE if is_date else NUMBER
    if not is_target:
        _check_categories(column, held, context)
    twice = Counter(level.casefold() for level in set(held.tolist()))
    same = sorted(level for level in set(held.tolist()) if twice[level.casefold()] > 1)
    if same:
        column.notes.append(f"Texts of {column.name} that differ only in capitals count as different: {listed(same)}.")
    return CATEGORY


def is_constant(held: np.ndarray) -> bool:
    """Return whether all values are the same up to rounding."""
    if held.dtype == object:
        return bool((held == held[0]).all())
    return bool(np.ptp(held) <= _ROUNDING * np.abs(held).max())


def _check_categories(column: Column, held: np.ndarray, context: Context) -> None:
    counts = Counter(held.tolist())
    if len(counts) > MOST_CATEGORIES:
        why = f"{len(counts):,} different texts, and at most {MOST_CATEGORIES} are one-hot encoded"
    elif 2 * sum(n == 1 for n in counts.values()) > len(held):
        why = "mostly unique texts, which are not categories"
    else:
        return
    raise _Text(
        f"The column {column.name} of {context.name} holds {why}.", (leave_out(column.name),), "replace it by numbers"
    )


def _numbers_rows(column: Column, complete: bool, context: Context, is_first: bool) -> str:
    """Return `ROW_NUMBER` for a column that numbers or names the rows, or an empty text."""
    key, values = column.name, column.values
    is_text = values.dtype == object
    pandas = optional.require("pandas", "Reading a table needs")
    if not complete or len(pandas.unique(values)) < len(values):
        if not is_text and _KEY.fullmatch(key):
            column.remark = (
                f"The column {key} looks like an identifier, but is used as a number; leave it out if it is one."
            )
            column.notes.append(column.remark)
        return ""
    whole = not is_text and bool((values == np.round(values)).all())
    counts = whole and np.ptp(values) == len(values) - 1
    unnamed = key in context.unnamed and (is_first or counts)
    called = (whole and (_INDEX.fullmatch(key) or _KEY.fullmatch(key))) or (counts and _COUNT.fullmatch(key))
    if (unnamed and (is_text or whole)) or called:
        column.remark = f"The column {key} numbers or names the rows and is left out."
        return ROW_NUMBER
    if counts and (np.abs(np.diff(values)) == 1).all():
        column.remark = (
            f"The column {key} counts the rows, {values[0]:.15g} to {values[-1]:.15g}; leave it out if it is an"
            " identifier."
        )
        column.notes.append(column.remark)
    return ""


def _way_out(key: str, is_target: bool) -> tuple[Answer, ...]:
    return () if is_target else (leave_out(key),)


def _examples(cells: pd.Series) -> tuple[str, ...]:
    values = cells.dropna().drop_duplicates().head(_EXAMPLES).tolist()
    shown = [f"{value:.10g}" if isinstance(value, float) else str(value).strip() for value in values]
    return tuple(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in shown)
