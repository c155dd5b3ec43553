"""Take steps that are written in C++ around a part that is compiled, evaluated operation by operation, or C++ too."""

from __future__ import annotations

import ctypes
import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from bnnviz.engine.compilation.native_library import NativeLibrary
from bnnviz.engine.compilation.native_program import Handles, KeptVector, NativeProgram, NativeSteps, ToldPart, size_of
from bnnviz.engine.compilation.packing import PackedPlace
from bnnviz.engine.compilation.stretch import LoopedStretch, Vectors, rows_of, take_drawn
from bnnviz.engine.compilation.tracing import StepForm, TracedPart
from bnnviz.samplers.native import NativeStep
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import flat, rebuilt
from bnnviz.targets import Target

_DRAWS = {("uniform", torch.float64)}


class NativeStepLoop(ABC):
    """What stays the same from stretch to stretch, and the state, which the steps change in place."""

    def __init__(self, native: NativeStep, form: StepForm, learnt: Any, ends: PackedPlace, nothing: Vectors) -> None:
        self.form, self.ends = form, ends
        self._native, self._learnt = native, learnt
        self.vectors = form.vectors
        self.given = [number.clone() for number in nothing]
        self.state = form.packing.state(self.vectors)
        parts = flat(self.state)
        self._adapted: Vectors | None = None
        self.numbers = torch.zeros(0, dtype=torch.float64)
        self.fixed: dict[str, Any] = {
            "chains": len(self.state.x),
            "dim": self.state.x.shape[1],
            "in_float64": self.state.x.dtype == torch.float64,
            "kept": form.packing.outlined,
            "randoms": sum(math.prod(draw.shape) for draw in form.draws),
            "state": (ctypes.c_void_p * len(parts))(*(number.data_ptr() for number in parts)),
            "given": (ctypes.c_void_p * len(self.given))(*(number.data_ptr() for number in self.given)),
        }

    def stretch(self, rng: RandomNumbers, vectors: Vectors, steps: int) -> NativeStepStretch:
        """Return the stretch of up to so many steps that begins with a state."""
        return NativeStepStretch(self, rng, vectors, steps)

    def take_up(self, given: Vectors, adapted: Vectors) -> None:
        """Copy what was drawn beforehand, and have the steps read what has been learnt."""
        for held, part in zip(self.given, given, strict=True):
            held.copy_(part)
        if adapted is not self._adapted:
            self._adapted, learnt = adapted, rebuilt(self._learnt, iter(adapted))
            self.numbers = torch.tensor(self._native.numbers(learnt), dtype=torch.float64)
            self._learn(learnt)

    def _drawn(self, rng: RandomNumbers, steps: int) -> list[Tensor]:
        """Draw the random numbers of so many steps, (steps, numbers)."""
        return [rng.uniform((steps, self.fixed["randoms"]), torch.float64)]

    @abstractmethod
    def _learn(self, learnt: Any) -> None:
        """Have the part that is not in C++ read what has been learnt."""

    @abstractmethod
    def steps(self, **parts: Any) -> NativeSteps:
        """Return what the steps need, with these parts beside those that are fixed."""

    @abstractmethod
    def take(self, steps: NativeSteps, rng: RandomNumbers, first: bool, row: int, count: int) -> int:
        """Draw for up to so many steps and take them, up to one that ends a move; return how many."""


class CompiledPartLoop(NativeStepLoop):
    """Steps in C++ around a part that is compiled."""

    def __init__(self, program: NativeProgram, part: TracedPart, native: NativeStep, *rest: Any) -> None:
        super().__init__(native, *rest)
        self._program = program
        self._reads, self._constants = Handles(program, native.reads(self.state)), Handles(program, part.constants)
        self._inputs: Any = None
        outputs = len(part.program(*part.examples))
        self.fixed |= {
            "inputs": len(part.examples),
            "outputs": outputs,
            "results": (ctypes.c_void_p * outputs)(),
            "taken": (ctypes.c_void_p * len(part.examples))(),
            "returned": (ctypes.c_void_p * outputs)(),
        }

    def _learn(self, learnt: Any) -> None:
        self._handles = Handles(self._program, flat(learnt))
        handles = [*self._reads.array, *self._handles.array, *self._constants.array]
        self._inputs = (ctypes.c_void_p * len(handles))(*handles)

    def steps(self, **parts: Any) -> NativeSteps:
        """Return what the steps need, with these parts beside those that are fixed."""
        return self._program.steps(**self.fixed, **parts)

    def take(self, steps: NativeSteps, rng: RandomNumbers, first: bool, row: int, count: int) -> int:
        """Draw for up to so many steps and take them, as `NativeStepLoop.take` says."""

        def run(numbers: list[Tensor]) -> int:
            steps.uniforms = numbers[0].data_ptr()
            return self._program.take_native(steps, self._inputs, first, row, count)

        return take_drawn(rng, self._drawn, run, count, ends=True)


class EagerPartLoop(NativeStepLoop):
    """Steps in C++ around a part that is evaluated operation by operation.

    What evaluating it raises is raised by `take`; the random numbers are drawn step by step, so that these are then
    those of the steps up to there.
    """

    def __init__(self, library: NativeLibrary, native: NativeStep, *rest: Any) -> None:
        super().__init__(native, *rest)
        self._library, self._reads = library, native.reads(self.state)
        self._part = self._native.part
        self._results = (ctypes.c_void_p * native.returns)()
        self.fixed["results"] = self._results

    def _learn(self, learnt: Any) -> None:
        self._now_learnt = learnt

    def steps(self, **parts: Any) -> NativeSteps:
        """Return what the steps need, with these parts beside those that are fixed."""
        return NativeSteps(**self.fixed, **parts)

    def take(self, steps: NativeSteps, rng: RandomNumbers, first: bool, row: int, count: int) -> int:
        """Draw for up to so many steps and take them, as `NativeStepLoop.take` says."""
        draw, dtype, results = rng.maker(self.form.draws[0]), self.state.x.dtype, self._results
        with self._library.held(steps) as chains:
            for step in range(count):
                numbers = draw()
                steps.uniforms = numbers.data_ptr()
                chains.before(first and step == 0)
                made = self._part(self._reads, self._now_learnt)
                made = [each if _lies_so(each, dtype) else each.to(dtype).contiguous() for each in made]
                results[:] = [each.data_ptr() for each in made]
                if chains.after(row + step):
                    return step + 1
        return count


class NativePartLoop(NativeStepLoop):
    """Steps in C++ around a part that is C++ too."""

    def __init__(self, library: NativeLibrary, target: Target, native: NativeStep, *rest: Any) -> None:
        super().__init__(native, *rest)
        self._library, self._target = library, target
        x = self.state.x
        made = [torch.empty_like(x) for _ in range(native.returns - 1)]
        self._made = [*made, x.new_empty(len(x))]
        self.fixed["results"] = (ctypes.c_void_p * native.returns)(*(number.data_ptr() for number in self._made))

    def _learn(self, learnt: Any) -> None:
        self._scale = self._native.scale(learnt)

    def steps(self, **parts: Any) -> NativeSteps:
        """Return what the steps need, with these parts beside those that are fixed."""
        return NativeSteps(**self.fixed, **parts)

    def take(self, steps: NativeSteps, rng: RandomNumbers, first: bool, row: int, count: int) -> int:
        """Draw for up to so many steps and take them, as `NativeStepLoop.take` says."""
        steps.scale = self._scale.data_ptr()
        gradient = self._target.native_gradient(self.state.x)

        def run(numbers: list[Tensor]) -> int:
            steps.uniforms = numbers[0].data_ptr()
            return self._library.take_whole(steps, gradient, first, row, count)

        return take_drawn(rng, self._drawn, run, count, ends=True)


class NativeStepStretch(LoopedStretch):
    """Steps in C++."""

    def __init__(self, loop: NativeStepLoop, rng: RandomNumbers, vectors: Vectors, steps: int) -> None:
        super().__init__(loop.ends, *rows_of(loop.form, steps))
        self._loop, self._rng = loop, rng
        self.place(vectors)
        kept = [
            # The first row is of the state before all steps.
            KeptVector(vector.data_ptr(), matrix[1:].data_ptr(), size_of(vector))
            for vector, matrix in zip(loop.vectors, self.states.matrices, strict=False)
        ]
        matrices, told = self.told.matrices, []
        for place in loop.form.info_packing.places:
            matrix = matrices[place.vector]
            width = matrix.element_size()
            told.append(ToldPart(matrix.data_ptr() + place.first * width, matrix.stride(0) * width))
        self._steps = loop.steps(rows=(KeptVector * len(kept))(*kept), told=(ToldPart * len(told))(*told))

    def vectors(self) -> Vectors:
        """Return those of the state that it has led to."""
        return [vector.clone() for vector in self._loop.vectors]

    def _set_out(self, vectors: Vectors) -> None:
        for held, vector in zip(self._loop.vectors, vectors, strict=True):
            held.copy_(vector)

    def _take_up(self, given: Vectors, adapted: Vectors) -> None:
        self._loop.take_up(given, adapted)
        self._steps.numbers = self._loop.numbers.data_ptr()

    def _take(self, first: bool, steps: int) -> int:
        return self._loop.take(self._steps, self._rng, first, self.taken, steps)


def _lies_so(tensor: Tensor, dtype: torch.dtype) -> bool:
    """Return whether a tensor's numbers lie as the C++ reads them: of one type, row after row."""
    return tensor.dtype is dtype and tensor.is_contiguous()


def fits(native: NativeStep | None, form: StepForm) -> bool:
    """Return whether a step can be taken in C++: on a CPU, with uniform random numbers in one request."""
    on_cpu = all(vector.device.type == "cpu" for vector in form.vectors)
    draws = [(draw.law, draw.dtype) for draw in form.draws]
    return native is not None and on_cpu and form.adapts and len(draws) == 1 and set(draws) == _DRAWS
