"""Take blocks of steps in compiled loops, with a row per step and no Python between steps."""

from __future__ import annotations

import ctypes
import math
import weakref
from abc import ABC, abstractmethod
from pathlib import Path

import torch
from torch import Tensor

from bnnviz import cpp
from bnnviz.engine.compilation.packing import StepRows
from bnnviz.engine.compilation.torch_internals import Handles, Interface, Program, size_of
from bnnviz.engine.compilation.tracing import StepForm, TracedProgram
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import flat

Vectors = list[Tensor]
_FIRST = 8  # steps with random numbers after the end of a move, then repeatedly doubled
_SOURCE = Path(__file__).with_name("step_loop.cpp")
_HEADER = Path(__file__).with_name("program.hpp")
_WHOLE, _HANDLE = ctypes.c_int64, ctypes.c_void_p
_HANDLES = ctypes.POINTER(_HANDLE)


class StepLoop(ABC):
    """A block of steps, started by `begin` and continued by `advance`."""

    def __init__(self, form: StepForm) -> None:
        self.form = form
        self._asked = form.vectors[: form.packing.outlined]
        self._info = form.info_packing.packed(flat(form.info))
        laws = {(draw.law, draw.dtype) for draw in form.draws}
        # Uniform numbers come from the generator one by one, so that drawing many steps together gives the same
        # numbers.
        self._together = len(laws) == 1 and laws.pop()[0] == "uniform"
        self._sizes = [math.prod(draw.shape) for draw in form.draws]

    def begin(self, rng: RandomNumbers, vectors: Vectors, steps: int, continues: bool = False) -> None:
        """Begin a block of at most ``steps`` steps from a state, or from the end of the last block."""
        self._rng, self._ahead = rng, _FIRST
        self._makers = [rng.maker(draw) for draw in self.form.draws]
        self.states = StepRows([part.new_empty((steps + 1, *part.shape)) for part in self._asked], 1)
        self.infos = StepRows([part.new_empty((steps, *part.shape)) for part in self._info], 0)
        self._bind()
        if not continues:
            self._set_state(vectors)
        self._keep(vectors)

    @property
    def taken(self) -> int:
        """Number of steps taken in the block."""
        return len(self.infos)

    def place(self, vectors: Vectors) -> None:
        """Continue from another state."""
        self._set_state(vectors)
        self._keep(vectors)

    def _keep(self, vectors: Vectors) -> None:
        """Write a state into its row."""
        for matrix, vector in zip(self.states.matrices, vectors, strict=False):
            matrix[self.taken] = vector

    def advance(self, given: Vectors, adapted: Vectors, most: int) -> bool:
        """Take at most ``most`` steps, up to one that ends a move; return whether one has, or may have."""
        self._set_inputs(given, adapted)
        left, first, ends = most, True, self.form.ends is not None
        while left:
            taken, ended = self._take(first, min(left, self._ahead) if ends else left)
            self.states.count += taken
            self.infos.count += taken
            left -= taken
            first, self._ahead = False, 2 * self._ahead
            if ended and ends:
                self._ahead = _FIRST
                return True
        return not ends

    def _take(self, first: bool, steps: int) -> tuple[int, bool]:
        """Draw the random numbers of some steps and take them; return their number, and whether a move ended."""
        generator = self._rng.generator
        before = generator.get_state() if self.form.ends is not None else None
        taken, ended = self._run(self._drawn(steps), first, steps)
        if taken < steps:
            # The next numbers follow those of these steps.
            generator.set_state(before)
            self._drawn(taken)
        return taken, ended

    def _drawn(self, steps: int) -> list[Tensor]:
        """Draw the random numbers of all steps, (steps, numbers) for each request of a step."""
        if self._together:
            sizes = self._sizes
            numbers = self._rng.uniform((steps, sum(sizes)), self.form.draws[0].dtype)
            return [numbers] if len(sizes) == 1 else list(numbers.split_with_sizes(sizes, 1))
        if steps == 1:
            return [make()[None] for make in self._makers]
        each = [[make().flatten() for make in self._makers] for _ in range(steps)]
        return [torch.stack(rows) for rows in zip(*each, strict=True)]

    @abstractmethod
    def vectors(self) -> Vectors:
        """Return the vectors of the state at the end of the block."""

    @abstractmethod
    def _bind(self) -> None:
        """Make steps write into the rows of a new block."""

    @abstractmethod
    def _set_state(self, vectors: Vectors) -> None:
        """Make the next step start at a state."""

    @abstractmethod
    def _set_inputs(self, given: Vectors, adapted: Vectors) -> None:
        """Set the inputs drawn beforehand and the adapted values for the next steps."""

    @abstractmethod
    def _run(self, numbers: list[Tensor], first: bool, steps: int) -> tuple[int, bool]:
        """Take at most ``steps`` steps, up to the end of a move; return their number, and whether one has ended."""


class _Drawn(ctypes.Structure):
    """Random numbers of every step, and the place from which the program reads those of one."""

    _fields_ = [("numbers", _HANDLE), ("stride", _WHOLE), ("bytes", _WHOLE), ("read_at", _HANDLE)]


class _Kept(ctypes.Structure):
    """An output to keep, as a row per step."""

    _fields_ = [("output", _WHOLE), ("bytes", _WHOLE), ("rows", _HANDLE)]


class _Loop(ctypes.Structure):
    """``Loop`` of step_loop.cpp."""

    _fields_ = [
        ("torch", Interface),
        ("program", _HANDLE),
        *((name, _WHOLE) for name in ("states", "others", "outputs", "drawn", "kept")),
        *((name, _HANDLES) for name in ("state", "taken", "returned")),
        ("draws", ctypes.POINTER(_Drawn)),
        ("rows", ctypes.POINTER(_Kept)),
        *((name, _WHOLE) for name in ("ends", "ends_from", "ends_to", "ended")),
    ]


class ProgramLoop(StepLoop):
    """Steps compiled as a whole."""

    def __init__(self, form: StepForm, program: Program, step: TracedProgram) -> None:
        super().__init__(form)
        self._program, self._library = program, loop_library()
        self._library.take.restype = _WHOLE
        self._library.take.argtypes = [ctypes.POINTER(_Loop), _HANDLES, _HANDLES, _WHOLE, _WHOLE]
        self._states, nothing = form.packing.vectors, [part.contiguous() for part in flat(form.pre_drawn)]
        after = len(step.examples) - len(step.constants)
        self._read_at = [part.clone() for part in step.examples[after - len(form.draws) : after]]
        self._given = [part.clone() for part in nothing]
        self._fixed = Handles(program, [*self._read_at, *step.constants])
        self._of_given, self._of_nothing = Handles(program, self._given), Handles(program, nothing)
        self._adapted: Vectors | None = None
        outputs, others = self._states + form.info_packing.vectors, len(step.examples) - self._states
        self._state = (_HANDLE * self._states)()
        weakref.finalize(self, program.drop, self._state).atexit = False
        self._draws = (_Drawn * len(form.draws))()
        for drawn, place in zip(self._draws, self._read_at, strict=True):
            drawn.read_at, drawn.bytes = place.data_ptr(), size_of(place)
        ends = (-1, 0, 0) if form.ends is None else (self._states + form.ends.vector, form.ends.first, form.ends.end)
        self._loop = _Loop(
            torch=program.interface,
            program=program.container,
            states=self._states,
            others=others,
            outputs=outputs,
            drawn=len(form.draws),
            draws=self._draws,
            state=self._state,
            taken=(_HANDLE * (self._states + others))(),
            returned=(_HANDLE * outputs)(),
            **dict(zip(("ends", "ends_from", "ends_to"), ends, strict=True)),
        )

    def vectors(self) -> Vectors:
        """Return the vectors of the state at the end of the block."""
        vectors = [torch.empty_like(part) for part in self.form.vectors]
        for vector, handle in zip(vectors, self._state, strict=True):
            ctypes.memmove(vector.data_ptr(), self._program.address(handle), size_of(vector))
        return vectors

    def _bind(self) -> None:
        # The first row of the states is the one before all steps.
        matrices = [*enumerate(matrix[1:] for matrix in self.states.matrices)]
        matrices += enumerate(self.infos.matrices, self._states)
        kept = [_Kept(output, size_of(matrix[0]), matrix.data_ptr()) for output, matrix in matrices]
        self._loop.kept, self._loop.rows = len(kept), (_Kept * len(kept))(*kept)

    def _set_state(self, vectors: Vectors) -> None:
        handles = [self._program.handle(vector) for vector in vectors]
        self._program.drop(self._state)
        self._state[:] = handles
        # Keep them as long as a program returns some of them unchanged.
        self._placed = vectors

    def _set_inputs(self, given: Vectors, adapted: Vectors) -> None:
        for held, part in zip(self._given, given, strict=True):
            held.copy_(part)
        if adapted is not self._adapted:
            self._adapted, self._of_adapted = adapted, Handles(self._program, adapted)
            self._first, self._later = (
                _joined(drawn, self._of_adapted, self._fixed) for drawn in (self._of_given, self._of_nothing)
            )

    def _run(self, numbers: list[Tensor], first: bool, steps: int) -> tuple[int, bool]:
        for drawn, part in zip(self._draws, numbers, strict=True):
            drawn.numbers, drawn.stride = part.data_ptr(), part.stride(0) * part.element_size()
        inputs = self._first if first else self._later
        taken = self._library.take(ctypes.byref(self._loop), inputs, self._later, self.taken, steps)
        if taken < 0:
            raise RuntimeError("The compiled step has failed.")
        return taken, bool(self._loop.ended)


def loop_library() -> ctypes.CDLL:
    """Return the library of step_loop.cpp."""
    library = cpp.library(_SOURCE, [_HEADER])
    if library is None:
        raise OSError("step_loop.cpp could not be compiled.")
    return library


def _joined(*parts: Handles) -> ctypes.Array:
    handles = [handle for part in parts for handle in part.array]
    return (_HANDLE * len(handles))(*handles)
