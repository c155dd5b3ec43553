"""Flatten, rebuild and combine states: nested named tuples of tensors and numbers."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin, get_type_hints

import torch
from torch import Tensor


def flat(value: Any) -> list[Tensor]:
    """Return the tensors of nested tuples in order."""
    if isinstance(value, Tensor):
        return [value]
    return [tensor for part in value for tensor in flat(part)] if isinstance(value, tuple | list) else []


def choose(mask: Tensor, yes: Any, no: Any) -> Any:
    """Choose between tensors, or nested tuples of them, chain by chain; shared elements are kept."""
    if yes is no:
        return yes
    if isinstance(yes, Tensor):
        return torch.where(mask if yes.ndim == 1 else mask.view(-1, *[1] * (yes.ndim - 1)), yes, no)
    return type(yes)(*(choose(mask, a, b) for a, b in zip(yes, no, strict=True)))


def rebuilt(template: Any, tensors: Iterator[Tensor]) -> Any:
    """Return nested tuples like the template, filled with the next tensors of an iterator."""
    if isinstance(template, Tensor):
        return next(tensors)
    if not isinstance(template, tuple | list):
        return template
    parts = [rebuilt(part, tensors) for part in template]
    return type(template)(*parts) if hasattr(template, "_fields") else tuple(parts)


def as_dicts(value: Any) -> Any:
    """Return a state as nested dicts by field names, for a checkpoint."""
    if hasattr(value, "_fields"):
        return {name: as_dicts(part) for name, part in zip(value._fields, value, strict=True)}
    return [as_dicts(part) for part in value] if isinstance(value, tuple | list) else value


def restored(kind: Any, saved: Any, device: torch.device) -> Any:
    """Return the state of a type from the nested dicts of `as_dicts`, with tensors on a device."""
    if not _may_be(kind, saved):
        raise TypeError(f"a part of a state is {type(saved).__name__} instead of {kind}")
    if isinstance(saved, Tensor):
        return saved.to(device)
    if isinstance(saved, dict):
        kind = next((each for each in _options(kind) if set(getattr(each, "_fields", ())) == set(saved)), None)
        if kind is None:
            raise TypeError(f"a part of a state has the fields {sorted(map(str, saved))}")
        hints = get_type_hints(kind)
        return kind(**{name: restored(hints[name], saved[name], device) for name in kind._fields})
    return tuple(restored(Any, part, device) for part in saved) if isinstance(saved, tuple | list) else saved


def _may_be(kind: Any, saved: Any) -> bool:
    """Return whether a tensor or plain value matches a type; containers are checked by their parts."""
    options = _options(kind)
    are_types = all(isinstance(each, type) and each is not Any for each in options)
    if isinstance(saved, dict | list | tuple) or not are_types:
        return True
    return isinstance(saved, options) or (float in options and type(saved) is int)


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
