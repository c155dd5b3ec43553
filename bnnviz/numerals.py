"""Write numbers with a few significant digits."""

from __future__ import annotations


def general(value: float, form: str = ".3g") -> str:
    """Write a number in a format ending in ``g``, thousands in digits: 1,670 instead of 1.67e+03."""
    return format(float(format(value, form)), ",.0f") if 1e3 <= abs(value) < 1e6 else format(value, form)
