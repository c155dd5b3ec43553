"""Take steps by a compiled program, in the place of `Sampler.step`.

Between the steps of a block a state stays in the vectors that the program takes and returns. Only what somebody asks of
it is made of them: of a step of a small network that takes as long as the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from bnnviz.engine.compilation.packing import Stacked, field_names
from bnnviz.engine.compilation.tracing import TracedStep, filled, moving_part
from bnnviz.samplers import Sampler
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import builder, flat

Vectors = list[Tensor]


class CompiledKernel:
    """A compiled step.

    Parameters
    ----------
    sampler : Sampler
        Whose step it is; it draws what depends on the state.
    trace : TracedStep
    code : callable
        From a list of tensors to a list of tensors.
    """

    def __init__(self, sampler: Sampler, trace: TracedStep, code: Callable[[Vectors], Vectors]) -> None:
        self._sampler, self._trace, self._code = sampler, trace, code
        self._state: Any = None
        self._vectors: Vectors = []
        self._adaptation, self._adapted = None, []
        self._info = builder(trace.info)
        self._nothing = [part.contiguous() for part in flat(trace.pre_drawn)]
        names = field_names(trace.info)
        self._ends = None if sampler.ends is None else trace.info_packing.places[names.index(sampler.ends)]

    def step(self, rng: RandomNumbers, state: Any) -> tuple[Any, Any]:
        """Return the next state and what happened."""
        step_batch = self.take(rng, state, 1)
        return step_batch.after, step_batch.infos[0]

    def take(self, rng: RandomNumbers, state: Any, steps: int, first_step: int = 0, learns: bool = False) -> StepBatch:
        """Take some steps, in the warm-up with what they teach, up to its end.

        Parameters
        ----------
        rng : RandomNumbers
        state : Any
        steps, first_step : int
            How many, and the number of the first.
        learns : bool
            Whether this is the warm-up.
        """
        sampler, trace, code = self._sampler, self._trace, self._code
        packing, draws, constants = trace.packing, [rng.maker(draw) for draw in trace.draws], trace.constants
        count, outlined = packing.vectors, packing.outlined
        vectors = self._vectors if state is self._state else self._taken_over(state)
        adapted, adaptation = self._adapted_to(state), getattr(state, "adaptation", None)
        before, told, adaptations, outlines = [], [], [], []
        ended = True
        for _ in range(steps):
            before.append(vectors[:outlined])
            adaptations.append(adaptation)
            outline = self._outline(before[-1], adaptation) if ended and self._nothing else None
            given = self._nothing if outline is None else self._given(rng, outline)
            outlines.append(outline)
            done = code([*vectors, *given, *adapted, *[draw() for draw in draws], *constants])
            vectors, said = done[:count], done[count:]
            told.append(said)
            ended = self._has_ended(said)
            if learns and ended:
                vectors, after = self._learnt(rng, before[-1], vectors, adaptation, said)
                adapted, adaptation = self._adapted_to(after), after.adaptation
                if sampler.ends_warmup(after):
                    break
        self._vectors, self._state = vectors, self._state_of(vectors, adaptation)
        return PackedStepBatch(
            _Made(lambda at: self._outline(before[at], adaptations[at]), outlines),
            _Made(lambda at: self._told(told[at]), [None] * len(told)),
            self._state,
            first_step,
            trace=trace,
            states=[*before, vectors[:outlined]],
            told=told,
        )

    def _has_ended(self, said: Vectors) -> bool:
        """Return whether a step has ended a chain's move, or may have."""
        place = self._ends
        # As a list: a few numbers are looked at in the time that torch takes to be called.
        return place is None or True in said[place.vector].tolist()[place.first : place.end]

    def _learnt(
        self, rng: RandomNumbers, before: Vectors, vectors: Vectors, adaptation: Any, said: Vectors
    ) -> tuple[Vectors, Any]:
        """Return vectors and state after a step of the warm-up with what it teaches."""
        held = self._state_of(vectors, adaptation)
        after = self._sampler.adapt(rng, self._outline(before, adaptation), held, self._told(said))
        parts = zip(flat(moving_part(held)), flat(moving_part(after)), strict=True)
        moved = any(one is not other for one, other in parts)
        return self._taken_over(after) if moved else vectors, after

    def _taken_over(self, state: Any) -> Vectors:
        return [vector.contiguous() for vector in self._trace.packing.packed(moving_part(state))]

    def _adapted_to(self, state: Any) -> Vectors:
        if self._trace.adapts and state.adaptation is not self._adaptation:
            self._adaptation = state.adaptation
            self._adapted = [number.contiguous() for number in flat(self._sampler.adaptation_inputs(state.adaptation))]
        return self._adapted

    def _given(self, rng: RandomNumbers, outline: Any) -> Vectors:
        drawn = self._sampler.pre_draw(rng, outline)
        return [part.contiguous() for part in filled(drawn, self._trace.pre_drawn)]

    def _state_of(self, vectors: Vectors, adaptation: Any) -> Any:
        return _with(self._trace.packing.state(vectors), adaptation)

    def _outline(self, vectors: Vectors, adaptation: Any) -> Any:
        return _with(self._trace.packing.outline(vectors), adaptation)

    def _told(self, vectors: Vectors) -> Any:
        return self._info(self._trace.info_packing.unpacked(vectors))


class PackedStepBatch(StepBatch):
    """A few consecutive steps that a compiled program took; states and what happened are made when they are asked for.

    States between the steps have those parts alone that their sampler says (`Sampler.outline`).
    """

    def __init__(self, *args: Any, trace: TracedStep, states: list[Vectors], told: list[Vectors]) -> None:
        super().__init__(*args)
        self._trace, self._states, self._told = trace, Stacked(states), Stacked(told)

    def column(self, name: str) -> Tensor:
        """Return what the steps' infos say by this name, (steps, chains)."""
        return self._told.column(self._trace.info_packing.places[field_names(self._trace.info).index(name)])

    def history(self, name: str) -> Tensor:
        """Return a part of the states by its name, before each step and after the last, (steps + 1, chains, ...)."""
        return self._states.column(self._trace.packing.place(name))


class _Made(Sequence[Any]):
    """A sequence whose elements are made when they are asked for, and kept."""

    def __init__(self, make: Callable[[int], Any], made: list[Any]) -> None:
        self._make, self._made = make, made

    def __len__(self) -> int:
        return len(self._made)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[number] for number in range(len(self))[at]]
        number = range(len(self))[at]
        if self._made[number] is None:
            self._made[number] = self._make(number)
        return self._made[number]


def _with(moving: Any, adaptation: Any) -> Any:
    return moving._replace(adaptation=adaptation) if "adaptation" in moving._fields else moving
