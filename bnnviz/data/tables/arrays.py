"""Take numbers as other libraries hold them: arrays of NumPy, frames of pandas, sparse matrices of SciPy."""

from __future__ import annotations

import numbers as python_numbers
from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError

_HINT = "code words as numbers, fill gaps, and give every row as many"


def numbers(what: str, given: Any) -> np.ndarray:
    """Return numbers as an array for PyTorch: native byte order, a supported dtype, positive strides."""
    if hasattr(given, "toarray"):
        given = given.toarray()
    if hasattr(given, "to_numpy") and hasattr(given, "iloc"):
        return _of_pandas(what, given)
    if isinstance(given, np.ma.MaskedArray) and np.ma.getmaskarray(given).any():
        raise BnnvizError(f"The {what} hide values behind a mask; fill them in, or leave those rows out.", "data")
    try:
        found = np.asarray(given)
    except Exception as error:  # whatever the library raises that holds them
        raise BnnvizError(f"The {what} are not all numbers in one shape ({error}); {_HINT}.", "data") from error
    if found.dtype.kind == "O" and not found.ndim:
        raise BnnvizError(
            f"The {what} are a {type(given).__name__}, not rows of numbers; give an array, a frame or a tensor.", "data"
        )
    return _native(what, found)


def check_order(inputs: Any, observations: Any) -> None:
    """Raise where two of pandas have the same labels in different orders: which rows belong together is a guess."""
    one, other = (getattr(given, "index", None) for given in (inputs, observations))
    if not all(hasattr(index, "equals") and index.is_unique for index in (one, other)) or one.equals(other):
        return
    if len(one) == len(other) and one.isin(other).all():
        raise BnnvizError(
            "The inputs and the observations have the same labels in different orders; put one into the order of the"
            " other (y.loc[x.index]), or give them without labels (to_numpy()).",
            "data",
        )


def _native(what: str, found: np.ndarray) -> np.ndarray:
    """Return an array in a dtype of PyTorch's."""
    kind = found.dtype.kind
    if kind == "O":
        each = found.ravel().tolist()
        odd = [value for value in each if not isinstance(value, python_numbers.Number | np.bool_ | None)]
        if odd:
            raise BnnvizError(f"The {what} hold {odd[0]!r:.60}, which is not a number; {_HINT}.", "data")
        made = np.array([np.nan if value is None else value for value in each]).reshape(found.shape)
        # Fractions, decimals and whole numbers of many digits are numbers of Python's alone.
        found = made.astype(np.float64) if made.dtype.kind == "O" else made
    elif kind in "UST":
        raise BnnvizError(f"The {what} are texts such as {str(found.flat[0])!r:.60}; {_HINT}.", "data")
    elif kind in "mM":
        raise BnnvizError(f"The {what} are dates or durations; give numbers, such as days since the first one.", "data")
    elif kind not in "biufc":
        raise BnnvizError(f"The {what} have the dtype {found.dtype}; give one number a cell, a column a field.", "data")
    if found.dtype.kind == "c":
        raise BnnvizError(f"The {what} are complex numbers; give their parts as columns.", "data")
    if found.dtype == np.longdouble:
        found = found.astype(np.float64)
    if found.dtype.kind == "u" and found.dtype.itemsize > 1:
        fits = not found.size or found.max() <= np.iinfo(np.int64).max
        found = found.astype(np.int64 if fits else np.float64)
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
        no_words = kind in "cmM" or str(column.dtype).startswith(("period", "interval"))
        remedy = "" if no_words else "; pandas.get_dummies makes columns of 0 and 1 of them"
        raise BnnvizError(f"{error.sentence.rstrip('.')}{remedy}.", "data") from error
