"""Trace a step as a program of tensors, with all values that may differ between runs as inputs."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from bnnviz.engine.compilation.state_parts import StateParts, field_names
from bnnviz.engine.compilation.torch_internals import traced
from bnnviz.samplers import Sampler
from bnnviz.samplers.native import NativeStep
from bnnviz.samplers.random import Draw, PreDrawnNumbers, RandomNumbers, RecordedNumbers
from bnnviz.samplers.tree import flat, rebuilt

#: The usual reason why a step cannot be traced.
READS_ON_HOST = (
    "A forward or a density that reads a value on the host, by .item() or by an if on a tensor, is the usual cause."
)

aten = torch.ops.aten
#: Operations with a float, and the same operations with a tensor.
_WITH_TENSOR = {
    aten.lt.Scalar: aten.lt.Tensor,
    aten.le.Scalar: aten.le.Tensor,
    aten.gt.Scalar: aten.gt.Tensor,
    aten.ge.Scalar: aten.ge.Tensor,
    aten.clamp_min.default: aten.clamp_min.Tensor,
    aten.clamp_max.default: aten.clamp_max.Tensor,
    aten.masked_fill.Scalar: aten.masked_fill.Tensor,
}
#: Operations that accept tensors or floats.
_TAKES_TENSOR = frozenset(
    {
        *(aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor),
        *(aten.add_.Tensor, aten.sub_.Tensor, aten.mul_.Tensor, aten.div_.Tensor),
    }
)
#: Operations that fill a tensor with a float.
_FILLS = frozenset({aten.full_like.default, aten.full.default, aten.new_full.default})


@dataclass(frozen=True)
class StepForm:
    """Types and shapes of the inputs and outputs of a step."""

    parts: StateParts
    draws: list[Draw]
    adapts: bool
    pre_drawn: Any
    info: Any
    ends: int | None  # the position of the info that tells whether a move has ended


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
    place = None if ends is None else field_names(info).index(ends)
    return StepForm(StateParts(sampler, moving), list(rng.draws), learned is not None, pre_drawn, info, place)


def trace(sampler: Sampler, state: Any, form: StepForm) -> TracedProgram:
    """Trace a sampler's step; settings are constants, and so are adapted values unless they are inputs."""
    sampler, parts = of_tensors(sampler), form.parts
    rng = RandomNumbers(torch.Generator(flat(state)[0].device).manual_seed(0))
    given = sampler.adaptation_inputs(state.adaptation) if form.adapts else ()
    drawn = [rng.make(draw) for draw in form.draws]

    def step(*numbers: Tensor) -> list[Tensor]:
        others = numbers[len(parts.tensors) :]
        left = iter(others)
        before, drawn = parts.state(list(numbers[: len(parts.tensors)])), rebuilt(form.pre_drawn, left)
        learned = rebuilt(given, left)
        before = before._replace(adaptation=learned) if form.adapts else with_adaptation(before, state)
        after, info = sampler.kernel(PreDrawnNumbers(left), before, *drawn)
        # The buffers of other inputs are overwritten before the next step, so the state must not share them.
        shared = {id(number) for number in others}
        moved = [part.contiguous() for part in parts.of(moving_part(after))]
        moved = [part.clone() if id(part) in shared else part for part in moved]
        return [*moved, *(part.contiguous() for part in flat(info))]

    return _program(step, (*parts.tensors, *flat(form.pre_drawn), *flat(given), *drawn))


def trace_part(sampler: Sampler, native: NativeStep, state: Any) -> TracedProgram:
    """Trace the part of a step in C++ that evaluates the target."""
    reads, learned = native.reads(state), sampler.adaptation_inputs(state.adaptation)

    def part(*numbers: Tensor) -> list[Tensor]:
        return native.part(list(numbers[: len(reads)]), rebuilt(learned, iter(numbers[len(reads) :])))

    return _program(part, (*reads, *flat(learned)))


def _program(function: Any, inputs: tuple[Tensor, ...]) -> TracedProgram:
    # Copies: one tensor that occurs twice in this state would become one input.
    examples = [number.clone(memory_format=torch.contiguous_format) for number in inputs]
    program = traced(function, examples)
    constants = [*lift_tensors(program), *lift_floats(program, examples[0].device)]
    program.recompile()
    return TracedProgram(program, [*examples, *constants], constants)


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


def lift_tensors(program: fx.GraphModule) -> list[Tensor]:
    """Turn the tensors of a program into its last inputs, and return them."""
    graph, lifted = program.graph, {}
    last = _last_input(graph)
    for node in [node for node in graph.nodes if node.op == "get_attr"]:
        held = getattr(program, node.target).detach().contiguous()
        key = held.data_ptr(), held.shape, held.dtype
        if key not in lifted:
            with graph.inserting_after(last):
                last = graph.placeholder(f"constant_{len(lifted)}")
                last.meta["val"] = held
            lifted[key] = held, last
        node.replace_all_uses_with(lifted[key][1])
        graph.erase_node(node)
    return [held for held, _ in lifted.values()]


def lift_floats(program: fx.GraphModule, device: torch.device) -> list[Tensor]:
    """Turn the settings among a program's floats into its last inputs, one vector per data type; return them."""
    graph, values = program.graph, {}
    for node in graph.nodes:
        dtype = _dtype(node)
        for place, value in enumerate(node.args if dtype in (torch.float32, torch.float64) else ()):
            if isinstance(value, float) and value != 0.0 and math.isfinite(value):
                values.setdefault(dtype, []).append((node, place))
    last = _last_input(graph)
    vectors = []
    for dtype, places in values.items():
        with graph.inserting_after(last):
            last = graph.placeholder(f"floats_{str(dtype).removeprefix('torch.')}")
        vectors.append(torch.tensor([node.args[place] for node, place in places], dtype=dtype, device=device))
        for index, (node, place) in enumerate(places):
            _read(graph, node, place, last, index)
    return vectors


def _dtype(node: fx.Node) -> torch.dtype | None:
    """Return the data type of a node whose floats can be lifted; None for others."""
    if node.target is aten.scalar_tensor.default:
        return node.kwargs.get("dtype")
    if node.target in _FILLS:
        return node.meta["val"].dtype
    if node.target not in _TAKES_TENSOR and node.target not in _WITH_TENSOR:
        return None
    tensors = [part.meta["val"] for part in node.args if isinstance(part, fx.Node)]
    tensors = [tensor for tensor in tensors if tensor.dtype != torch.bool]
    types = {tensor.dtype for tensor in tensors}
    # Between two tensors of dimension 0 the wider type would win, unlike between a tensor and a float.
    return types.pop() if len(types) == 1 and any(tensor.ndim for tensor in tensors) else None


def _read(graph: fx.Graph, node: fx.Node, place: int, vector: fx.Node, index: int) -> None:
    """Make a node read an element of a vector instead of the float."""
    with graph.inserting_before(node):
        element = graph.call_function(aten.select.int, (vector, 0, index))
    if node.target is aten.scalar_tensor.default:
        node.replace_all_uses_with(element)
        graph.erase_node(node)
    elif node.target in _FILLS:
        node.update_arg(place, 1.0)
        with graph.inserting_after(node):
            product = graph.call_function(aten.mul.Tensor, ())
        node.replace_all_uses_with(product)
        product.args = (node, element)
    else:
        node.target = _WITH_TENSOR.get(node.target, node.target)
        node.update_arg(place, element)


def _last_input(graph: fx.Graph) -> fx.Node:
    return [node for node in graph.nodes if node.op == "placeholder"][-1]
