"""Trace a step: write down its operations as a program of tensors, with all that may differ between runs as inputs."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from bnnviz.engine.compilation.lifting import lift_floats, lift_tensors
from bnnviz.engine.compilation.packing import Packing, StatePacking
from bnnviz.samplers import Sampler
from bnnviz.samplers.native import NativeStep
from bnnviz.samplers.random import Draw, PreDrawnNumbers, RandomNumbers, RecordedNumbers
from bnnviz.samplers.tree import flat, rebuilt

#: Why most steps are no program of tensors.
READS_ON_HOST = (
    "A forward or a density that reads a value on the host, by .item() or by an if on a tensor, is the usual cause."
)


@dataclass(frozen=True)
class StepForm:
    """Hold what a step takes and returns, whatever takes it."""

    vectors: list[Tensor]
    draws: list[Draw]
    adapts: bool
    pre_drawn: Any
    packing: StatePacking
    info: Any
    info_packing: Packing


@dataclass(frozen=True)
class TracedStep(StepForm):
    """Hold the traced program of a step."""

    program: fx.GraphModule
    examples: list[Tensor]
    constants: list[Tensor]


def form_of(sampler: Sampler, state: Any) -> StepForm:
    """Return what the step of a sampler takes and returns; it is taken once, as `of_tensors` takes it."""
    sampler, moving = of_tensors(sampler), moving_part(state)
    rng = RecordedNumbers(torch.Generator(flat(state)[0].device).manual_seed(0))
    pre_drawn = sampler.pre_draw(rng, state)
    rng.draws.clear()
    _, info = sampler.kernel(rng, state, pre_drawn)
    learnt = sampler.adaptation_inputs(state.adaptation) if "adaptation" in state._fields else None
    packing, info_packing = StatePacking(sampler, moving), Packing(flat(info), sampler.traits.ends is not None)
    vectors = [_own(vector) for vector in packing.packed(moving)]
    return StepForm(vectors, list(rng.draws), learnt is not None, pre_drawn, packing, info, info_packing)


def trace(sampler: Sampler, state: Any) -> TracedStep:
    """Write down the step of a sampler: settings are constants, and what it has learnt unless that is an input."""
    form, sampler, device = form_of(sampler, state), of_tensors(sampler), flat(state)[0].device
    rng, packing = RandomNumbers(torch.Generator(device).manual_seed(0)), form.packing
    given = sampler.adaptation_inputs(state.adaptation) if form.adapts else ()
    # Copies: what is twice the same tensor in this state would be taken for one number in every state.
    drawn = [rng.make(draw) for draw in form.draws]
    examples = [_own(number) for number in (*form.vectors, *flat(form.pre_drawn), *flat(given), *drawn)]

    def step(*numbers: Tensor) -> list[Tensor]:
        vectors, parts = numbers[: packing.vectors], iter(numbers[packing.vectors :])
        before, drawn, learnt = packing.state(list(vectors)), rebuilt(form.pre_drawn, parts), rebuilt(given, parts)
        before = before._replace(adaptation=learnt) if form.adapts else with_adaptation(before, state)
        after, info = sampler.kernel(PreDrawnNumbers(parts), before, drawn)
        return [*packing.packed(moving_part(after)), *form.info_packing.packed(flat(info))]

    from torch.fx.experimental.proxy_tensor import make_fx  # takes a second

    program = make_fx(step)(*examples)
    constants = [*lift_tensors(program), *lift_floats(program, device)]
    program.recompile()
    return TracedStep(**vars(form), program=program, examples=[*examples, *constants], constants=constants)


def _own(number: Tensor) -> Tensor:
    return number.clone(memory_format=torch.contiguous_format)


def of_tensors(sampler: Sampler) -> Sampler:
    """Return a copy of a sampler that reads no number on the host."""
    sampler = copy.copy(sampler)
    sampler.host_sync = False
    return sampler


class TracedPart(NamedTuple):
    """Hold the traced program of a part of a step that is written in C++ (`NativeStep`)."""

    program: fx.GraphModule
    examples: list[Tensor]
    constants: list[Tensor]


def trace_part(sampler: Sampler, native: NativeStep, state: Any) -> TracedPart:
    """Write down the part of a step that is written in C++."""
    reads, learnt = native.reads(state), sampler.adaptation_inputs(state.adaptation)
    examples = [_own(number) for number in (*reads, *flat(learnt))]

    def part(*numbers: Tensor) -> list[Tensor]:
        return native.part(list(numbers[: len(reads)]), rebuilt(learnt, iter(numbers[len(reads) :])))

    from torch.fx.experimental.proxy_tensor import make_fx  # takes a second

    program = make_fx(part)(*examples)
    constants = [*lift_tensors(program), *lift_floats(program, examples[0].device)]
    program.recompile()
    return TracedPart(program, [*examples, *constants], constants)


def moving_part(state: Any) -> Any:
    """Return what a step may change of a state: all but the adaptation."""
    return state._replace(adaptation=None) if "adaptation" in state._fields else state


def with_adaptation(moving: Any, state: Any) -> Any:
    """Return what a step has changed with the adaptation of a state."""
    return moving._replace(adaptation=state.adaptation) if "adaptation" in moving._fields else moving


def filled(pre_drawn: Any, template: Any) -> list[Tensor]:
    """Return the tensors of what was drawn beforehand; the template's where nothing was."""
    if pre_drawn is None:
        return flat(template)
    if isinstance(pre_drawn, Tensor):
        return [pre_drawn]
    return [tensor for parts in zip(pre_drawn, template, strict=True) for tensor in filled(*parts)]
