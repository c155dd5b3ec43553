"""Check the arguments of a caller: a target, starting points, and unknown keywords."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from bnnviz import samplers, targets
from bnnviz import settings as declared
from bnnviz.engine.recording.reader import Recording
from bnnviz.errors import BnnvizError, meant_by

#: Value of ``start`` for the weights of a network's module.
MODULE = "module"


def refuse(unknown: Iterable[str], known: Sequence[str], sampler: Any) -> None:
    """Raise for unknown keywords; settings of the sampler are distinguished from misspellings."""
    for name in unknown:
        named = isinstance(sampler, str) and sampler in samplers.REGISTRY.names()
        own = list(declared.declared(samplers.REGISTRY.get(sampler))) if named else []
        meant = meant_by("keyword", name, [*own, *known])
        if meant in own:
            question = "" if name == meant else f"did you mean {meant}? "
            way = f"settings of {sampler} are given as settings={{{meant!r}: ...}}"
            raise BnnvizError(f"There is no keyword {name}; {question}{way}.", name)
        hint = f"did you mean {meant}?" if meant else f"choose from {', '.join(known)}."
        raise BnnvizError(f"There is no keyword {name}; {hint}", name)


def count(name: str, value: int) -> int:
    """Return a positive integer."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise BnnvizError(f"{name} is a positive integer, not {value!r:.60}.", name)
    return int(value)


def points(start: Any, target: targets.Target | None) -> np.ndarray:
    """Return starting points (points, dim) from an array, also (dim,), a dict, a list of dicts, or a module."""
    if isinstance(start, str):
        if start != MODULE or not isinstance(target, targets.BNN):
            raise BnnvizError(f"start must be an array or a dict, or {MODULE!r} for a network's module.", "start")
        start = target.point().cpu().numpy()
    of_dicts = isinstance(start, list | tuple) and bool(start) and all(isinstance(each, Mapping) for each in start)
    if isinstance(start, Mapping) or of_dicts:
        if isinstance(target, targets.BNN):
            found = np.stack([target.point(each).cpu().numpy() for each in (start if of_dicts else [start])])
        elif isinstance(target, targets.ParameterDensity):
            found = target.free_points(list(start) if of_dicts else start).numpy()
        else:
            raise BnnvizError(
                "start can be a dict only with parameters= or for a network's weights; give an array.",
                "start",
            )
    else:
        try:
            found = np.array(start.detach().cpu() if isinstance(start, torch.Tensor) else start, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise BnnvizError(
                f"start is not an array of numbers ({error}); give (chains, dim) or (dim,).", "start"
            ) from error
    found = found[None] if found.ndim == 1 else found
    if found.ndim != 2 or not found.size or not np.isfinite(found).all():
        raise BnnvizError(
            "start must be finite numbers of shape (chains, dim) or (dim,), not"
            f" {'x'.join(map(str, found.shape)) or 'one'}"
            f"{'' if np.isfinite(found).all() else ' with some that are not finite'}.",
            "start",
        )
    return found


def own_target(target: Any, dim: int | None, parameters: Mapping[str, Any] | None) -> targets.Target | None:
    """Return the target of a caller's object; None for a registered name."""
    function = callable(target) and not isinstance(target, targets.Target | torch.nn.Module)
    if parameters is not None and not function:
        raise BnnvizError("parameters applies to functions only; this target defines its own.", "parameters")
    if isinstance(target, str):
        if dim is not None:
            raise BnnvizError("dim applies to your own functions only; a named target defines its dimension.", "dim")
        return None
    if isinstance(target, targets.Target):
        return target
    if isinstance(target, torch.distributions.Distribution):
        return targets.DistributionDensity(target)
    if isinstance(target, torch.nn.Module):
        raise BnnvizError("A module is not a target. Use bnnviz.BNN(module, (inputs, observations)).", "target")
    if not callable(target):
        raise BnnvizError(
            f"target must be a name, a Target, a BNN or a function, not {type(target).__name__}.", "target"
        )
    if parameters is not None:
        if dim is not None:
            raise BnnvizError("Specify either parameters or dim: dim is determined by the shapes.", "dim")
        return targets.ParameterDensity(target, parameters)
    if dim is None:
        raise BnnvizError(
            "A function as a target needs dim=, the dimension of a state, or parameters=, names with shapes.", "dim"
        )
    return targets.Callable(target, dim)


def recorded_target(target: Any, recording: Recording) -> targets.Target | None:
    """Return the target of a recorded run from the object that was sampled."""
    if target is None or isinstance(target, targets.Target):
        return target
    if isinstance(target, str):
        raise BnnvizError(f"A recording names its target. Leave out target={target!r}, or pass your own.", "target")
    return own_target(target, len(recording.names()), None)
