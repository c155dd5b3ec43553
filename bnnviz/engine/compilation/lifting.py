"""Turn the constants of a traced program into inputs, so that one compiled program serves other settings and runs.

A trace contains the data, the scales and each float of a setting or of the adaptation (a step size, a rate, a
temperature) as constants. Tensors become inputs one by one, floats together: one vector per data type, whose elements
the program reads. Operations on a vector and a float give bit-identical results with a tensor of dimension 0 and the
vector's type instead of the float.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, fx

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
    """Turn the floats of a program into its last inputs and return them, one vector per data type.

    Zeros and non-finite values stay: they are not settings. Each float has a separate element, as two equal ones may
    differ in the next run.
    """
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
