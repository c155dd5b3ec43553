"""Name the parameters of a module that are sampled."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from bnnviz.errors import BnnvizError


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
    """Return a name for each place where a parameter is read, and its name in `trainable`; () if all are the same."""
    # A layer registered twice is one place; two layers with one weight are two.
    names = aliases(module)
    found = tuple(
        (place, names[place])
        for owner, child in module.named_modules()
        for place in (f"{owner}.{own}" if owner else own for own in child._parameters)
        if place in names
    )
    return found if any(place != name for place, name in found) else ()
