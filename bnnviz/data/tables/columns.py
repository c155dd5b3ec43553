"""Convert the cells of each column to numbers or texts, and detect the kind of the column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bnnviz import optional
from bnnviz.data.tables.numerals import Decimal, read_numbers
from bnnviz.data.tables.questions import TableQuestion, leave_out, treat_as_missing
from bnnviz.errors import BnnvizError
from bnnviz.messages import Remedy

if TYPE_CHECKING:
    import pandas as pd

NUMBER, CATEGORY, DATE, TEXT = "number", "category", "date", "text"
ROW_NUMBER, CONSTANT, EMPTY = "row number", "constant", "empty"
MOST_CATEGORIES = 100
FEWEST_ROWS = 5
_EXAMPLES, _LONGEST = 3, 24
LARGEST = 1e30  # squares have to fit into single precision after scaling
_LARGEST_WHOLE = 2.0**53  # larger integers are not exact floats
_ROUNDING = 1e-13  # relative; rounding differences in a constant column
_CODE = r"0\d+"
_LONG = r"[+\-−]?[\d\s.,'’]*\d{16}[\d.,]*"
# Names of keys: index, flat_id, Customer ID, PassengerId, id_flat; but not words such as paid or humid.
_KEY = re.compile(
    r"(?i:unnamed: \d+|row[ _.]?(number|name)s?|(.*[\W_])?(id|key|uuid|idx|index)|id[\W_].*)|.*[a-z](Id|ID)"
)
_DATE_FORMATS = ("%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%b-%y")  # which pandas does not guess
_LIKE_A_DATE = r"\d.*[-/. ].*\d|[A-Za-z]{3,9} \d.*\d"


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names joined by commas, by default at most a dozen."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


class Content(NamedTuple):
    """The cells of a file or a frame."""

    frame: pd.DataFrame
    name: str
    notes: list[str]
    sha256: str
    decimal: Decimal | None
    unnamed: Sequence[str] = ()
    from_text: bool = True


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
            return any("leave_out" in answer.options for answer in self.error.answers)
        return self.error is not None

    @property
    def is_passed_over(self) -> bool:
        """Whether the reader leaves it out by itself."""
        return self.kind in (ROW_NUMBER, CONSTANT, EMPTY)


def present_in(values: np.ndarray) -> np.ndarray:
    """Return which floats are not nan, or which texts are not None."""
    return optional.require("pandas", "Reading a table needs").notna(values)


def describe(key: str, found: Content, *, is_target: bool = False) -> Column:
    """Return the description of a column, with any problem in ``error``."""
    cells = found.frame[key]
    column = Column(key, NUMBER, np.empty(0), int(cells.isna().sum()), _examples(cells))
    try:
        column.values, is_date = _values(cells, found, is_target)
        column.missing = int((~column.present).sum())
        column.kind = _kind(column, is_date, found, is_target)
    except BnnvizError as error:
        column.error = error
        column.remark = error.question if isinstance(error, TableQuestion) else error.message.text
        if column.is_refused and cells.dtype.kind not in "biuf":
            column.kind = TEXT
    return column


# --- values


def _values(cells: pd.Series, found: Content, is_target: bool) -> tuple[np.ndarray, bool]:
    """Return the floats or texts of a column, and whether they are days."""
    pandas = optional.require("pandas", "Reading a table needs")
    key, kind = str(cells.name), getattr(cells.dtype, "kind", "O")
    way_out = () if is_target else (leave_out(key),)
    if kind == "M":
        return days(cells), True
    if kind in "mc" or str(cells.dtype).startswith(("period", "interval")):
        raise TableQuestion(
            f"The column {key} of {found.name} has the dtype {cells.dtype}.", way_out, "convert it to numbers"
        )
    if str(cells.dtype) == "category" or kind == "b":
        return texts_of(cells), False
    if kind in "iuf":
        return _checked(cells.to_numpy(dtype=float, na_value=np.nan), key, kind in "iu", way_out), False
    if not found.from_text and not any(isinstance(value, str | bytes) for value in cells.dropna()):
        return _checked(pandas.to_numeric(cells, errors="coerce").to_numpy(dtype=float), key, False, way_out), False
    texts = texts_of(cells)
    places, kinds = pandas.factorize(texts)
    kinds = pandas.Series(kinds, dtype=object)
    if not len(kinds):
        return np.full(len(texts), np.nan), False
    if found.from_text and not kinds.str.fullmatch(_CODE).any():
        numbers = _numbers(key, kinds, found, is_target)
        if numbers is not None:
            is_long = kinds.str.fullmatch(_LONG).any()
            return _checked(np.append(numbers, np.nan)[places], key, is_long, way_out), False
    dates = days_in(kinds, key, way_out)
    return (texts, False) if dates is None else (np.append(dates, np.nan)[places], True)


def _numbers(key: str, kinds: pd.Series, found: Content, is_target: bool) -> np.ndarray | None:
    """Return the texts of a column as floats; None if they are no numbers."""
    numbers = read_numbers(key, kinds, found.decimal)
    strange = kinds[numbers.isna()]
    if len(strange) == len(kinds) or (is_target and len(strange) and len(kinds) <= MOST_CATEGORIES):
        return None
    if len(strange):
        example = strange.iloc[0]
        as_missing = (treat_as_missing(example),) if len(example) <= _LONGEST else ()
        raise TableQuestion(
            f"The column {key} of {found.name} holds numbers and texts such as {short_repr(example)}.",
            as_missing + (() if is_target else (leave_out(key),)),
            "make all of it numbers",
        )
    return numbers.to_numpy()


def texts_of(cells: pd.Series) -> np.ndarray:
    """Return cells as texts with single blanks between words, None where missing."""
    codes, kinds = optional.require("pandas", "Reading a table needs").factorize(cells)
    names = np.array([*(" ".join(_text(kind).split()) for kind in kinds), None], dtype=object)
    found = names[codes]
    found[found == ""] = None
    return found


def _text(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, float | np.floating) else str(value)


def _checked(values: np.ndarray, key: str, whole: bool, way_out: tuple[Remedy, ...]) -> np.ndarray:
    """Return floats with nan for infinite ones; refuse those that cannot be represented."""
    values = np.where(np.isfinite(values), values, np.nan)
    largest = np.nanmax(np.abs(values), initial=0.0)
    if largest > LARGEST:
        raise BnnvizError(f"The column {key} holds numbers beyond {LARGEST:g}; give it in another unit.", "data")
    if whole and largest > _LARGEST_WHOLE:
        raise TableQuestion(
            f"The column {key} holds whole numbers above {_LARGEST_WHOLE:.0f}, which floats cannot represent.",
            way_out,
            "subtract the smallest one",
        )
    return values


def days(cells: pd.Series) -> np.ndarray:
    """Return times as days since 1970, nan where missing."""
    pandas = optional.require("pandas", "Reading a table needs")
    since = pandas.to_datetime(cells, utc=True) - pandas.Timestamp("1970-01-01", tz="UTC")
    return (since / pandas.Timedelta(days=1)).to_numpy(dtype=float, na_value=np.nan)


def days_in(texts: pd.Series, key: str, way_out: tuple[Remedy, ...] = ()) -> np.ndarray | None:
    """Return dates as days since 1970, or None if the texts are not dates."""
    pandas = optional.require("pandas", "Reading a table needs")
    from pandas.tseries.api import guess_datetime_format

    if not texts.str.contains(_LIKE_A_DATE).all():
        return None
    found: list[np.ndarray] = []
    is_ordered = {True: r"^\d+\.\d+\.", False: r"^\d{4}"}  # between dots the day comes first, the month after a year
    orders = [first for first, start in is_ordered.items() if texts.str.contains(start).all()] or [True, False]
    guessed = [guess_datetime_format(texts.iloc[0], dayfirst=order) for order in orders]
    for each in dict.fromkeys(form for form in (*guessed, *_DATE_FORMATS) if form):
        times = pandas.to_datetime(texts, format=each, errors="coerce", utc=True)
        if not times.isna().any() and not any(np.array_equal(days(times), other) for other in found):
            found.append(days(times))
    if len(found) > 1:
        raise TableQuestion(
            f"Day and month of the dates in the column {key}, such as {texts.iloc[0]}, can be exchanged.",
            way_out,
            "write them as 2024-01-31",
        )
    return found[0] if found else None


# --- kinds


def _kind(column: Column, is_date: bool, found: Content, is_target: bool) -> str:
    present = column.present
    held = column.values[present]
    if not len(held):
        column.remark = "It holds no value and is left out."
        return EMPTY
    if not is_target and present.all() and _names_rows(column, found):
        column.remark = f"The column {column.name} numbers or names the rows and is left out."
        return ROW_NUMBER
    if held.dtype == object:
        if (held == held[0]).all():
            column.remark = "It is the same in every row and is left out."
            return CONSTANT
        if not is_target:
            _check_categories(column.name, held, found)
        return CATEGORY
    spread = np.ptp(held)
    if spread <= _ROUNDING * np.abs(held).max():
        column.remark = "It is the same in every row and is left out."
        return CONSTANT
    if spread < 1 / LARGEST:
        raise BnnvizError(
            f"The numbers of {column.name} differ by less than {1 / LARGEST:g}; give them in another unit.", "data"
        )
    return DATE if is_date else NUMBER


def _names_rows(column: Column, found: Content) -> bool:
    """Return whether a column is an index: without a name or with that of a key, and different in every row."""
    values = column.values
    if column.name not in found.unnamed and not _KEY.fullmatch(column.name):
        return False
    is_whole = values.dtype == object or bool((values == np.round(values)).all())
    return is_whole and len(set(values.tolist())) == len(values)


def _check_categories(key: str, held: np.ndarray, found: Content) -> None:
    counts = optional.require("pandas", "Reading a table needs").Series(held).value_counts().to_numpy()
    if len(counts) > MOST_CATEGORIES:
        why = f"{len(counts):,} different texts, and at most {MOST_CATEGORIES} are one-hot encoded"
    elif 2 * (counts == 1).sum() > len(held):
        why = "mostly unique texts, which are not categories"
    else:
        return
    raise TableQuestion(f"The column {key} of {found.name} holds {why}.", (leave_out(key),))


def _examples(cells: pd.Series) -> tuple[str, ...]:
    values = cells.dropna().head(1000).drop_duplicates().head(_EXAMPLES).tolist()
    shown = [f"{value:.10g}" if isinstance(value, float) else str(value).strip() for value in values]
    return tuple(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in shown)
