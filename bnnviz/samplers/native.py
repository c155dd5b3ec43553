"""Describe the C++ implementation of a sampler's step around the part that depends on the target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor


class NativeStep(NamedTuple):
    """The sampler's contribution to a step in C++."""

    source: Path  # C++ source, in the form of ``bnnviz/engine/compilation/native_step.hpp``
    reads: Callable[[Any], list[Tensor]]  # callable: From a state to the tensors that the part reads
    # callable: From these and `Sampler.adaptation_inputs` to the tensors that the C++ code receives
    part: Callable[[list[Tensor], Any], list[Tensor]]
    # callable: From `Sampler.adaptation_inputs` to the constants of the C++ code
    numbers: Callable[[Any], list[float]]
    returns: int  # Number of tensors that the part returns
    # callable: From `Sampler.adaptation_inputs` to the tensor that a part in C++ (around the gradient of a target)
    # reads; None if the part cannot be C++
    scale: Callable[[Any], Tensor | None]
