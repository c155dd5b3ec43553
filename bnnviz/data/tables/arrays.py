"""Take numbers as other libraries hold them: arrays of NumPy, frames of pandas, sparse matrices of SciPy."""

from __future__ import annotations

import numbers as python_numbers
from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError

_HINT = "code words as numbers, fill gaps, and give every row as many"


def numbers(what: str, given: Any) -> np.ndarray:
    """Return numbers as an array that PyTorch takes: native byte order, a dtype of its own, strides above 0.

    Parameters
    ----------
    what : str
        What they are called in a sentence, such as ``inputs``.
    given : array_like, DataFrame, Series or sparse matrix

    Raises
    ------
    BnnvizError
        If they are texts or dates, of no common shape, or hidden by a mask.
    """
    if hasattr(given, "toarray"):
        given = given.toarray()
    if hasattr(given, "to_numpy") and hasattr(given, "iloc"):
        return _of_pandas(what, given)
    _refuse_hidden(what, given)
    try:
        found = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise BnnvizError(f"The {what} are not all numbers in one shape ({error}); {_HINT}.", "data") from error
    return _native(what, found)


def _refuse_hidden(what: str, given: Any) -> None:
    hidden = int(np.ma.getmaskarray(given).sum()) if isinstance(given, np.ma.MaskedArray) else 0
    if hidden:
        raise BnnvizError(
            f"The {what} hide {hidden:,} values behind a mask; fill them in, or leave those rows out.", "data"
        )


def _native(what: str, found: np.ndarray) -> np.ndarray:
    """Return an array in a dtype of PyTorch's."""
    kind = found.dtype.kind
    if kind == "O":
        each = found.ravel().tolist()
        if not all(isinstance(value, python_numbers.Number | np.bool_) or value is None for value in each):
            odd = next(value for value in each if not isinstance(value, python_numbers.Number))
            raise BnnvizError(f"The {what} hold {odd!r:.60}, which is no number; {_HINT}.", "data")
        found = np.array([np.nan if value is None else value for value in each]).reshape(found.shape)
    elif kind in "US":
        raise BnnvizError(f"The {what} are texts such as {str(found.flat[0])!r:.60}; {_HINT}.", "data")
    elif kind in "mM":
        raise BnnvizError(f"The {what} are dates; give numbers, such as days since the first one.", "data")
    elif kind not in "biufc":
        raise BnnvizError(f"The {what} have the dtype {found.dtype}; give one number a cell, a column a field.", "data")
    if found.dtype == np.longdouble:
        found = found.astype(np.float64)
    if found.dtype.kind == "u" and found.dtype.itemsize > 1:
        found = found.astype(np.int64)
    return np.ascontiguousarray(found, dtype=found.dtype.newbyteorder("=")).reshape(found.shape)


def _of_pandas(what: str, given: Any) -> np.ndarray:
    """Return a frame's or a series' numbers; a missing value is nan."""
    columns = [given] if given.ndim == 1 else [given.iloc[:, i] for i in range(given.shape[1])]
    made = [_of_series(what, column) for column in columns]
    if given.ndim == 1:
        return made[0]
    return np.column_stack(made) if made else np.empty(given.shape)


def _of_series(what: str, column: Any) -> np.ndarray:
    name = "" if column.name is None else f" in the column {column.name}"
    kind = getattr(column.dtype, "kind", "O")
    gaps = bool(column.isna().any())
    if kind in "biuf" and getattr(column.dtype, "name", "") != "category":
        return _native(what, column.to_numpy(dtype=np.float64 if gaps or kind == "f" else np.int64, na_value=np.nan))
    found = column.to_numpy()
    try:
        return _native(what + name, found)
    except BnnvizError as error:
        remedy = "; pandas.get_dummies makes columns of 0 and 1 of them" if kind not in "mM" else ""
        raise BnnvizError(f"{error.sentence.rstrip('.')}{remedy}.", "data") from error
