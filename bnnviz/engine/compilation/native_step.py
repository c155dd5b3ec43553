"""Take steps that are written in C++ around a compiled part of them."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import torch
from torch import Tensor

from bnnviz.engine.compilation.native_program import Handles, KeptVector, NativeProgram, ToldPart, size_of
from bnnviz.engine.compilation.packing import PackedPlace
from bnnviz.engine.compilation.stretch import LoopedStretch, Vectors, rows_of
from bnnviz.engine.compilation.tracing import TracedPart, TracedStep
from bnnviz.samplers.native import NativeStep
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import flat, rebuilt

_DRAWS = {("uniform", torch.float64)}


class NativeStepLoop:
    """What stays the same from stretch to stretch, and the state, which the steps change in place.

    Parameters
    ----------
    program : NativeProgram
        Of the part that is compiled.
    native : NativeStep
    trace : TracedStep
        Of the whole step.
    part : TracedPart
    learnt : Any
        How the adaptation is built of its tensors.
    ends : PackedPlace
        Where the steps say which moves have ended.
    nothing : list of Tensor
        What is drawn beforehand, where nothing has to be.
    """

    def __init__(
        self,
        program: NativeProgram,
        native: NativeStep,
        trace: TracedStep,
        part: TracedPart,
        learnt: Any,
        ends: PackedPlace,
        nothing: Vectors,
    ) -> None:
        self.program, self.trace, self.ends = program, trace, ends
        self._native, self._learnt = native, learnt
        self.vectors = [vector.clone() for vector in trace.examples[: trace.packing.vectors]]
        self.given = [number.clone() for number in nothing]
        state = trace.packing.state(self.vectors)
        parts = flat(state)
        self._reads, self._constants = Handles(program, native.reads(state)), Handles(program, part.constants)
        self._adapted: Vectors | None = None
        self.inputs: Any = None
        self.numbers = torch.zeros(0, dtype=torch.float64)
        outputs = len(part.program(*part.examples))
        self.fixed = {
            "chains": len(state.x),
            "dim": state.x.shape[1],
            "in_float64": state.x.dtype == torch.float64,
            "inputs": len(part.examples),
            "outputs": outputs,
            "kept": trace.packing.outlined,
            "randoms": sum(math.prod(draw.shape) for draw in trace.draws),
            "state": (ctypes.c_void_p * len(parts))(*(number.data_ptr() for number in parts)),
            "results": (ctypes.c_void_p * outputs)(),
            "given": (ctypes.c_void_p * len(self.given))(*(number.data_ptr() for number in self.given)),
            "taken": (ctypes.c_void_p * len(part.examples))(),
            "returned": (ctypes.c_void_p * outputs)(),
        }

    def stretch(self, rng: RandomNumbers, vectors: Vectors, steps: int) -> NativeStepStretch:
        """Return the stretch of up to so many steps that begins with a state."""
        return NativeStepStretch(self, rng, vectors, steps)

    def take_up(self, given: Vectors, adapted: Vectors) -> None:
        """Copy what was drawn beforehand, and have the steps read what has been learnt."""
        for held, part in zip(self.given, given, strict=True):
            held.copy_(part)
        if adapted is not self._adapted:
            self._adapted, self._handles = adapted, Handles(self.program, adapted)
            handles = [*self._reads.array, *self._handles.array, *self._constants.array]
            self.inputs = (ctypes.c_void_p * len(handles))(*handles)
            numbers = self._native.numbers(rebuilt(self._learnt, iter(adapted)))
            self.numbers = torch.tensor(numbers, dtype=torch.float64)

    def drawn(self, rng: RandomNumbers, steps: int) -> list[Tensor]:
        """Draw the random numbers of so many steps, (steps, numbers)."""
        return [rng.uniform((steps, self.fixed["randoms"]), torch.float64)]


class NativeStepStretch(LoopedStretch):
    """Steps in C++.

    Parameters
    ----------
    loop : NativeStepLoop
    rng : RandomNumbers
    vectors : list of Tensor
        Of the state that it begins with.
    steps : int
        Most steps.
    """

    def __init__(self, loop: NativeStepLoop, rng: RandomNumbers, vectors: Vectors, steps: int) -> None:
        super().__init__(loop.ends, rng, loop.drawn, *rows_of(loop.trace, steps))
        self._loop = loop
        self.place(vectors)
        kept = [
            # The first row is of the state before all steps.
            KeptVector(vector.data_ptr(), matrix[1:].data_ptr(), size_of(vector))
            for vector, matrix in zip(loop.vectors, self.states.matrices, strict=False)
        ]
        matrices, told = self.told.matrices, []
        for place in loop.trace.info_packing.places:
            matrix = matrices[place.vector]
            width = matrix.element_size()
            told.append(ToldPart(matrix.data_ptr() + place.first * width, matrix.stride(0) * width))
        self._steps = loop.program.steps(
            **loop.fixed, rows=(KeptVector * len(kept))(*kept), told=(ToldPart * len(told))(*told)
        )

    def vectors(self) -> Vectors:
        """Return those of the state that it has led to."""
        return [vector.clone() for vector in self._loop.vectors]

    def _set_out(self, vectors: Vectors) -> None:
        for held, vector in zip(self._loop.vectors, vectors, strict=True):
            held.copy_(vector)

    def _take_up(self, given: Vectors, adapted: Vectors) -> None:
        self._loop.take_up(given, adapted)
        self._steps.numbers = self._loop.numbers.data_ptr()

    def _run(self, numbers: list[Tensor], first: bool, steps: int) -> int:
        self._steps.uniforms = numbers[0].data_ptr()
        return self._loop.program.take_native(self._steps, self._loop.inputs, first, self.taken, steps)


def fits(native: NativeStep | None, trace: TracedStep) -> bool:
    """Return whether a step can be taken in C++: on a CPU, with uniform random numbers in one request."""
    on_cpu = all(example.device.type == "cpu" for example in trace.examples)
    draws = [(draw.law, draw.dtype) for draw in trace.draws]
    return native is not None and on_cpu and trace.adapts and len(draws) == 1 and set(draws) == _DRAWS
