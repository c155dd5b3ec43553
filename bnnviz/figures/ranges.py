"""Compute the ranges and the ticks of axes, and join lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

Ends = tuple[float, float] | None  # of a range, None where nothing is known


def joined(lines: Iterable[Any]) -> np.ndarray:
    """Return lines (points, 2) as one, with gaps between them."""
    gap = np.full((1, 2), np.nan)
    return np.concatenate([piece for line in lines for piece in (line, gap)] or [np.empty((0, 2))])


def gapped(x: Any, rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y of one line through curves (curves, points) over x, with gaps between them."""
    rows = np.atleast_2d(np.asarray(rows, dtype=float))
    if not rows.size:
        return np.empty(0), np.empty(0)
    gap = np.full((len(rows), 1), np.nan)
    return np.tile(np.append(np.asarray(x, dtype=float), np.nan), len(rows)), np.hstack([rows, gap]).ravel()


def extent(*arrays: Any) -> Ends:
    """Return the smallest and largest finite value, or None without finite values."""
    values = np.concatenate([np.empty(0), *(np.asarray(each, dtype=float).ravel() for each in arrays)])
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if values.size else None


def padded(ends: Ends, share: float = 0.06, least: float | None = None) -> Ends:
    """Return ends with room beyond both; equal ends get half of their size, so that ticks can be told apart."""
    if ends is None:
        return None
    low, high = ends
    if least is None:
        least = 0.0 if high > low else 0.5 * abs(low) or 0.5
    room = max(share * (high - low), least)
    return low - room, high + room


def log_ticks(low: float, high: float, most: int = 6) -> dict[float, str]:
    """Return ticks for an axis of logarithms to the base 10: powers of ten, with 2 and 5 where these are few."""
    low, high = min(low, high), max(low, high)
    multiples = (1, 2, 5) if high - low <= 2.0 else (1,)
    step = max(1, int(np.ceil((high - low) / most)))
    powers = range(int(np.floor(low)), int(np.ceil(high)) + 1)
    values = [(m, p) for p in powers if p % step == 0 for m in multiples]
    return {p + float(np.log10(m)): _short(m, p) for m, p in values if low - 1e-9 <= p + np.log10(m) <= high + 1e-9}


def _short(multiple: int, power: int) -> str:
    """Write a number short: 0.02, 500, 20k, 1M, 10⁻⁶."""
    if not -3 <= power <= 11:
        return f"{'' if multiple == 1 else f'{multiple}×'}10{str(power).translate(_SUPERSCRIPTS)}"
    unit, sign = next((unit, sign) for least, unit, sign in _UNITS if power >= least)
    return f"{multiple * 10.0 ** (power - unit):.10g}{sign}"


_UNITS = ((9, 9, "G"), (6, 6, "M"), (4, 3, "k"), (-3, 0, ""))
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
