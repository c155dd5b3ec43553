"""Format numbers."""

from __future__ import annotations

import math


def general(value: float, form: str = ".3g") -> str:
    """Format a number by a format ending in ``g``, without an exponent for large numbers: 1,670, not 1.67e+03."""
    return format(float(format(value, form)), ",.0f") if 1e3 <= abs(value) < 1e6 else format(value, form)


def count(value: float) -> str:
    """Format a count; an unknown one is a dash."""
    return f"{value:,.0f}" if math.isfinite(value) else "–"


def number(value: float, form: str) -> str:
    """Format a number, or return a dash for an unknown one."""
    return format(value, form) if math.isfinite(value) else "–"


def named_chains(numbers: list[int]) -> str:
    """Return the names of chains, of many only the first few: "Chains 0, 3"."""
    few = ", ".join(map(str, numbers[:8]))
    return f"{'Chain' if len(numbers) == 1 else 'Chains'} {few}{' and others' if len(numbers) > 8 else ''}"
