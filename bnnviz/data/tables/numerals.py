"""Read texts as numbers with a decimal point or comma, with or without marks between thousands.

A file has one decimal mark. ``1,952`` can be 1.952 or 1952: the other columns decide, or the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from bnnviz import optional
from bnnviz.data.tables.questions import TableQuestion
from bnnviz.messages import Remedy

if TYPE_CHECKING:
    import pandas as pd

Decimal = Literal[".", ","]
DECIMALS = get_args(Decimal)
_MINUS = "[−–‐‑‒﹣－]"  # text programs write dashes and hyphens


def to_numbers(texts: pd.Series, decimal: Decimal) -> pd.Series:
    """Return texts as floats, nan where they are no numbers; a percent sign in all of them is removed."""
    numbers = _plain(texts, decimal)
    rest = texts[numbers.isna() & texts.notna()].str.strip().str.replace(_MINUS, "-", regex=True)
    if rest.empty:
        return numbers
    if len(rest) == len(texts) and rest.str.endswith("%").all():
        rest = rest.str[:-1].str.rstrip()
    marks = rf"[{_other(decimal)}'’\s]"
    grouped = rest.str.fullmatch(rf"[+-]?[1-9]\d{{0,2}}({marks})\d{{3}}(?:\1\d{{3}})*(?:[{decimal}]\d*)?")
    numbers[rest.index] = _plain(rest.where(~grouped, rest.str.replace(marks, "", regex=True)), decimal)
    return numbers


def _plain(texts: pd.Series, decimal: Decimal) -> pd.Series:
    """Return texts without marks between thousands as floats."""
    plain = texts.mask(texts.str.contains(_other(decimal), regex=False).fillna(False).astype(bool))
    pandas = optional.require("pandas", "Reading a table needs")
    return pandas.to_numeric(plain.str.replace(decimal, ".", regex=False), errors="coerce").astype(float)


def _other(decimal: Decimal) -> Decimal:
    return "," if decimal == "." else "."


def are_numbers(texts: Sequence[str]) -> np.ndarray:
    """Return which texts are finite numbers with either decimal mark, a percent sign allowed."""
    found = optional.require("pandas", "Reading a table needs").Series(texts, dtype=object).str.removesuffix("%")
    return np.logical_or(*(np.isfinite(to_numbers(found, decimal)) for decimal in DECIMALS)).to_numpy()


def decimal_of(frame: pd.DataFrame) -> Decimal | None:
    """Return the decimal mark that columns of texts show; None if they show none, or both."""
    shown = set()
    for key in frame:
        kinds = frame[key].dropna().drop_duplicates()
        whole = [mark for mark in DECIMALS if to_numbers(kinds, mark).notna().all()]
        shown |= set(whole) if len(whole) == 1 else set()
    return shown.pop() if len(shown) == 1 else None


def read_numbers(key: str, texts: pd.Series, decimal: Decimal | None) -> pd.Series:
    """Return the texts of a column as floats, nan for texts that are no numbers; ask where both marks are possible."""
    first = to_numbers(texts, decimal or ".")
    if decimal is not None and first.notna().all():
        return first
    other = to_numbers(texts, _other(decimal or "."))
    if not first.notna().all():
        return other if other.notna().all() else first
    differing = first.ne(other) & other.notna().all()
    # Three digits after every point are decimals.
    if differing.any() and not texts.str.contains(".", regex=False).all():
        at = differing.idxmax()
        raise TableQuestion(
            f"The {texts[at]} in the column {key} can be {first[at]:g} or {other[at]:g}.",
            (
                Remedy(f"read it as {first[at]:g} (decimal points)", {"decimal": "."}),
                Remedy(f"read it as {other[at]:g} (decimal commas)", {"decimal": ","}),
            ),
            "write the numbers without marks between thousands",
        )
    return first
