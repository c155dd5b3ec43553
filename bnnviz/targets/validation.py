"""Check what somebody gives for a posterior of their own before anything is computed: module, data, scales."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from bnnviz.data.tables import arrays
from bnnviz.errors import BnnvizError


def module(given: Any) -> nn.Module:
    """Return a copy of a module in evaluation mode.

    Raises
    ------
    BnnvizError
        If it is none, has parameters without a shape yet, or has batch normalisation.
    """
    if not isinstance(given, nn.Module):
        what = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
        raise BnnvizError(f"module must be a torch.nn.Module, not {what}; give an instance of one.", "module")
    if any(isinstance(each, nn.parameter.UninitializedParameter) for each in given.parameters()):
        raise BnnvizError(
            "The module has lazy layers, whose weights have no shape yet; call it once on your inputs before.", "module"
        )
    if any(isinstance(child, nn.modules.batchnorm._BatchNorm) for child in given.modules()):
        raise BnnvizError(
            "The module has batch normalisation, which makes one row's output depend on the others, so there"
            " is no likelihood of a row; use layer or group normalisation.",
            "module",
        )
    return copy.deepcopy(given).eval()


def scale(name: str, given: Any) -> float:
    """Return a standard deviation.

    Raises
    ------
    BnnvizError
        If it is no finite number above 0.
    """
    try:
        found = float(given)
    except (TypeError, ValueError) as error:
        raise BnnvizError(f"{name} must be one number, not {given!r:.60}.", name) from error
    if not found > 0 or math.isinf(found):
        raise BnnvizError(f"{name} = {found:g} must be above 0{' and finite' if found > 0 else ''}.", name)
    return found


def rows(what: str, given: Any) -> Tensor:
    """Return a copy of rows of numbers (rows, ...): the caller may use the array again.

    Raises
    ------
    BnnvizError
        If they are not numbers in one shape.
    """
    found = given.detach().to_dense() if isinstance(given, Tensor) else torch.tensor(arrays.numbers(what, given))
    found = found.clone() if isinstance(given, Tensor) else found
    if found.is_complex():
        raise BnnvizError(f"The {what} are complex numbers; give their parts as columns.", "data")
    if not found.ndim:
        raise BnnvizError(f"The {what} are one number; give one row for each observation.", "data")
    return found
