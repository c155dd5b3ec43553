"""Call a module as a pure function of weights and inputs, for any layers."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_INTERNAL = frozenset(vars(nn.Module()))
_RECURRENT = frozenset({torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu})
_CUDNN = threading.Lock()  # its switch is shared by all threads

#: Functions with a fused kernel without a second derivative in PyTorch, or with a wrong one (weight normalisation).
FUSED = frozenset(
    {
        functional.scaled_dot_product_attention,
        functional.multi_head_attention_forward,
        torch._weight_norm,
        *_RECURRENT,
    }
)


class CallRules(NamedTuple):
    """How to call a module."""

    one_by_one: bool = False
    math: bool = False
    restores: bool = False
    twice: bool = True
    copies: bool = False
    aligned: bool = False
    jumps: bool = False
    names: tuple[tuple[str, str], ...] = ()


def call(module: nn.Module, parameters: dict[str, Tensor], x: Tensor, rules: CallRules) -> Tensor:
    """Return the module's outputs on inputs (rows, ...) with the given parameters."""
    given = {place: parameters[name] for place, name in rules.names} if rules.names and parameters else parameters
    kept = attributes(module) if rules.restores else []
    x = x.clone() if rules.copies else x
    given = {name: weights.clone() for name, weights in given.items()} if rules.aligned else given
    try:
        with MathPaths() if rules.math else nullcontext():
            return torch.func.functional_call(module, given, (x,), tie_weights=False)
    finally:
        for child, values in kept:
            restore(child, values)


def attributes(module: nn.Module) -> list[tuple[nn.Module, dict[str, Any]]]:
    """Return the attributes of a module and of each of its children, with lists and dicts copied."""
    return [(child, {name: _kept(name, held) for name, held in vars(child).items()}) for child in module.modules()]


def _kept(name: str, held: Any) -> Any:
    return copy.copy(held) if name not in _INTERNAL and type(held) in (list, dict, set) else held


def restore(child: nn.Module, values: dict[str, Any]) -> None:
    """Restore a module's attributes."""
    own = vars(child)
    for name in [name for name in own if name not in values]:
        del own[name]
    own.update(values)


def leaves_something(kept: Sequence[tuple[nn.Module, dict[str, Any]]]) -> bool:
    """Return whether modules have other attributes than before."""
    return any(_differ(vars(child), values) for child, values in kept)


def _differ(now: dict[str, Any], before: dict[str, Any]) -> bool:
    return now.keys() != before.keys() or any(not _same(now[name], value) for name, value in before.items())


def _same(now: Any, before: Any) -> bool:
    if now is before:
        return True
    if type(now) is not type(before) or type(now) not in (list, dict, set):
        return False
    if len(now) != len(before) or isinstance(now, set):
        return isinstance(now, set) and now == before
    pairs = zip(now.items(), before.items(), strict=True) if isinstance(now, dict) else zip(now, before, strict=True)
    return all(a is b or (isinstance(a, tuple) and a[0] is b[0] and a[1] is b[1]) for a, b in pairs)


def copied(module: nn.Module) -> nn.Module:
    """Return a copy of a module, even with computed tensors as attributes, which `copy.deepcopy` rejects."""
    computed = (held for child in module.modules() for held in vars(child).values() if isinstance(held, Tensor))
    return copy.deepcopy(module, {id(held): held.detach().clone() for held in computed if not held.is_leaf})


def with_dense_gradients(module: nn.Module) -> nn.Module:
    """Make a module's embeddings return dense gradients, which the flat vector needs; return the module."""
    for child in module.modules():
        if isinstance(child, nn.Embedding | nn.EmbeddingBag):
            child.sparse = False
    return module


def move(module: nn.Module, device: torch.device, dtype: torch.dtype) -> nn.Module:
    """Move a module, including tensors in plain attributes of it or its children, to a device and precision."""
    module.to(device=device, dtype=dtype)
    for child in module.modules():
        for name, held in vars(child).items():
            if isinstance(held, Tensor):
                vars(child)[name] = held.to(device=device, dtype=dtype if held.is_floating_point() else held.dtype)
    return module


class SeenFunctions(TorchFunctionMode):
    """Record which functions of torch are called."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[Callable[..., Any]] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function and record it."""
        self.found.add(func)
        return func(*args, **(kwargs or {}))


class MathPaths(TorchFunctionMode):
    """Replace fused kernels, so that second derivatives exist."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function or its replacement."""
        kwargs = kwargs or {}
        if func is functional.scaled_dot_product_attention:
            return _attention(*args, **kwargs)
        if func is functional.multi_head_attention_forward:
            # If the attention weights are requested, they are computed by matrix products and a softmax.
            needs_weights = kwargs.get("need_weights", True)
            output, weights = func(*args, **(kwargs | {"need_weights": True}))
            return output, weights if needs_weights else None
        if func is torch._weight_norm:
            return _weight_normalised(*args, **kwargs)
        if func in _RECURRENT and torch.backends.cudnn.is_available():
            with _CUDNN, torch.backends.cudnn.flags(enabled=False):
                return func(*args, **kwargs)
        return func(*args, **kwargs)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return scaled dot-product attention by matrix products and a softmax; arguments as in PyTorch."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(~attn_mask, -torch.inf)
    return torch._scaled_dot_product_attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
    )[0]


def _weight_normalised(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Return g v / |v|, with the norm over all axes but one (over all for -1)."""
    axes = [axis for axis in range(v.ndim) if axis != dim]
    return v * (g / v.square().sum(axes, keepdim=True).sqrt())
