"""Read numbers with a decimal point or comma, with or without marks between thousands.

A file has one decimal mark. ``1,952`` can be 1.952 or 1952: the other columns decide, or the user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bnnviz.data.tables.questions import Answer, TableQuestion

Decimal = Literal[".", ","]

_SPACES = " \u00a0\u2007\u2009\u202f"
_MINUS = "−–‐‑‒﹣－-"  # text programs write dashes and hyphens; the last one makes no range in a pattern


def _pattern(decimal: Decimal) -> re.Pattern[str]:
    """Return the pattern of numbers with a decimal mark and a different thousands separator."""
    other = "," if decimal == "." else "."
    grouped = rf"[1-9]\d{{0,2}}(?P<mark>[{re.escape(other)}'’{_SPACES}])\d{{3}}(?:(?P=mark)\d{{3}})*"
    return re.compile(
        rf"(?P<sign>[+{_MINUS}]?)(?P<whole>{grouped}|\d*)(?:[{decimal}](?P<part>\d*))?(?P<power>[eE][+-]?\d+)?"
    )


_PATTERNS: dict[Decimal, re.Pattern[str]] = {".": _pattern("."), ",": _pattern(",")}
_WORD = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)


def is_number(text: str) -> bool:
    """Return whether a text is a finite number with either decimal mark."""
    return any(np.isfinite(_value(text, decimal)) for decimal in _PATTERNS)


def _value(text: str, decimal: Decimal) -> float:
    """Return the number in a text, or nan."""
    found = _PATTERNS[decimal].fullmatch(text)
    if found is None or not (found["whole"] or found["part"]):
        return float("nan")
    whole = re.sub(r"\D", "", found["whole"])
    sign = "-" if found["sign"] and found["sign"] in _MINUS else ""
    return float(f"{sign}{whole or 0}.{found['part'] or 0}{found['power'] or ''}")


def without_percent(texts: np.ndarray) -> np.ndarray:
    """Return texts without their percent signs, if all are numbers with one; otherwise the texts."""
    bare = np.array([text[:-1].rstrip() if text.endswith("%") else "" for text in texts], dtype=object)
    return bare if len(bare) and all(map(is_number, bare)) else texts


@dataclass(frozen=True)
class Readings:
    """The texts of a column as numbers, with each decimal mark."""

    values: dict[Decimal, np.ndarray]
    texts: np.ndarray

    @classmethod
    def of(cls, texts: np.ndarray) -> Readings:
        """Read texts with each decimal mark; inf and nan are neither finite numbers nor texts."""
        kinds, places = np.unique(texts.astype(str), return_inverse=True)
        words = np.array([_WORD.fullmatch(kind) is not None for kind in kinds], dtype=bool)
        values = {
            decimal: np.where(words, np.inf, [_value(kind, decimal) for kind in kinds])[places] for decimal in _PATTERNS
        }
        return cls(values, texts)

    @property
    def whole(self) -> list[Decimal]:
        """The decimal marks with which every text is a number."""
        return [decimal for decimal, values in self.values.items() if not np.isnan(values).any()]

    @property
    def differing(self) -> np.ndarray:
        """Where both writings give a number, and not the same one."""
        point, comma = self.values["."], self.values[","]
        return np.isfinite(point) & np.isfinite(comma) & (point != comma)

    @property
    def is_open(self) -> bool:
        """Whether both marks are possible; if all numbers have a point and three digits, they are decimals."""
        if len(self.whole) < 2 or not self.differing.any():
            return False
        pointed = np.array(["." in text for text in self.texts.astype(str)])
        return not pointed.all()


def decimal_of(columns: Mapping[str, Readings], given: Decimal | None) -> Decimal | None:
    """Return the decimal mark that a file's columns show, or that is given; None where they show none, or both."""
    if given is not None:
        return given
    shown = {column.whole[0] for column in columns.values() if len(column.whole) == 1}
    return shown.pop() if len(shown) == 1 else None


def chosen(key: str, column: Readings, decimal: Decimal | None, place: str) -> np.ndarray:
    """Return a column's numbers, nan for other texts."""
    if column.is_open and decimal is None:
        at = int(column.differing.argmax())
        point, comma = (f"{column.values[mark][at]:g}" for mark in _PATTERNS)
        raise TableQuestion(
            f"The {column.texts[at]} in the column {key}, {place}, can be {point} or {comma}.",
            (
                Answer(f"Read it as {point} (decimal points)", "decimal", (".",)),
                Answer(f"Read it as {comma} (decimal commas)", "decimal", (",",)),
            ),
            "write the numbers without marks between thousands",
        )
    best = decimal if decimal in column.whole or not column.whole else column.whole[0]
    return column.values[best or "."]
