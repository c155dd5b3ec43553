"""Evaluate a density that raises an error where it is not defined, as a matrix that is not positive definite does.

Such a point has the density zero, so a sampler rejects it, as Stan does (Stan Reference Manual, section "Rejections").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bnnviz.errors import BnnvizError

#: Raised where a matrix has no factor, a distribution no such parameter, or a function no value.
DOMAIN_ERRORS = (torch.linalg.LinAlgError, ValueError, ArithmeticError)
#: How the sentence on such points begins.
BEGINNING = "The density raised an error of its domain at"


class RejectedPoints:
    """Count the points at which a density raised an error of its domain.

    Attributes
    ----------
    count : int
    first : str
        What the first error said, on one line.
    """

    def __init__(self, count: int = 0, first: str = "") -> None:
        self.count, self.first = count, first

    def add(self, error: Exception) -> None:
        """Count a point."""
        self.first = self.first or f"{type(error).__name__}: {_shortened(str(error))}"
        self.count += 1

    def sentence(self) -> str:
        """Say how many there were, and what the first error said; "" where there were none."""
        if not self.count:
            return ""
        points = "one point" if self.count == 1 else f"{self.count:,} points"
        return f"{BEGINNING} {points}, where it counts as zero (first {self.first})."


def evaluated(function: Callable[[Tensor], Any], x: Tensor, rejected: RejectedPoints) -> Any:
    """Return a function's values (chains,) at x (chains, dim), infinite where it raises an error of its domain.

    One point alone would have the whole batch fail, so that this is halved until the point is found. The gradient at
    such a point is not a number. Other errors are the caller's to see.
    """
    try:
        return function(x)
    except BnnvizError:
        raise
    except DOMAIN_ERRORS as error:
        if len(x) == 1:
            rejected.add(error)
            return torch.inf * (1 + 0 * x.sum(-1))
    half = len(x) // 2
    return torch.cat([evaluated(function, part, rejected) for part in (x[:half], x[half:])])


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else f"{line[:157]}..."
