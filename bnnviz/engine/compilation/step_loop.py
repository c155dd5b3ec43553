"""Take blocks of steps in compiled loops, with a row per step and no Python between steps."""

from __future__ import annotations

import ctypes
import math
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bnnviz import cpp
from bnnviz.engine.compilation.state_parts import StepRows, field_names
from bnnviz.engine.compilation.torch_internals import Handles, Interface, Program, size_of
from bnnviz.engine.compilation.tracing import StepForm, TracedProgram, filled, moving_part
from bnnviz.samplers import Sampler
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import flat, rebuilt

Tensors = list[Tensor]
_FIRST = 8  # steps with random numbers after the end of a move, then repeatedly doubled
_SOURCE = Path(__file__).with_name("step_loop.cpp")
_HEADER = Path(__file__).with_name("program.hpp")
_WHOLE, _HANDLE = ctypes.c_int64, ctypes.c_void_p
_HANDLES = ctypes.POINTER(_HANDLE)


class StepLoop(ABC):
    """A block of steps, started by `begin` and continued by `advance`."""

    def __init__(self, form: StepForm) -> None:
        self.form = form
        self._asked, self._info = form.parts.tensors[: form.parts.outlined], flat(form.info)
        self._given = [part.contiguous().clone() for part in flat(form.pre_drawn)]
        self._adapted: Tensors | None = None
        laws = {(draw.law, draw.dtype) for draw in form.draws}
        # Uniform numbers come from the generator one by one, so that drawing many steps together gives the same
        # numbers.
        self._together = len(laws) == 1 and laws.pop()[0] == "uniform"
        self._sizes = [math.prod(draw.shape) for draw in form.draws]

    def begin(self, rng: RandomNumbers, state: Tensors, steps: int, continues: bool = False) -> None:
        """Begin a block of at most ``steps`` steps from a state, or from the end of the last block."""
        self._rng, self._ahead = rng, _FIRST
        self._makers = [rng.maker(draw) for draw in self.form.draws]
        self.states = StepRows([part.new_empty((steps + 1, *part.shape)) for part in self._asked], 1)
        self.infos = StepRows([part.new_empty((steps, *part.shape)) for part in self._info], 0)
        self._bind()
        if not continues:
            self._set_state(state)
        self._keep(state)

    @property
    def taken(self) -> int:
        """Number of steps taken in the block."""
        return len(self.infos)

    def place(self, state: Tensors) -> None:
        """Continue from another state."""
        self._set_state(state)
        self._keep(state)

    def _keep(self, state: Tensors) -> None:
        """Write a state into its row."""
        for table, part in zip(self.states.tables, state, strict=False):
            table[self.taken] = part

    def advance(self, given: Tensors, adapted: Tensors, most: int) -> bool:
        """Take at most ``most`` steps, up to one that ends a move; return whether one has, or may have."""
        for held, part in zip(self._given, given, strict=True):
            held.copy_(part)
        if adapted is not self._adapted:
            self._adapted = adapted
            self._set_adapted(adapted)
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
    def state(self) -> Tensors:
        """Return the tensors of the state at the end of the block."""

    @abstractmethod
    def _bind(self) -> None:
        """Make steps write into the rows of a new block."""

    @abstractmethod
    def _set_state(self, state: Tensors) -> None:
        """Make the next step start at a state."""

    @abstractmethod
    def _set_adapted(self, adapted: Tensors) -> None:
        """Set the adapted values for the next steps."""

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
        *((name, _WHOLE) for name in ("ends", "ends_bytes", "ended")),
    ]


class ProgramLoop(StepLoop):
    """Steps compiled as a whole."""

    def __init__(self, form: StepForm, program: Program, step: TracedProgram) -> None:
        super().__init__(form)
        self._program, self._library = program, loop_library()
        self._library.take.restype = _WHOLE
        self._library.take.argtypes = [ctypes.POINTER(_Loop), _HANDLES, _HANDLES, _WHOLE, _WHOLE]
        self._states, nothing = len(form.parts.tensors), [part.contiguous() for part in flat(form.pre_drawn)]
        after = len(step.examples) - len(step.constants)
        self._read_at = [part.clone() for part in step.examples[after - len(form.draws) : after]]
        self._fixed = Handles(program, [*self._read_at, *step.constants])
        self._of_given, self._of_nothing = Handles(program, self._given), Handles(program, nothing)
        outputs, others = self._states + len(self._info), len(step.examples) - self._states
        self._state = (_HANDLE * self._states)()
        weakref.finalize(self, program.drop, self._state).atexit = False
        self._draws = (_Drawn * len(form.draws))()
        for drawn, place in zip(self._draws, self._read_at, strict=True):
            drawn.read_at, drawn.bytes = place.data_ptr(), size_of(place)
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
            ends=-1 if form.ends is None else self._states + form.ends,
            ends_bytes=0 if form.ends is None else size_of(self._info[form.ends]),
        )

    def state(self) -> Tensors:
        """Return the tensors of the state at the end of the block."""
        state = [torch.empty_like(part) for part in self.form.parts.tensors]
        for part, handle in zip(state, self._state, strict=True):
            ctypes.memmove(part.data_ptr(), self._program.address(handle), size_of(part))
        return state

    def _bind(self) -> None:
        # The first row of the states is the one before all steps.
        tables = [*enumerate(table[1:] for table in self.states.tables)]
        tables += enumerate(self.infos.tables, self._states)
        kept = [_Kept(output, size_of(table[0]), table.data_ptr()) for output, table in tables]
        self._loop.kept, self._loop.rows = len(kept), (_Kept * len(kept))(*kept)

    def _set_state(self, state: Tensors) -> None:
        handles = [self._program.handle(part) for part in state]
        self._program.drop(self._state)
        self._state[:] = handles
        # Keep them as long as a program returns some of them unchanged.
        self._placed = state

    def _set_adapted(self, adapted: Tensors) -> None:
        self._of_adapted = Handles(self._program, adapted)
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


class CompiledKernel:
    """The steps of a sampler by a compiled loop, instead of `Sampler.step`; states and infos are built on demand."""

    def __init__(self, sampler: Sampler, loop: StepLoop, is_native: bool = False) -> None:
        self.is_native = is_native
        self._sampler, self._loop, self._form = sampler, loop, loop.form
        self._state: Any = None  # after the last block, and its tensors
        self._parts: Tensors = []
        self._adaptation, self._adapted = None, []
        self._nothing = [part.contiguous() for part in flat(self._form.pre_drawn)]

    def step(self, rng: RandomNumbers, state: Any) -> tuple[Any, Any]:
        """Return the next state and what happened."""
        step_batch = self.take(rng, state, 1)
        return step_batch.after, step_batch.infos[0]

    def take(self, rng: RandomNumbers, state: Any, steps: int, first_step: int = 0, learns: bool = False) -> StepBatch:
        """Take some steps; in the warm-up adapt after each step until its end."""
        loop = self._loop
        continues = state is self._state
        # If a step raises, the loop has another state than this one.
        self._state = None
        loop.begin(rng, self._parts if continues else self._parts_of(state), steps, continues)
        adapted, adaptation = self._adapted_to(state), getattr(state, "adaptation", None)
        # The inputs drawn beforehand and the adapted values may depend on each step.
        most = 1 if self._form.ends is None and (self._nothing or learns) else steps
        adaptations, ended = [], True
        while loop.taken < steps:
            first, given = loop.taken, self._nothing
            if ended and self._nothing:
                drawn = self._sampler.pre_draw(rng, self._outline(loop.states.view(first), adaptation))
                given = [part.contiguous() for part in filled(drawn, self._form.pre_drawn)]
            ended = loop.advance(given, adapted, min(most, steps - first))
            adaptations += [adaptation] * (loop.taken - first)
            if learns and ended:
                after = self._learned(rng, adaptation)
                adapted, adaptation = self._adapted_to(after), after.adaptation
                if self._sampler.ends_warmup(after):
                    break
        self._parts = loop.state()
        self._state, count = self._state_of(self._parts, adaptation), loop.taken
        states, infos = loop.states, loop.infos
        return CompiledStepBatch(
            _Made(lambda at: self._outline(states[at], adaptations[at]), count),
            _Made(lambda at: rebuilt(self._form.info, iter(infos[at])), count),
            self._state,
            first_step,
            form=self._form,
            states=states,
            infos=infos,
        )

    def _learned(self, rng: RandomNumbers, adaptation: Any) -> Any:
        """Return the adapted state after the last step, from which the block continues."""
        loop = self._loop
        before, info = loop.states[loop.taken - 1], loop.infos[loop.taken - 1]
        held = self._state_of(loop.state(), adaptation)
        after = self._sampler.adapt(rng, self._outline(before, adaptation), held, rebuilt(self._form.info, iter(info)))
        parts = zip(flat(moving_part(held)), flat(moving_part(after)), strict=True)
        if any(one is not other for one, other in parts):
            loop.place(self._parts_of(after))
        return after

    def _parts_of(self, state: Any) -> Tensors:
        return [part.contiguous() for part in self._form.parts.of(moving_part(state))]

    def _adapted_to(self, state: Any) -> Tensors:
        if self._form.adapts and state.adaptation is not self._adaptation:
            self._adaptation = state.adaptation
            self._adapted = [number.contiguous() for number in flat(self._sampler.adaptation_inputs(state.adaptation))]
        return self._adapted

    def _state_of(self, parts: Tensors, adaptation: Any) -> Any:
        return _with(self._form.parts.state(parts), adaptation)

    def _outline(self, parts: Tensors, adaptation: Any) -> Any:
        return _with(self._form.parts.outline(parts), adaptation)


class CompiledStepBatch(StepBatch):
    """Steps of a compiled loop, with states and infos on demand; states between have the parts in `Sampler.outline`."""

    def __init__(self, *args: Any, form: StepForm, states: StepRows, infos: StepRows) -> None:
        super().__init__(*args)
        self._form, self._states, self._infos = form, states, infos

    def column(self, name: str) -> Tensor:
        """Return a field of the steps' infos, (steps, chains)."""
        return self._infos.column(field_names(self._form.info).index(name))

    def history(self, name: str, number: int = 0) -> Tensor:
        """Return a tensor of a field of the states, before each step and after the last, (steps + 1, ...)."""
        return self._states.column(self._form.parts.place(name) + number)


class _Made(Sequence[Any]):
    """A sequence whose elements are built on demand and kept."""

    def __init__(self, make: Callable[[int], Any], count: int) -> None:
        self._make, self._count = make, count
        self._made: dict[int, Any] = {}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[number] for number in range(len(self))[at]]
        number = range(len(self))[at]
        if number not in self._made:
            self._made[number] = self._make(number)
        return self._made[number]


def _with(moving: Any, adaptation: Any) -> Any:
    return moving._replace(adaptation=adaptation) if "adaptation" in moving._fields else moving
