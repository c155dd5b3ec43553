"""Take steps with a compiled loop instead of `Sampler.step`.

Between the steps of a block the state stays in the vectors of the loop. States and infos are built on demand only, as
this takes as long as the arithmetic of a step of a small network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from bnnviz.engine.compilation.packing import StepRows, field_names
from bnnviz.engine.compilation.step_loop import StepLoop, Vectors
from bnnviz.engine.compilation.tracing import StepForm, filled, moving_part
from bnnviz.samplers import Sampler
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import builder, flat


class CompiledKernel:
    """The steps of a sampler by a compiled loop."""

    def __init__(self, sampler: Sampler, loop: StepLoop, is_native: bool = False) -> None:
        self.is_native = is_native
        self._sampler, self._loop, self._form = sampler, loop, loop.form
        self._state: Any = None
        self._vectors: Vectors = []
        self._adaptation, self._adapted = None, []
        self._info = builder(self._form.info)
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
        loop.begin(rng, self._vectors if continues else self._packed(state), steps, continues)
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
        self._vectors = loop.vectors()
        self._state, count = self._state_of(self._vectors, adaptation), loop.taken
        states, infos = loop.states, loop.infos
        return PackedStepBatch(
            _Made(lambda at: self._outline(states[at], adaptations[at]), count),
            _Made(lambda at: self._info_of(infos[at]), count),
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
        held = self._state_of(loop.vectors(), adaptation)
        after = self._sampler.adapt(rng, self._outline(before, adaptation), held, self._info_of(info))
        parts = zip(flat(moving_part(held)), flat(moving_part(after)), strict=True)
        if any(one is not other for one, other in parts):
            loop.place(self._packed(after))
        return after

    def _packed(self, state: Any) -> Vectors:
        return [vector.contiguous() for vector in self._form.packing.packed(moving_part(state))]

    def _adapted_to(self, state: Any) -> Vectors:
        if self._form.adapts and state.adaptation is not self._adaptation:
            self._adaptation = state.adaptation
            self._adapted = [number.contiguous() for number in flat(self._sampler.adaptation_inputs(state.adaptation))]
        return self._adapted

    def _state_of(self, vectors: Vectors, adaptation: Any) -> Any:
        return _with(self._form.packing.state(vectors), adaptation)

    def _outline(self, vectors: Sequence[Tensor], adaptation: Any) -> Any:
        return _with(self._form.packing.outline(vectors), adaptation)

    def _info_of(self, vectors: Vectors) -> Any:
        return self._info(self._form.info_packing.unpacked(vectors))


class PackedStepBatch(StepBatch):
    """Steps of a compiled loop, with states and infos on demand; states between have the parts in `Sampler.outline`."""

    def __init__(self, *args: Any, form: StepForm, states: StepRows, infos: StepRows) -> None:
        super().__init__(*args)
        self._form, self._states, self._infos = form, states, infos

    def column(self, name: str) -> Tensor:
        """Return a field of the steps' infos, (steps, chains)."""
        return self._infos.column(self._form.info_packing.places[field_names(self._form.info).index(name)])

    def history(self, name: str) -> Tensor:
        """Return a part of the states, before each step and after the last, (steps + 1, chains, ...)."""
        return self._states.column(self._form.packing.place(name))


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
