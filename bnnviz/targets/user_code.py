"""Call the code of users: report its errors, and check that rows are independent."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from bnnviz.errors import BnnvizError

_OF_DTYPES = re.compile(r"\b(dtype|Double|Float|Half|BFloat16)\b")
_LONGEST = 200  # characters of an error
_AGREE = 1e-5  # relative; dependent rows differ by more, casts to float32 by less


def first_line(error: Exception) -> str:
    """Return the first line of an error, without its full stop."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:_LONGEST].rstrip(".")


@contextmanager
def blaming(sentence: str, field: str = "module") -> Iterator[None]:
    """Raise a `BnnvizError` for any error in a block; ``{}`` of the sentence is its first line."""
    try:
        yield
    except Exception as error:
        raise BnnvizError(sentence.format(first_line(error)), field) from error


def is_of_precision(error: Exception) -> bool:
    """Return whether an error is due to mixed precisions."""
    return _OF_DTYPES.search(first_line(error)) is not None


def close(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors differ only by rounding."""
    known = torch.isfinite(b)
    scale = float(b[known].abs().max()) if known.any() else 1.0
    return a.shape == b.shape and torch.allclose(a, b, rtol=_AGREE, atol=_AGREE * scale, equal_nan=True)


def check_deterministic(what: str, found: Tensor, again: Tensor, field: str) -> None:
    """Raise unless two calls gave the same values."""
    if not torch.equal(torch.nan_to_num(found), torch.nan_to_num(again)):
        raise BnnvizError(
            f"{what} is not deterministic; remove random numbers, as in functional.dropout(x, training=self.training),"
            " and state that is kept between calls.",
            field,
        )


def check_rows(what: str, values: Callable[[Tensor], Tensor], count: int, field: str) -> None:
    """Raise unless values (rows, ...) at row numbers (rows,) are deterministic and independent of each other."""
    rows = torch.arange(count)
    with torch.no_grad():
        together = values(rows)
        check_deterministic(what, together, values(rows), field)
        with blaming(f"{what} cannot process one row alone ({{}}); keep rows as the first axis.", field):
            alone = torch.cat([values(row) for row in rows.split(1)])
    if not close(alone, together):
        raise BnnvizError(
            f"{what}'s value for one row depends on the others, but the posterior needs independent rows; remove"
            " statistics of the batch, and keep rows as the first axis.",
            field,
        )


def recorded(value: Tensor, most: float = math.inf) -> set[Any]:
    """Return the operations from which a value was computed, as autograd records them, at most about ``most``."""
    todo = [value.grad_fn]
    found = set(todo)
    while todo and len(found) < most:
        later = {each for each, _ in getattr(todo.pop(), "next_functions", ()) if each is not None} - found
        found |= later
        todo += later
    return found
