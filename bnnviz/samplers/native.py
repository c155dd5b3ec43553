"""Say how the step of a sampler is written in C++ around the part of it that depends on the target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor


class NativeStep(NamedTuple):
    """Hold what a step in C++ needs of its sampler."""

    source: Path  # Of the C++, which ``bnnviz/engine/compilation/native_step.hpp`` says the form of
    reads: Callable[[Any], list[Tensor]]  # callable: From a state to the tensors of it that this part reads
    # callable: From these and what `Sampler.adaptation_inputs` returns to the tensors that the C++ goes on with
    part: Callable[[list[Tensor], Any], list[Tensor]]
    # callable: From what `Sampler.adaptation_inputs` returns to the numbers that the C++ needs to know
    numbers: Callable[[Any], list[float]]
    returns: int  # How many tensors the part returns
    # callable: From what `Sampler.adaptation_inputs` returns to the tensor that the part reads of it where it is C++
    # too, around the gradient of a target; None where that part cannot be
    scale: Callable[[Any], Tensor | None]
