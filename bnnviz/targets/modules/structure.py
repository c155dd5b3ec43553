"""Check a module before calling it: it needs parameters to sample and callable layers."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from bnnviz.errors import BnnvizError

_WRAPPERS = {
    "DataParallel": "is wrapped in DataParallel; give the module inside, its attribute .module",
    "DistributedDataParallel": "is wrapped in DistributedDataParallel; give the module inside, its attribute .module",
    "OptimizedModule": "was compiled by torch.compile; give the module itself, its attribute ._orig_mod",
}


def check_structure(given: Any) -> None:
    """Raise unless ``given`` is a module with parameters to sample."""
    if not isinstance(given, nn.Module):
        what = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
        raise BnnvizError(f"module must be a torch.nn.Module, not {what}; give an instance of one.", "module")
    _check_parts(given)
    parameters = dict(given.named_parameters())
    if not parameters:
        raise BnnvizError("The module has no parameters to sample.", "module")
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise BnnvizError(
            f"All {sum(p.numel() for p in parameters.values()):,} parameters of the module are frozen, so there is"
            " nothing to sample; set requires_grad to True for the unknown weights.",
            "module",
        )
    _check_memory({name: p for name, p in parameters.items() if p.requires_grad}, given)


def frozen_but(module: nn.Module, sample: str | Sequence[str] | None) -> nn.Module:
    """Freeze all parameters of a module except the named ones or those of named parts; return it."""
    if sample is None:
        return module
    named = dict(module.named_parameters(remove_duplicate=False))
    words = [sample] if isinstance(sample, str) else list(sample)
    if words == ["last"] and not any(_is_part("last", name) for name in named):
        words = [list(named)[-1].rpartition(".")[0] or list(named)[-1]]
    for word in words:
        if not isinstance(word, str) or not any(_is_part(word, name) for name in named):
            parts = dict.fromkeys(name.rpartition(".")[0] or name for name in named)
            raise BnnvizError(
                f"sample names {word!r:.60}, but the module has no such part or parameter; its parts are"
                f" {', '.join(parts)}.",
                "sample",
            )
    if not words:
        raise BnnvizError("sample names no part of the module; name one, or omit sample.", "sample")
    chosen = {id(p) for name, p in named.items() if any(_is_part(word, name) for word in words)}
    for parameter in module.parameters():
        parameter.requires_grad_(id(parameter) in chosen)
    return module


def _is_part(part: str, name: str) -> bool:
    return name == part or name.startswith(f"{part}.")


def trainable(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters to sample by name, each once, in the module's order."""
    return {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}


def aliases(module: nn.Module) -> dict[str, str]:
    """Return the name in `trainable` of a parameter, for each name that the module has for it."""
    first = {id(parameter): name for name, parameter in trainable(module).items()}
    named = module.named_parameters(remove_duplicate=False)
    return {name: first[id(parameter)] for name, parameter in named if id(parameter) in first}


def places(module: nn.Module) -> tuple[tuple[str, str], ...]:
    """Return one name for each place where a trainable parameter is read, and the parameter's name in `trainable`.

    A layer registered twice is one place; two layers with one weight are two. Empty if all names are as in
    `trainable`.
    """
    names = aliases(module)
    found = tuple(
        (place, names[place])
        for owner, child in module.named_modules()
        for place in (f"{owner}.{own}" if owner else own for own in child._parameters)
        if place in names
    )
    return found if any(place != name for place, name in found) else ()


def computed(module: nn.Module) -> list[tuple[str, str]]:
    """Return part and attribute names of tensors computed from parameters or sharing their memory."""
    storages = {p.untyped_storage().data_ptr() for p in trainable(module).values() if p.numel()}
    return [
        (owner, name)
        for owner, child in module.named_modules()
        for name, held in vars(child).items()
        if isinstance(held, Tensor) and not held.is_meta and held.layout == torch.strided
        if (held.requires_grad and not held.is_leaf) or _lies_in(held, storages)
    ]


def _lies_in(held: Tensor, storages: Container[int]) -> bool:
    return bool(held.numel()) and not held.requires_grad and held.untyped_storage().data_ptr() in storages


def _check_parts(given: nn.Module) -> None:
    """Raise for tensors that are not dense real numbers, wrapped or compiled parts, and trainable plain attributes."""
    known = {id(parameter) for parameter in given.parameters()}
    for name, child in given.named_modules():
        which = f"The module's part {name}" if name else "The module"
        if isinstance(child, torch.jit.ScriptModule):
            raise BnnvizError(
                f"{which} is TorchScript, which takes no weights as arguments; give the original torch.nn.Module.",
                "module",
            )
        if hasattr(child.forward, "_torchdynamo_orig_callable"):
            raise BnnvizError(
                f"{which} has a forward compiled by torch.compile, which takes no weights as arguments; remove"
                " torch.compile.",
                "module",
            )
        if type(child).__name__ in _WRAPPERS:
            raise BnnvizError(f"{which} {_WRAPPERS[type(child).__name__]}.", "module")
        for attribute, held in vars(child).items():
            if any(p.requires_grad and p.is_leaf and id(p) not in known for p in _tensors(held)):
                place = f"{name}.{attribute}" if name else attribute
                raise BnnvizError(
                    f"The attribute {place} contains trainable tensors that are not parameters of the module; make each"
                    " a torch.nn.Parameter, and a list of them a ParameterList or a ModuleList.",
                    "module",
                )
    for name, held in itertools.chain(given.named_parameters(), given.named_buffers()):
        if isinstance(held, nn.parameter.UninitializedTensorMixin):
            raise BnnvizError(
                "The module has lazy layers, whose weights have no shape yet; call it once on your inputs first.",
                "module",
            )
        if held.is_complex():
            raise BnnvizError(
                f"{name} contains complex numbers, but samplers need real ones; use two real tensors, and combine them"
                " in the forward with torch.complex.",
                "module",
            )
        if held.layout != torch.strided:
            raise BnnvizError(f"{name} is a sparse tensor; make it a dense one (to_dense).", "module")
        if held.is_meta:
            raise BnnvizError(
                f"{name} is on the device meta and has no values; create the module on the CPU, or load its weights.",
                "module",
            )


def _tensors(held: Any) -> Iterator[Tensor]:
    """Yield the tensors of an attribute, and of the modules in it, which may be a list or a dict."""
    values = held.values() if isinstance(held, dict) else held if isinstance(held, list | tuple | set) else [held]
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, nn.Module):
            yield from value.parameters()


def _check_memory(parameters: dict[str, Tensor], given: nn.Module) -> None:
    """Raise if two parameters share memory, or a buffer or frozen parameter that draws do not update with one."""
    by_storage: dict[int, list[tuple[str, Tensor]]] = {}
    for name, parameter in parameters.items():
        if parameter.numel():
            by_storage.setdefault(parameter.untyped_storage().data_ptr(), []).append((name, parameter))
    for group in by_storage.values():
        places = [(name, _places(parameter)) for name, parameter in group] if len(group) > 1 else []
        for (one, here), (other, there) in itertools.combinations(places, 2):
            if torch.isin(here, there).any():
                raise BnnvizError(
                    f"The parameters {one} and {other} share memory; tie weights by using one Parameter twice, or give"
                    " each separate memory.",
                    "module",
                )
    storages = {p.untyped_storage().data_ptr(): name for name, p in parameters.items() if p.numel()}
    for name, held in itertools.chain(given.named_buffers(), given.named_parameters()):
        if name not in parameters and _lies_in(held, storages):
            raise BnnvizError(
                f"The parameter {storages[held.untyped_storage().data_ptr()]} and {name} share memory, but draws change"
                " only the parameter; use one Parameter twice, or separate memory (clone()).",
                "module",
            )


def _places(parameter: Tensor) -> Tensor:
    """Return the memory positions of a parameter's elements in its storage."""
    size = parameter.untyped_storage().nbytes() // parameter.element_size()
    every = torch.arange(size)
    return every.as_strided(parameter.shape, parameter.stride(), parameter.storage_offset()).flatten()
