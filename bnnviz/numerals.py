"""Format numbers with a few significant digits."""

from __future__ import annotations

import math


def general(value: float, form: str = ".3g") -> str:
    """Format a number by a format ending in ``g``, without an exponent for large numbers: 1,670, not 1.67e+03."""
    return format(float(format(value, form)), ",.0f") if 1e3 <= abs(value) < 1e6 else format(value, form)


def count(value: float) -> str:
    """Format a count; an unknown one is a dash."""
    return f"{value:,.0f}" if math.isfinite(value) else "–"
