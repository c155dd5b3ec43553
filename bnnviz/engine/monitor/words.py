"""Format numbers for tables."""

from __future__ import annotations

import math
from collections.abc import Iterable


def number(value: float, form: str) -> str:
    """Format a number, or return a dash for an unknown one."""
    return format(value, form) if math.isfinite(value) else "–"


def with_error(value: float, error: float) -> str:
    """Format a value with its standard error."""
    return f"{value:.2f} ± {number(error, '.2f')}"


def variance_rows(columns: Iterable[tuple[str, float, float, float, str]]) -> list[list[str]]:
    """Return rows (label, text, tone) of variances and known ones, from name, variance, error, truth and tone."""
    return [
        [f"Variance of {name}; true {true:.3g}", with_error(variance, error), tone]
        for name, variance, error, true, tone in columns
    ]


def named_chains(numbers: list[int]) -> str:
    """Return the names of chains, of many only the first few: "Chains 0, 3"."""
    few = ", ".join(map(str, numbers[:8]))
    return f"{'Chain' if len(numbers) == 1 else 'Chains'} {few}{' and others' if len(numbers) > 8 else ''}"
