"""Checkpoints of version 7: what samplers had learnt lay beside their states, which were lists of tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_type_hints

from torch import Tensor

VERSION = 7
#: What infos called their fields.
INFO_NAMES = {
    "chance": "acceptance_rate",
    "went": "jump_distance",
    "leaves": "n_steps",
    "diverged": "diverging",
}


def is_old(saved: dict[str, Any]) -> bool:
    """Return whether a saved state has the form of version 7."""
    return isinstance(saved.get("state"), list)


def state(kind: Any, saved: dict[str, Any]) -> dict[str, Any]:
    """Return a saved state of a type as nested dicts by the names of its fields."""
    tensors = list(saved["state"])
    if "mode" in saved:
        del tensors[1]  # the Laplace approximation had velocities, all zero
    made, hints = iter(tensors), get_type_hints(kind)
    named = {name: _named(hint, made) for name, hint in hints.items() if name != "adaptation"}
    return named | ({"adaptation": _adaptation(saved)} if "adaptation" in hints else {})


def _named(kind: Any, tensors: Iterator[Tensor]) -> Any:
    if kind is Tensor:
        return next(tensors)
    return {name: _named(hint, tensors) for name, hint in get_type_hints(kind).items()}


def _adaptation(saved: dict[str, Any]) -> dict[str, Any]:
    if "found" not in saved:
        return {"resting": False, "anew": False}
    if "frozen" in saved:
        return {"step_size": saved["found"], "frozen": saved["frozen"]}
    if "averaging" not in saved:
        return {"step_size": saved["found"]}
    tuning, number, moves, pooled = saved["tuning"]
    averaging = {{"seen": "updates"}.get(name, name): value for name, value in saved["averaging"].items()}
    stage = {"number": number, "moves": moves, "pooled": pooled, "averaging": averaging, "positions": saved["spread"]}
    return {"step_size": saved["found"], "scale": saved["scale"], "stage": stage if tuning else None}


def stats(saved: dict[str, Any]) -> dict[str, Any]:
    """Return saved counters with the names that fields of infos have now."""
    if "sums" not in saved:
        return saved
    return saved | {"sums": {INFO_NAMES.get(name, name): value for name, value in saved["sums"].items()}}
