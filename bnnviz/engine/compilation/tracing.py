"""Trace a step as a program of tensors, with all values that may differ between runs as inputs."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from bnnviz.engine.compilation.lifting import lift_floats, lift_tensors
from bnnviz.engine.compilation.packing import PackedPlace, Packing, StatePacking, field_names
from bnnviz.engine.compilation.torch_internals import traced
from bnnviz.samplers import Sampler
from bnnviz.samplers.native import NativeStep
from bnnviz.samplers.random import Draw, PreDrawnNumbers, RandomNumbers, RecordedNumbers
from bnnviz.samplers.tree import flat, rebuilt

#: The usual reason why a step cannot be traced.
READS_ON_HOST = (
    "A forward or a density that reads a value on the host, by .item() or by an if on a tensor, is the usual cause."
)


@dataclass(frozen=True)
class StepForm:
    """Types and shapes of the inputs and outputs of a step."""

    vectors: list[Tensor]
    draws: list[Draw]
    adapts: bool
    pre_drawn: Any
    packing: StatePacking
    info: Any
    info_packing: Packing
    ends: PackedPlace | None


class TracedProgram(NamedTuple):
    """A traced function with examples of its inputs, constants last."""

    program: fx.GraphModule
    examples: list[Tensor]
    constants: list[Tensor]


def form_of(sampler: Sampler, state: Any) -> StepForm:
    """Return the form of a sampler's step, by taking it once."""
    sampler, moving = of_tensors(sampler), moving_part(state)
    rng = RecordedNumbers(torch.Generator(flat(state)[0].device).manual_seed(0))
    pre_drawn = sampler.pre_draw(rng, state)
    rng.draws.clear()
    _, info = sampler.kernel(rng, state, *pre_drawn)
    learned = sampler.adaptation_inputs(state.adaptation) if "adaptation" in state._fields else None
    ends = sampler.traits.ends
    packing, info_packing = StatePacking(sampler, moving), Packing(flat(info), ends is not None)
    place = None if ends is None else info_packing.places[field_names(info).index(ends)]
    vectors = [_own(vector) for vector in packing.packed(moving)]
    return StepForm(vectors, list(rng.draws), learned is not None, pre_drawn, packing, info, info_packing, place)


def trace(sampler: Sampler, state: Any, form: StepForm) -> TracedProgram:
    """Trace a sampler's step; settings are constants, and so are adapted values unless they are inputs."""
    sampler, packing = of_tensors(sampler), form.packing
    rng = RandomNumbers(torch.Generator(flat(state)[0].device).manual_seed(0))
    given = sampler.adaptation_inputs(state.adaptation) if form.adapts else ()
    drawn = [rng.make(draw) for draw in form.draws]

    def step(*numbers: Tensor) -> list[Tensor]:
        vectors, parts = numbers[: packing.vectors], iter(numbers[packing.vectors :])
        before, drawn, learned = packing.state(list(vectors)), rebuilt(form.pre_drawn, parts), rebuilt(given, parts)
        before = before._replace(adaptation=learned) if form.adapts else with_adaptation(before, state)
        after, info = sampler.kernel(PreDrawnNumbers(parts), before, *drawn)
        # The buffers of other inputs are overwritten before the next step, so the state must not share them.
        others = {id(number) for number in numbers[packing.vectors :]}
        moved = [part.clone() if id(part) in others else part for part in packing.packed(moving_part(after))]
        return [*moved, *form.info_packing.packed(flat(info))]

    return _program(step, (*form.vectors, *flat(form.pre_drawn), *flat(given), *drawn))


def trace_part(sampler: Sampler, native: NativeStep, state: Any) -> TracedProgram:
    """Trace the part of a step in C++ that evaluates the target."""
    reads, learned = native.reads(state), sampler.adaptation_inputs(state.adaptation)

    def part(*numbers: Tensor) -> list[Tensor]:
        return native.part(list(numbers[: len(reads)]), rebuilt(learned, iter(numbers[len(reads) :])))

    return _program(part, (*reads, *flat(learned)))


def _program(function: Any, inputs: tuple[Tensor, ...]) -> TracedProgram:
    # Copies: one tensor that occurs twice in this state would become one input.
    examples = [_own(number) for number in inputs]
    program = traced(function, examples)
    constants = [*lift_tensors(program), *lift_floats(program, examples[0].device)]
    program.recompile()
    return TracedProgram(program, [*examples, *constants], constants)


def _own(number: Tensor) -> Tensor:
    return number.clone(memory_format=torch.contiguous_format)


def of_tensors(sampler: Sampler) -> Sampler:
    """Return a copy of a sampler that reads no number on the host."""
    sampler = copy.copy(sampler)
    sampler.host_sync = False
    return sampler


def moving_part(state: Any) -> Any:
    """Return the parts of a state that a step may change: all but the adaptation."""
    return state._replace(adaptation=None) if "adaptation" in state._fields else state


def with_adaptation(moving: Any, state: Any) -> Any:
    """Return the changed parts of a state with its adaptation."""
    return moving._replace(adaptation=state.adaptation) if "adaptation" in moving._fields else moving


def filled(pre_drawn: Any, template: Any) -> list[Tensor]:
    """Return the tensors drawn beforehand; those of the template by default."""
    if pre_drawn is None:
        return flat(template)
    if isinstance(pre_drawn, Tensor):
        return [pre_drawn]
    return [tensor for parts in zip(pre_drawn, template, strict=True) for tensor in filled(*parts)]
