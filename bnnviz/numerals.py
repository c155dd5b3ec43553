"""Write numbers in texts as they are read."""

from __future__ import annotations

import re

_THOUSANDS = re.compile(r"(?<![\w.])-?\d(?:\.\d+)?e\+0[3-5]\b")
_ROUNDING = re.compile(r"(?<![\w.])-?\d(?:\.\d+)?e-(?:1[2-9]|[2-9]\d)\b")
_POWER = re.compile(r"(?<![\w.])(-?\d(?:\.\d+)?)e([+-])0?(\d+)\b")
_MINUS = re.compile(r"(?<![^\s([{=<>≤≥|,;:±])-(?=\d|inf\b)")  # a sign, no hyphen: of 1-3, x-1 and 2.3e-07 neither
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def written_out(text: str) -> str:
    """Return a text with its numbers as they are read.

    Thousands stand in digits, 1,670 for 1.67e+03, other powers as such, 3.1 × 10⁻⁶ for 3.1e-06, and what is nothing but
    rounding is 0. A negative number has the minus sign that axes have.
    """
    plain = _ROUNDING.sub("0", _THOUSANDS.sub(lambda match: f"{float(match[0]):,.0f}", text))
    raised = _POWER.sub(lambda match: f"{match[1]} × 10{(match[2].strip('+') + match[3]).translate(_RAISED)}", plain)
    return _MINUS.sub("\u2212", raised)
