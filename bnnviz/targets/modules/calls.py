"""Call a module as a pure function of weights and inputs, for any layers."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
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

    one_by_one: bool = False  # chains take turns
    math: bool = False  # without fused kernels
    protects: bool = False  # attributes and inputs from changes by the forward
    twice: bool = True  # second derivatives are right
    aligned: bool = False  # weights are copied, so that their memory is aligned
    jumps: bool = False  # outputs are discontinuous in the weights
    #: A name for each place where a parameter is read, and that of the parameter, if these differ.
    names: tuple[tuple[str, str], ...] = ()


PROTECTED = CallRules(protects=True)


def call(module: nn.Module, parameters: dict[str, Tensor], x: Tensor, rules: CallRules) -> Tensor:
    """Return the module's outputs on inputs (rows, ...) with the given parameters."""
    given = {place: parameters[name] for place, name in rules.names} if rules.names and parameters else parameters
    given = {name: weights.clone() for name, weights in given.items()} if rules.aligned else given
    protection = protected(module) if rules.protects else nullcontext()
    with protection, MathPaths() if rules.math else nullcontext():
        return torch.func.functional_call(module, given, (x.clone() if rules.protects else x,), tie_weights=False)


@contextmanager
def protected(module: nn.Module) -> Iterator[None]:
    """Restore the attributes of a module and of its parts, and the contents of lists, dicts and sets, after a block."""
    kept = [
        (child, {name: copy.copy(held) if _is_plain(name, held) else held for name, held in vars(child).items()})
        for child in module.modules()
    ]
    try:
        yield
    finally:
        for child, values in kept:
            vars(child).clear()
            vars(child).update(values)


def _is_plain(name: str, held: Any) -> bool:
    return name not in _INTERNAL and type(held) in (list, dict, set)


def identities(module: nn.Module) -> list[tuple[Any, ...]]:
    """Return names and identities of the attributes of a module and of its parts, and of the contents of containers."""
    return [
        (name, id(held), *(map(id, [*held, *getattr(held, "values", list)()]) if _is_plain(name, held) else ()))
        for child in module.modules()
        for name, held in vars(child).items()
    ]


def copied(module: nn.Module) -> nn.Module:
    """Return a copy of a module.

    Tensors in attributes that were computed from parameters, which `copy.deepcopy` rejects, or that share their memory,
    become trainable leaves, so that a forward that reads them is recognised.
    """
    storages = {p.untyped_storage().data_ptr() for p in module.parameters() if p.requires_grad and p.numel()}
    held = (held for child in module.modules() for held in vars(child).values() if isinstance(held, Tensor))
    stale = (
        each
        for each in held
        if not each.is_leaf or each.layout == torch.strided and each.untyped_storage().data_ptr() in storages
    )
    return copy.deepcopy(module, {id(each): each.detach().clone().requires_grad_() for each in stale})


def move(module: nn.Module, device: torch.device, dtype: torch.dtype) -> nn.Module:
    """Move a module, including tensors in plain attributes of it or its children, to a device and precision."""
    module.to(device=device, dtype=dtype)
    for child in module.modules():
        for name, held in vars(child).items():
            if isinstance(held, Tensor):
                vars(child)[name] = held.to(device=device, dtype=dtype if held.is_floating_point() else held.dtype)
    return module


class MathPaths(TorchFunctionMode):
    """Replace fused kernels, so that second derivatives exist, and note whether there are any."""

    used = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function or its replacement."""
        kwargs = kwargs or {}
        self.used = self.used or func in FUSED
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
