"""Parameters of which a few are quick tests and the others run nightly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some_quick(cases: Iterable[Any], number: int) -> list[Any]:
    """Return the cases as parameters; all but ``number`` evenly spread ones are marked slow."""
    cases = list(cases)
    quick = {round(place * (len(cases) - 1) / max(number - 1, 1)) for place in range(number)}
    return [
        pytest.param(*(case if type(case) is tuple else (case,)), marks=[pytest.mark.slow] * (place not in quick))
        for place, case in enumerate(cases)
    ]
