"""Read the cells of a CSV file, column by column, as numbers or as texts, and tell which of them hold something."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from reprlib import repr as short_repr
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from bnnviz import optional
from bnnviz.data.tables.layout import MISSING, Layout
from bnnviz.data.tables.numerals import Decimal, Readings, chosen, decimal_of, is_number
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import pandas as pd

Columns = dict[str, tuple[np.ndarray, np.ndarray]]
"""Of each column its cells, floats or texts, and which of them hold something."""

MOST_CATEGORIES = 20
FEWEST_ROWS = 5
_LARGEST = 1e30  # its square has to fit into single precision after scaling
_SENTINELS = [sign * number for number in (99, 999, 9999, 99999, 999999) for sign in (-1.0, 1.0)]
_FAR = 3.0  # ranges of all other numbers: so far off a sentinel lies
_SHOWN = 12  # names in a sentence


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
        raise wrong(f"The file {name} has names but no rows; add rows.") from error
    except pandas.errors.ParserWarning as error:
        raise wrong(f"Lines of {name} have more cells than the {len(names)} columns; check its separators.") from error
    except (ValueError, OverflowError) as error:
        found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if found:
            line = layout.lines_before + int(found[2])
            sentence = f"Line {line} of {name} has {found[3]} cells, but there are {found[1]} columns"
        else:
            sentence = f"The file {name} cannot be read ({str(error).splitlines()[0].strip().rstrip('.')})"
        raise wrong(f"{sentence}; check its separators and quotes.") from error
    if len(frame) == 0:
        raise wrong(f"The file {name} has names but no rows; add rows.")
    if ending and frame[ending].notna().any():
        raise wrong(f"Lines of {name} have more cells than the {len(names)} columns; check its separators.")
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


def read_columns(
    frame: pd.DataFrame, layout: Layout, target: str, decimal: Decimal | None, name: str, notes: list[str]
) -> tuple[Columns, Decimal | None]:
    """Return each column as floats, or as texts, and which of its cells hold something; and the decimal mark."""
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
    return columns, mark


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
        raise wrong(
            f"The column {key} of {name} holds numbers and texts such as {example}; make all of it numbers, leave"
            " those cells empty, or leave the column out."
        )
    return texts, present


def with_gaps(
    columns: Columns,
    missing: Sequence[str] | None,
    layout: Layout,
    name: str,
    notes: list[str],
) -> Columns:
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
            raise wrong(
                f"Does {suspect:g} in the column {key}, line {line} of {name}, stand for a missing value? Say"
                f" --missing {suspect:g}, or leave those cells empty; --missing none keeps it as a number."
            )
    if given:
        notes.append(f"Cells with {listed([f'{number:g}' for number in given])} count as missing.")
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
        raise wrong(f"The column {key} holds numbers beyond {_LARGEST:g}; give it in another unit.")
    return values, finite


def one_hot(key: str, values: np.ndarray, levels: Sequence[str]) -> dict[str, np.ndarray]:
    """Return a column of 0 and 1 for each value of a column of texts; of two values one says everything."""
    shown = levels[1:] if len(levels) == 2 else levels
    return {f"{key}={level}": (values == level).astype(float) for level in shown}
