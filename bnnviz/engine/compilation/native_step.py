"""Take the steps of a sampler in C++, around the part of them that evaluates the target.

The part is evaluated in Python, in C++ for a network, or by a compiled program. A part in Python is not traced, so it
works for every density, and the step raises the errors of the density.
"""

from __future__ import annotations

import copy
import ctypes
import math
import weakref
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bnnviz import cpp
from bnnviz.engine.compilation.step_loop import CompiledKernel, StepLoop, Tensors, loop_library
from bnnviz.engine.compilation.torch_internals import Handles, Interface, Program, size_of
from bnnviz.engine.compilation.tracing import StepForm, TracedProgram, form_of, moving_part
from bnnviz.samplers import Sampler
from bnnviz.samplers.native import NativeStep
from bnnviz.samplers.random import seeded
from bnnviz.samplers.tree import flat, rebuilt
from bnnviz.targets import Target
from bnnviz.targets.native import NativeGradient

HEADER = Path(__file__).with_suffix(".hpp")
_WHOLE, _HANDLE = ctypes.c_int64, ctypes.c_void_p
_HANDLES = ctypes.POINTER(_HANDLE)
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, _HANDLE)


class _KeptPart(ctypes.Structure):
    _fields_ = [("numbers", _HANDLE), ("rows", _HANDLE), ("bytes", _WHOLE)]


class _InfoPart(ctypes.Structure):
    _fields_ = [("rows", _HANDLE), ("stride", _WHOLE)]


class _Steps(ctypes.Structure):
    """``Steps`` of native_step.hpp."""

    _fields_ = [
        *((name, _WHOLE) for name in ("chains", "dim", "in_float64", "kept", "randoms")),
        *((name, _HANDLES) for name in ("state", "results", "given")),
        *((name, _HANDLE) for name in ("uniforms", "numbers")),
        ("infos", ctypes.POINTER(_InfoPart)),
        ("rows", ctypes.POINTER(_KeptPart)),
        *((name, _HANDLE) for name in ("part", "context")),
        ("gradient", ctypes.POINTER(NativeGradient)),
        ("scale", _HANDLE),
        ("ended", _WHOLE),
    ]


class NativeLoop(StepLoop):
    """Steps in C++, which change the state in place, with the gradient of a network in C++ too."""

    load = ctypes.CDLL

    def __init__(self, form: StepForm, sampler: Sampler, native: NativeStep, learned: Any) -> None:
        super().__init__(form)
        self._native, self._learned, self._target = native, learned, sampler.target
        self._take_steps = self.load(cpp.library(native.source, [HEADER])._name).take
        self._take_steps.restype, self._take_steps.argtypes = _WHOLE, [ctypes.POINTER(_Steps), _WHOLE, _WHOLE, _WHOLE]
        self._parts, self._state = form.parts.tensors, form.parts.state(form.parts.tensors)
        x = self._state.x
        self._made = [*(torch.empty_like(x) for _ in range(native.returns - 1)), x.new_empty(len(x))]
        self._results = _addresses(self._made)
        self._steps = _Steps(
            chains=len(x),
            dim=x.shape[1],
            in_float64=x.dtype == torch.float64,
            kept=form.parts.outlined,
            randoms=sum(math.prod(draw.shape) for draw in form.draws),
            state=_addresses(flat(self._state)),
            given=_addresses(self._given),
            results=self._results,
        )

    def state(self) -> Tensors:
        """Return the tensors of the state at the end of the block."""
        return [part.clone() for part in self._parts]

    def _bind(self) -> None:
        kept = [
            # The first row is the state before all steps.
            _KeptPart(part.data_ptr(), table[1:].data_ptr(), size_of(part))
            for part, table in zip(self._parts, self.states.tables, strict=False)
        ]
        infos = [_InfoPart(table.data_ptr(), size_of(table[0])) for table in self.infos.tables]
        self._steps.rows, self._steps.infos = (_KeptPart * len(kept))(*kept), (_InfoPart * len(infos))(*infos)
        self._evaluate()

    def _evaluate(self) -> None:
        """Make the steps of a new block evaluate the current target."""
        self._gradient = self._target.native_gradient(self._state.x)
        self._steps.gradient = ctypes.pointer(self._gradient)

    def _set_state(self, state: Tensors) -> None:
        for held, part in zip(self._parts, state, strict=True):
            held.copy_(part)

    def _set_adapted(self, adapted: Tensors) -> None:
        learned = rebuilt(self._learned, iter(adapted))
        self._numbers = torch.tensor(self._native.numbers(learned), dtype=torch.float64)
        self._steps.numbers = self._numbers.data_ptr()
        self._learn(learned)

    def _learn(self, learned: Any) -> None:
        self._scale = self._native.scale(learned)
        self._steps.scale = self._scale.data_ptr()

    def _run(self, numbers: list[Tensor], first: bool, steps: int) -> tuple[int, bool]:
        self._steps.uniforms = numbers[0].data_ptr()
        taken = self._take_steps(self._steps, first, self.taken, steps)
        if taken < 0:
            raise RuntimeError("The compiled step has failed.")
        return taken, bool(self._steps.ended)


class PythonPartLoop(NativeLoop):
    """Steps in C++ around a part in Python; random numbers are drawn step by step, since the part may raise."""

    # Keep the interpreter's lock, which the part needs at once.
    load = ctypes.PyDLL

    def __init__(self, form: StepForm, sampler: Sampler, native: NativeStep, learned: Any) -> None:
        super().__init__(form, sampler, native, learned)
        self._reads, self._dtype = native.reads(self._state), self._state.x.dtype
        self._callback = _CALLBACK(self._call)  # kept alive
        self._steps.part = ctypes.cast(self._callback, _HANDLE)

    def _evaluate(self) -> None:
        """Do nothing: the part calls the target."""

    def _learn(self, learned: Any) -> None:
        self._learned = learned

    def _call(self, _: Any) -> int:
        self._raised = None
        try:
            made = self._native.part(self._reads, self._learned)
            dtype = self._dtype
            self._made = [
                each if each.dtype is dtype and each.is_contiguous() else each.to(dtype).contiguous() for each in made
            ]
            self._results[:] = [each.data_ptr() for each in self._made]
        except BaseException as error:  # noqa: BLE001 it is raised when the C++ has returned
            self._raised = error
            return 1
        return 0

    def _take(self, first: bool, steps: int) -> tuple[int, bool]:
        draw, row, place = self._rng.maker(self.form.draws[0]), self.taken, self._steps
        for step in range(steps):
            numbers = draw()
            place.uniforms = numbers.data_ptr()
            self._raised = KeyboardInterrupt()  # an interrupt between the C++ and the call leaves no other trace
            if self._take_steps(place, first and step == 0, row + step, 1) < 0 or self._raised is not None:
                raise self._raised
            if place.ended:
                return step + 1, True
        return steps, False


class _Part(ctypes.Structure):
    """``Part`` of step_loop.cpp."""

    _fields_ = [
        ("torch", Interface),
        ("program", _HANDLE),
        *((name, _WHOLE) for name in ("inputs", "outputs")),
        *((name, _HANDLES) for name in ("given", "taken", "returned", "results")),
    ]


class ProgramPartLoop(NativeLoop):
    """Steps in C++ around a compiled part."""

    def __init__(
        self,
        form: StepForm,
        sampler: Sampler,
        native: NativeStep,
        learned: Any,
        program: Program,
        part: TracedProgram,
    ) -> None:
        super().__init__(form, sampler, native, learned)
        self._program = program
        self._fixed = Handles(program, native.reads(self._state)), Handles(program, part.constants)
        inputs, outputs = len(part.examples), native.returns
        self._part = _Part(
            torch=program.interface,
            program=program.container,
            inputs=inputs,
            outputs=outputs,
            taken=(_HANDLE * inputs)(),
            returned=(_HANDLE * outputs)(),
            results=self._results,
        )
        library = loop_library()
        weakref.finalize(self, _drop_part, library, program, self._part).atexit = False
        self._steps.part = ctypes.cast(library.run_part, _HANDLE)
        self._steps.context = ctypes.cast(ctypes.pointer(self._part), _HANDLE)

    def _evaluate(self) -> None:
        """Do nothing: the program has the target's numbers."""

    def _learn(self, learned: Any) -> None:
        reads, constants = self._fixed
        self._of_learned = Handles(self._program, flat(learned))
        handles = [*reads.array, *self._of_learned.array, *constants.array]
        self._part.given = (_HANDLE * len(handles))(*handles)


def _drop_part(library: ctypes.CDLL, program: Program, part: _Part) -> None:
    """Delete the tensors last returned by a part, before its program."""
    library.drop_part(ctypes.byref(part))


class _Flat(Target):
    """A placeholder target for the types and shapes of a step's outputs."""

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U (chains,) = 0 and its gradient (chains, dim)."""
        return torch.zeros_like(x[:, 0]), torch.zeros_like(x)


def native_form(sampler: Sampler, state: Any) -> StepForm | None:
    """Return the form of a step in C++; None without one, without a compiler, or for a state in mixed precision."""
    # The C++ of a class may not apply to a derived class.
    native = sampler.native_step() if "native_step" in vars(type(sampler)) else None
    if native is None or state.x.device.type != "cpu":
        return None
    stand_in = copy.copy(sampler)
    stand_in.target = _Flat()
    if _types(stand_in.resume(seeded(0), state)) != _types(state) or cpp.library(native.source, [HEADER]) is None:
        return None
    return form_of(stand_in, state)


def eager_kernel(sampler: Sampler, state: Any) -> CompiledKernel | None:
    """Return the kernel of steps in C++ around a part that is not compiled; None without such steps."""
    form = native_form(sampler, state)
    if form is None:
        return None
    native, learned = sampler.native_step(), sampler.adaptation_inputs(state.adaptation)
    is_native = sampler.target.native_gradient(state.x) is not None
    whole = is_native and native.scale(learned) is not None
    loop = (NativeLoop if whole else PythonPartLoop)(form, sampler, native, learned)
    return CompiledKernel(sampler, loop, is_native=is_native)


def _types(state: Any) -> list[tuple[torch.dtype, torch.Size]]:
    return [(part.dtype, part.shape) for part in flat(moving_part(state))]


def _addresses(tensors: list[Tensor]) -> ctypes.Array:
    return (_HANDLE * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
