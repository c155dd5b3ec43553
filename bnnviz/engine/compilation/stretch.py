"""Take a stretch of steps by a compiled program: called from Python for each, or in a loop that is compiled too."""

from __future__ import annotations

import ctypes
import math
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from bnnviz.engine.compilation.native_program import Drawn, Handles, Kept, NativeProgram, drop_all, size_of
from bnnviz.engine.compilation.packing import PackedPlace, Stacked, StepRows
from bnnviz.engine.compilation.tracing import StepForm, TracedStep
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import flat

Vectors = list[Tensor]
_FIRST = 8  # steps that are drawn for after a move has ended; then twice as many, again and again


class CalledStretch:
    """Steps for each of which the program is called."""

    def __init__(
        self,
        trace: TracedStep,
        code: Callable[[Vectors], Vectors],
        ends: PackedPlace | None,
        nothing: Vectors,
        rng: RandomNumbers,
        vectors: Vectors,
    ) -> None:
        self._trace, self._code, self._ends, self._nothing = trace, code, ends, nothing
        self._draws = [rng.maker(draw) for draw in trace.draws]
        self._vectors = vectors
        self.states, self.told = Stacked([vectors[: trace.packing.outlined]]), Stacked([])

    @property
    def taken(self) -> int:
        """How many steps have been taken."""
        return len(self.told)

    def vectors(self) -> Vectors:
        """Return those of the state that it has led to."""
        return self._vectors

    def place(self, vectors: Vectors) -> None:
        """Go on from another state."""
        self._vectors = vectors
        self.states.rows[-1] = vectors[: self._trace.packing.outlined]

    def advance(self, given: Vectors, adapted: Vectors, most: int) -> bool:
        """Take up to so many steps, up to one that ends a move; return whether one has, or may have."""
        count, outlined = self._trace.packing.vectors, self._trace.packing.outlined
        for _ in range(most):
            drawn = [draw() for draw in self._draws]
            done = self._code([*self._vectors, *given, *adapted, *drawn, *self._trace.constants])
            self._vectors, said, given = done[:count], done[count:], self._nothing
            self.states.rows.append(self._vectors[:outlined])
            self.told.rows.append(said)
            if self._ends is not None and _has_ended(said, self._ends):
                return True
        return self._ends is None


def _has_ended(said: Vectors, place: PackedPlace) -> bool:
    # As a list: a few numbers are looked at in the time that torch takes to be called.
    return True in said[place.vector].tolist()[place.first : place.end]


class NativeLoop:
    """What stays the same from stretch to stretch where the loop over the steps is compiled too."""

    def __init__(self, program: NativeProgram, trace: TracedStep, ends: PackedPlace | None, nothing: Vectors) -> None:
        self.program, self.trace, self.ends = program, trace, ends
        self.like = trace.vectors
        after = len(trace.examples) - len(trace.constants)
        self.read_at = [part.clone() for part in trace.examples[after - len(trace.draws) : after]]
        self._given = [part.clone() for part in nothing]
        self._fixed = [Handles(program, part) for part in (self._given, nothing, [*self.read_at, *trace.constants])]
        self._adapted: Vectors | None = None
        self._others: list[Others] = []
        laws = {(draw.law, draw.dtype) for draw in trace.draws}
        #: Uniform numbers come from the generator one by one: those of many steps together are those of each in turn.
        self.together = len(laws) == 1 and laws.pop()[0] == "uniform"

    def stretch(self, rng: RandomNumbers, vectors: Vectors, steps: int) -> NativeStretch:
        """Return the stretch of up to so many steps that begins with a state."""
        return NativeStretch(self, rng, vectors, steps)

    def others(self, given: Vectors, adapted: Vectors) -> list[Others]:
        """Return the inputs beside the state, of a step for which something was drawn beforehand and of those after it.

        Parameters
        ----------
        given : list of Tensor
            What was drawn; it is copied.
        adapted : list of Tensor
            What the warm-up has learnt.
        """
        for held, part in zip(self._given, given, strict=True):
            held.copy_(part)
        if adapted is not self._adapted:
            self._adapted, learnt = adapted, Handles(self.program, adapted)
            *each, fixed = self._fixed
            self._others = [Others([drawn, learnt, fixed]) for drawn in each]
        return self._others

    def drawn(self, rng: RandomNumbers, steps: int) -> list[Tensor]:
        """Draw the random numbers of so many steps, (steps, numbers) for each request of a step."""
        draws = self.trace.draws
        if self.together:
            sizes = [math.prod(draw.shape) for draw in draws]
            return list(rng.uniform((steps, sum(sizes)), draws[0].dtype).split_with_sizes(sizes, 1))
        makers = [rng.maker(draw) for draw in draws]
        each = [[make().flatten() for make in makers] for _ in range(steps)]
        return [torch.stack(rows) for rows in zip(*each, strict=True)]


class LoopedStretch(ABC):
    """Steps that are taken in a loop, as those of `CalledStretch` are, with a row for each."""

    def __init__(self, ends: PackedPlace | None, states: StepRows, told: StepRows) -> None:
        self._ends, self._ahead = ends, _FIRST
        self.states, self.told = states, told

    @property
    def taken(self) -> int:
        """How many steps have been taken."""
        return len(self.told)

    @abstractmethod
    def vectors(self) -> Vectors:
        """Return those of the state that it has led to."""

    def place(self, vectors: Vectors) -> None:
        """Go on from another state."""
        self._set_out(vectors)
        for matrix, vector in zip(self.states.matrices, vectors, strict=False):
            matrix[self.taken] = vector

    def advance(self, given: Vectors, adapted: Vectors, most: int) -> bool:
        """Take up to so many steps, up to one that ends a move, as `CalledStretch.advance` does."""
        self._take_up(given, adapted)
        left, first = most, True
        while left:
            taken = self._take(first, left if self._ends is None else min(left, self._ahead))
            self.states.count += taken
            self.told.count += taken
            left -= taken
            first, self._ahead = False, 2 * self._ahead
            if self._ends is None:
                continue
            if _has_ended([matrix[self.taken - 1] for matrix in self.told.matrices], self._ends):
                self._ahead = _FIRST
                return True
        return self._ends is None

    @abstractmethod
    def _set_out(self, vectors: Vectors) -> None:
        """Have the next step begin at a state."""

    @abstractmethod
    def _take_up(self, given: Vectors, adapted: Vectors) -> None:
        """Have the next steps read what was drawn beforehand, and what has been learnt."""

    @abstractmethod
    def _take(self, first: bool, steps: int) -> int:
        """Draw for up to so many steps, and take them, up to one that ends a move; return how many."""


def take_drawn(
    rng: RandomNumbers,
    drawn: Callable[[RandomNumbers, int], list[Tensor]],
    run: Callable[[list[Tensor]], int],
    steps: int,
    ends: bool,
) -> int:
    """Draw the random numbers of some steps together, and take the steps; return how many these were.

    Parameters
    ----------
    drawn : callable
        From these and a number of steps to the random numbers of that many, (steps, numbers) for each request.
    """
    generator = rng.generator
    before = generator.get_state() if ends else None
    taken = run(drawn(rng, steps))
    if taken < steps:
        # What comes next is drawn after the numbers of these steps.
        generator.set_state(before)
        drawn(rng, taken)
    return taken


class NativeStretch(LoopedStretch):
    """Steps that a compiled loop takes by calls of a program."""

    def __init__(self, loop: NativeLoop, rng: RandomNumbers, vectors: Vectors, steps: int) -> None:
        super().__init__(loop.ends, *rows_of(loop.trace, steps))
        self._loop, self._rng = loop, rng
        packing = loop.trace.packing
        self._state = (ctypes.c_void_p * packing.vectors)()
        weakref.finalize(self, drop_all, loop.program, self._state).atexit = False
        self.place(vectors)
        outputs = packing.vectors + len(self.told.matrices)
        kept = [
            # The states are those after a step, the first one is from before all steps.
            *(Kept(at, size, rows + size) for at, size, rows in _each(self.states)),
            *(Kept(packing.vectors + at, size, rows) for at, size, rows in _each(self.told)),
        ]
        ends = loop.ends and (packing.vectors + loop.ends.vector, loop.ends.first, loop.ends.end)
        self._draws = (Drawn * len(loop.read_at))()
        others = len(loop.trace.examples) - packing.vectors
        self._given = loop.program.loop(
            states=packing.vectors,
            others=others,
            outputs=outputs,
            drawn=len(loop.read_at),
            kept=len(kept),
            rows=(Kept * len(kept))(*kept),
            draws=self._draws,
            state=self._state,
            taken=(ctypes.c_void_p * (packing.vectors + others))(),
            returned=(ctypes.c_void_p * outputs)(),
            **dict(zip(("ends", "ends_from", "ends_to"), ends or (-1, 0, 0), strict=True)),
        )

    def vectors(self) -> Vectors:
        """Return those of the state that it has led to."""
        vectors = [torch.empty_like(part) for part in self._loop.like]
        for vector, handle in zip(vectors, self._state, strict=True):
            ctypes.memmove(vector.data_ptr(), self._loop.program.address(handle), size_of(vector))
        return vectors

    def _set_out(self, vectors: Vectors) -> None:
        handles = [self._loop.program.handle(vector) for vector in vectors]
        drop_all(self._loop.program, self._state)
        self._state[:] = handles
        # They are read for as long as a program returns some of them as they are.
        self._placed = vectors

    def _take_up(self, given: Vectors, adapted: Vectors) -> None:
        self._first, self._later = self._loop.others(given, adapted)

    def _take(self, first: bool, steps: int) -> int:
        run = partial(self._run, first, steps)
        return take_drawn(self._rng, self._loop.drawn, run, steps, self._ends is not None)

    def _run(self, first: bool, steps: int, numbers: list[Tensor]) -> int:
        loop = self._loop
        for drawn, part, read_at in zip(self._draws, numbers, loop.read_at, strict=True):
            drawn.numbers, drawn.read_at = part.data_ptr(), read_at.data_ptr()
            drawn.stride, drawn.bytes = part.stride(0) * part.element_size(), size_of(read_at)
        inputs = self._first if first else self._later
        return loop.program.take_steps(self._given, inputs.array, self._later.array, self.taken, steps)


class Others:
    """Handles of all inputs beside the state, in an array."""

    def __init__(self, parts: list[Handles]) -> None:
        self._parts = parts
        handles = [handle for part in parts for handle in part.array]
        self.array = (ctypes.c_void_p * len(handles))(*handles)


def rows_of(form: StepForm, steps: int) -> tuple[StepRows, StepRows]:
    """Return rows for what is asked of the states of so many steps, the first one included, and for what happens."""
    asked = form.vectors[: form.packing.outlined]
    told = form.info_packing.packed(flat(form.info))
    states = StepRows([part.new_empty((steps + 1, *part.shape)) for part in asked], 1)
    return states, StepRows([part.new_empty((steps, *part.shape)) for part in told], 0)


def _each(rows: StepRows) -> Iterator[tuple[int, int, int]]:
    """Walk the matrices of rows: number, bytes of a row, and where the first one lies."""
    for at, matrix in enumerate(rows.matrices):
        yield at, size_of(matrix[0]), matrix.data_ptr()
