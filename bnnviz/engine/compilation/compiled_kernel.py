"""Take steps by a compiled program, or around one in C++, in the place of `Sampler.step`.

Between the steps of a block a state stays in the vectors that the program takes and returns. Only what somebody asks of
it is made of them: of a step of a small network that takes as long as the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch import Tensor

from bnnviz.engine.compilation.packing import PackedPlace, Stacked, StepRows, field_names
from bnnviz.engine.compilation.stretch import CalledStretch, LoopedStretch, Vectors
from bnnviz.engine.compilation.tracing import StepForm, filled, moving_part
from bnnviz.samplers import Sampler
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import builder, flat


class StepLoop(Protocol):
    """A loop over steps, of which at least a part is compiled."""

    def stretch(self, rng: RandomNumbers, vectors: Vectors, steps: int) -> LoopedStretch:
        """Return the stretch of up to so many steps that begins with a state."""


class CompiledKernel:
    """A compiled step."""

    is_native = False

    def __init__(
        self,
        sampler: Sampler,
        form: StepForm,
        code: Callable[[Vectors], Vectors] | None,
        loop: Callable[[PackedPlace | None, Vectors], StepLoop] | None = None,
    ) -> None:
        self._sampler, self._form, self._code = sampler, form, code
        self._state: Any = None
        self._vectors: Vectors = []
        self._adaptation, self._adapted = None, []
        self._info = builder(form.info)
        self._nothing = [part.contiguous() for part in flat(form.pre_drawn)]
        names = field_names(form.info)
        self._ends = None if sampler.traits.ends is None else form.info_packing.places[names.index(sampler.traits.ends)]
        self._loop = None if loop is None else loop(self._ends, self._nothing)

    def step(self, rng: RandomNumbers, state: Any) -> tuple[Any, Any]:
        """Return the next state and what happened."""
        step_batch = self.take(rng, state, 1)
        return step_batch.after, step_batch.infos[0]

    def take(self, rng: RandomNumbers, state: Any, steps: int, first_step: int = 0, learns: bool = False) -> StepBatch:
        """Take some steps, in the warm-up with what they teach, up to its end."""
        vectors = self._vectors if state is self._state else self._taken_over(state)
        adapted, adaptation = self._adapted_to(state), getattr(state, "adaptation", None)
        # What is drawn beforehand, and what is learnt, may depend on each step.
        most = 1 if self._ends is None and (self._nothing or learns) else steps
        if self._loop is None or (most == 1 and self._code is not None):
            stretch = CalledStretch(self._form, self._code, self._ends, self._nothing, rng, vectors)
        else:
            stretch = self._loop.stretch(rng, vectors, steps)
        adaptations, outlines, ended = [], {}, True
        while stretch.taken < steps:
            first, given = stretch.taken, self._nothing
            if ended and self._nothing:
                outlines[first] = self._outline(stretch.states[first], adaptation)
                given = self._given(rng, outlines[first])
            ended = stretch.advance(given, adapted, min(most, steps - first))
            adaptations += [adaptation] * (stretch.taken - first)
            if learns and ended:
                after = self._learnt(rng, stretch, adaptation)
                adapted, adaptation = self._adapted_to(after), after.adaptation
                if self._sampler.ends_warmup(after):
                    break
        self._vectors = stretch.vectors()
        self._state, count = self._state_of(self._vectors, adaptation), stretch.taken
        states, told = stretch.states, stretch.told
        return PackedStepBatch(
            _Made(lambda at: self._outline(states[at], adaptations[at]), count, outlines),
            _Made(lambda at: self._told(told[at]), count, {}),
            self._state,
            first_step,
            form=self._form,
            states=states,
            told=told,
        )

    def _learnt(self, rng: RandomNumbers, stretch: CalledStretch | LoopedStretch, adaptation: Any) -> Any:
        """Return the state after the last step of a stretch with what it teaches, from which the stretch goes on."""
        before, said = stretch.states[stretch.taken - 1], stretch.told[stretch.taken - 1]
        held = self._state_of(stretch.vectors(), adaptation)
        after = self._sampler.adapt(rng, self._outline(before, adaptation), held, self._told(said))
        parts = zip(flat(moving_part(held)), flat(moving_part(after)), strict=True)
        if any(one is not other for one, other in parts):
            stretch.place(self._taken_over(after))
        return after

    def _taken_over(self, state: Any) -> Vectors:
        return [vector.contiguous() for vector in self._form.packing.packed(moving_part(state))]

    def _adapted_to(self, state: Any) -> Vectors:
        if self._form.adapts and state.adaptation is not self._adaptation:
            self._adaptation = state.adaptation
            self._adapted = [number.contiguous() for number in flat(self._sampler.adaptation_inputs(state.adaptation))]
        return self._adapted

    def _given(self, rng: RandomNumbers, outline: Any) -> Vectors:
        drawn = self._sampler.pre_draw(rng, outline)
        return [part.contiguous() for part in filled(drawn, self._form.pre_drawn)]

    def _state_of(self, vectors: Vectors, adaptation: Any) -> Any:
        return _with(self._form.packing.state(vectors), adaptation)

    def _outline(self, vectors: Vectors, adaptation: Any) -> Any:
        return _with(self._form.packing.outline(vectors), adaptation)

    def _told(self, vectors: Vectors) -> Any:
        return self._info(self._form.info_packing.unpacked(vectors))


class PackedStepBatch(StepBatch):
    """A few consecutive steps that a compiled program took; states and what happened are made when they are asked for.

    States between the steps have those parts alone that their sampler says (`Sampler.outline`).
    """

    def __init__(self, *args: Any, form: StepForm, states: Stacked | StepRows, told: Stacked | StepRows) -> None:
        super().__init__(*args)
        self._form, self._states, self._told = form, states, told

    def column(self, name: str) -> Tensor:
        """Return what the steps' infos say by this name, (steps, chains)."""
        return self._told.column(self._form.info_packing.places[field_names(self._form.info).index(name)])

    def history(self, name: str) -> Tensor:
        """Return a part of the states by its name, before each step and after the last, (steps + 1, chains, ...)."""
        return self._states.column(self._form.packing.place(name))


class _Made(Sequence[Any]):
    """A sequence whose elements are made when they are asked for, and kept."""

    def __init__(self, make: Callable[[int], Any], count: int, made: dict[int, Any]) -> None:
        self._make, self._count, self._made = make, count, made

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
