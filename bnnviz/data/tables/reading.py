"""Read a CSV file or a frame into a frame of pandas, with numbers as the file writes them."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnnviz import optional
from bnnviz.data.tables import layout, source
from bnnviz.data.tables.columns import Context, listed
from bnnviz.data.tables.layout import MISSING, Layout
from bnnviz.data.tables.numerals import Decimal, Readings, decimal_of, without_percent
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import pandas as pd

_SAMPLE = 1000  # rows that show how a file writes its numbers
_CODE = r"\s*0\d"
_LARGEST_WHOLE = 2.0**53


class Content(NamedTuple):
    """The cells of a file or a frame."""

    frame: pd.DataFrame
    context: Context
    notes: list[str]
    sha256: str

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.context.name


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
        return _of_frame(given, name or "the frame", missing)
    content, name = source.content(given, name)
    found = layout.find(source.decode(content, name), name, target, fewest)
    _check_names(found.names, verbatim, name)
    given = {"na_values": [*MISSING, *(missing or ())]}
    frame, mark = _parse(found, name, given, decimal or otherwise, decimal is None, texts)
    if verbatim:
        frame[list(verbatim)] = _frame(found, keep_default_na=False, dtype=str)[list(verbatim)]
    if len(frame) == 0:
        raise BnnvizError(f"The file {name} has names but no rows; add rows.", "data")
    context = Context(name, found.line_of, mark, missing, found.unnamed)
    notes = [*found.notes, *(["Commas are read as decimal points."] if mark == "," else [])]
    return Content(frame, context, notes, hashlib.sha256(content).hexdigest())


def _of_frame(given: Any, name: str, missing: Sequence[str] | None) -> Content:
    pandas = optional.require("pandas", "Reading a table needs")
    frame = source.frame_of(given)
    if len(frame) == 0:
        raise BnnvizError("The frame has no rows; add rows.", "data")
    digest = hashlib.sha256(pandas.util.hash_pandas_object(frame.astype(str), index=False).to_numpy().tobytes())
    digest.update("\0".join(frame.columns).encode())
    context = Context(name, lambda row: None, ".", missing, from_text=False)
    frame = frame.reset_index(drop=True)
    if missing:
        frame = frame.mask(frame.isin(list(missing)))
    return Content(frame, context, source.of_index(given), digest.hexdigest())


def _check_names(names: Sequence[str], wanted: Sequence[str], name: str) -> None:
    for key in wanted:
        if key not in names:
            raise BnnvizError(f"The file {name} has no column {key} to keep; it has {listed(names)}.", "keep")


def _parse(
    found: Layout, name: str, given: dict[str, Any], otherwise: Decimal | None, looks: bool, texts: Sequence[str]
) -> tuple[pd.DataFrame, Decimal | None]:
    """Return the cells, numbers as numbers if pandas can read them, and the decimal mark of the file."""
    plain = found.separator == "," and '"' not in found.body
    try:
        mark = otherwise
        if looks:
            mark = "." if plain else _mark(_frame(found, **given, dtype=str, nrows=_SAMPLE))
        if mark is None or mark == found.separator:
            frame = _frame(found, **given, dtype=str)
            mark = mark or _mark(frame) or otherwise
        else:
            frame = _frame(found, **given, decimal=mark, dtype=dict.fromkeys(texts, str))
            for key, cells in _texts_of_numbers(frame, found, given).items():
                frame[key] = cells
    except optional.require("pandas", "Reading a CSV file needs").errors.EmptyDataError as error:
        raise BnnvizError(f"The file {name} has names but no rows; add rows.", "data") from error
    except (ValueError, OverflowError, Warning) as error:
        raise _unreadable(error, found, name) from error
    return frame, mark


def _mark(frame: pd.DataFrame) -> Decimal | None:
    """Return the decimal mark that texts show; None if they show none."""
    kinds = {key: frame[key].dropna().unique().astype(object) for key in frame}
    stripped = {key: np.array([" ".join(str(cell).split()) for cell in each], object) for key, each in kinds.items()}
    return decimal_of({key: Readings.of(without_percent(each)) for key, each in stripped.items()}, None)


def _texts_of_numbers(frame: pd.DataFrame, found: Layout, given: dict[str, Any]) -> dict[str, pd.Series]:
    """Return as texts the columns that floats do not hold: whole numbers of many digits, and codes such as 00017."""
    floats, whole = frame.select_dtypes("float"), list(frame.select_dtypes("integer"))
    long = list(floats.columns[(floats.abs() > _LARGEST_WHOLE).any()])
    if not whole and not long:
        return {}
    texts = _frame(found, **given, dtype=str)
    codes = [key for key in whole if texts[key].str.match(_CODE).any()]
    return {key: texts[key] for key in (*long, *codes)}


def _frame(found: Layout, **how: Any) -> pd.DataFrame:
    names = [*found.names, "".join(found.names) + " "] if found.ends_empty else found.names
    with warnings.catch_warnings():
        # pandas cuts a row with more cells than names and warns.
        warnings.simplefilter("error", optional.require("pandas", "Reading a CSV file needs").errors.ParserWarning)
        frame = optional.require("pandas", "Reading a CSV file needs").read_csv(
            io.StringIO(found.body),
            sep=r"\s+" if found.separator == " " else found.separator,
            names=names,
            header=None,
            index_col=False,
            skipinitialspace=True,
            low_memory=False,
            **how,
        )
    if found.ends_empty:
        last = frame.pop(names[-1])
        if last.notna().any():
            raise ValueError(f"lines have more cells than the {len(found.names)} columns")
    return frame


def _unreadable(error: Exception, found: Layout, name: str) -> BnnvizError:
    """Return an error that names the line, as far as pandas does."""
    wide = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
    opened = re.search(r"EOF inside string starting at row (\d+)", str(error))
    if wide:
        line = found.lines_before + int(wide[2])
        problem = f"Line {line} of {name} has {wide[3]} cells, but there are {wide[1]} columns"
    elif opened:
        problem = f"A quote that opens in line {found.lines_before + int(opened[1]) + 1} of {name} is never closed"
    elif isinstance(error, Warning):
        problem = f"Lines of {name} have more cells than the {len(found.names)} columns"
    else:
        problem = f"The file {name} cannot be read ({str(error).splitlines()[0].strip().rstrip('.')})"
    return BnnvizError(f"{problem}; check its separators and quotes.", "data")
