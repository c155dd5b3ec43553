"""Trace a step: write down its operations as a program of tensors, with all that may differ between runs as inputs."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from bnnviz.engine.compilation.lifting import lift_floats, lift_tensors
from bnnviz.engine.compilation.packing import Packing, StatePacking
from bnnviz.samplers import Sampler
from bnnviz.samplers.native import NativeStep
from bnnviz.samplers.random import Draw, PreDrawnNumbers, RecordedNumbers
from bnnviz.samplers.tree import flat, rebuilt

#: Why most steps are no program of tensors.
READS_ON_HOST = (
    "A forward or a density that reads a value on the host, by .item() or by an if on a tensor, is the usual cause."
)


class TracedStep(NamedTuple):
    """Hold the traced program of a step.

    Attributes
    ----------
    program : fx.GraphModule
        Takes the vectors of the state, what is drawn beforehand, the adaptation where that is an input, the random
        numbers and the constants, each a tensor; returns the vectors of the new state and of what happened.
    examples : list of Tensor
        Such numbers.
    draws : list of Draw
        The random numbers that it needs.
    adapts : bool
        Whether the adaptation is an input (`Sampler.adaptation_inputs`), so that the program serves the warm-up too.
    pre_drawn : Any
        What is drawn beforehand where nothing has to be (`Sampler.pre_draw`).
    constants : list of Tensor
        What belongs to target, sampler and adaptation: data rows, a reference, scales; and last, of each data type,
        the floats of settings and adaptation.
    packing : StatePacking
        How the vectors are made of a state.
    info : Any
        How what happened is built of the tensors in its vectors.
    info_packing : Packing
    """

    program: fx.GraphModule
    examples: list[Tensor]
    draws: list[Draw]
    adapts: bool
    pre_drawn: Any
    constants: list[Tensor]
    packing: StatePacking
    info: Any
    info_packing: Packing


def trace(sampler: Sampler, state: Any) -> TracedStep:
    """Write down the step of a sampler: settings are constants, and what it has learnt unless that is an input."""
    device = flat(state)[0].device
    sampler = of_tensors(sampler)
    rng, moving = RecordedNumbers(torch.Generator(device).manual_seed(0)), moving_part(state)
    pre_drawn = sampler.pre_draw(rng, state)
    rng.draws.clear()
    _, info = sampler.kernel(rng, state, pre_drawn)
    draws = list(rng.draws)
    learnt = sampler.adaptation_inputs(state.adaptation) if "adaptation" in state._fields else None
    given = () if learnt is None else learnt
    adapts = learnt is not None
    numbers = [rng.make(draw) for draw in draws]
    packing, info_packing = StatePacking(sampler, moving), Packing(flat(info), sampler.ends is not None)
    # Copies: what is twice the same tensor in this state would be taken for one number in every state.
    numbers = (*packing.packed(moving), *flat(pre_drawn), *flat(given), *numbers)
    examples = [number.clone(memory_format=torch.contiguous_format) for number in numbers]

    def step(*numbers: Tensor) -> list[Tensor]:
        vectors, parts = numbers[: packing.vectors], iter(numbers[packing.vectors :])
        before, drawn, learnt = packing.state(list(vectors)), rebuilt(pre_drawn, parts), rebuilt(given, parts)
        before = before._replace(adaptation=learnt) if adapts else with_adaptation(before, state)
        after, info = sampler.kernel(PreDrawnNumbers(parts), before, drawn)
        return [*packing.packed(moving_part(after)), *info_packing.packed(flat(info))]

    from torch.fx.experimental.proxy_tensor import make_fx  # takes a second

    program = make_fx(step)(*examples)
    constants = [*lift_tensors(program), *lift_floats(program, device)]
    program.recompile()
    return TracedStep(
        program, [*examples, *constants], draws, adapts, pre_drawn, constants, packing, info, info_packing
    )


def of_tensors(sampler: Sampler) -> Sampler:
    """Return a copy of a sampler that reads no number on the host."""
    sampler = copy.copy(sampler)
    sampler.host_sync = False
    return sampler


class TracedPart(NamedTuple):
    """Hold the traced program of a part of a step that is written in C++ (`NativeStep`).

    Attributes
    ----------
    program : fx.GraphModule
        Takes what is read of the state, the adaptation and the constants.
    examples : list of Tensor
        Such numbers.
    constants : list of Tensor
        As of `TracedStep`.
    """

    program: fx.GraphModule
    examples: list[Tensor]
    constants: list[Tensor]


def trace_part(sampler: Sampler, native: NativeStep, state: Any) -> TracedPart:
    """Write down the part of a step that is written in C++."""
    reads, learnt = native.reads(state), sampler.adaptation_inputs(state.adaptation)
    examples = [number.clone(memory_format=torch.contiguous_format) for number in (*reads, *flat(learnt))]

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
