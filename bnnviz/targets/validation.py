"""Check a user's data and scales before anything is computed."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from bnnviz import memory
from bnnviz.data.tables import arrays
from bnnviz.errors import BnnvizError


def scale(name: str, given: Any) -> float:
    """Return a standard deviation."""
    try:
        found = float(given)
    except (TypeError, ValueError) as error:
        raise BnnvizError(f"{name} must be one number, not {given!r:.60}.", name) from error
    if not found > 0 or math.isinf(found):
        raise BnnvizError(f"{name} = {found:g} must be above 0{' and finite' if found > 0 else ''}.", name)
    return found


def rows(what: str, given: Any) -> Tensor:
    """Return a copy of rows of numbers (rows, ...), independent of the caller's array."""
    lazy = not isinstance(given, Tensor) and type(given).__module__.startswith("dask.")
    given = given.compute() if lazy else given
    size = given.numel() * given.element_size() if isinstance(given, Tensor) else getattr(given, "nbytes", 0)
    memory.check(size, f"A copy of the {what}", "give fewer rows, or use a machine with more memory", "data")
    found = _dense(given.detach()).clone() if isinstance(given, Tensor) else torch.tensor(arrays.numbers(what, given))
    if found.is_meta:
        raise BnnvizError(f"The {what} are on the device meta and have no values; give them on the CPU.", "data")
    if found.is_complex():
        raise BnnvizError(f"The {what} are complex numbers; give their parts as columns.", "data")
    if not found.ndim:
        raise BnnvizError(f"The {what} are a single number; give one row for each observation.", "data")
    return found


def _dense(given: Tensor) -> Tensor:
    """Return a dense tensor; missing elements of a sparse one become zeros."""
    if given.is_nested:
        raise BnnvizError("The rows are a nested tensor with different lengths. Pad them to the same length.", "data")
    given = given.dequantize() if given.is_quantized else given
    return given if given.layout == torch.strided else given.to_dense()
