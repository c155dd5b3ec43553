"""Choose the precision of a run for which the caller names none."""

from __future__ import annotations

from typing import Any

import torch

from bnnviz import targets
from bnnviz.engine.run.device import choose_device
from bnnviz.errors import BnnvizError
from bnnviz.targets.minibatch import RowTarget

_MOST_DIMENSIONS = 50


def precision(name: Any, target: targets.Target | None, settings: dict[str, Any] | None, device: str) -> str:
    """Return "float64" for a density of few dimensions on a CPU, where it costs nothing, and else "float32".

    Parameters
    ----------
    name : str or object
        A registered name, where there is no target of the caller's.
    target : Target or None
        The caller's own.
    settings : dict or None
        Of a named target.
    device : str
        As a spec names it.
    """
    if choose_device(device).type != "cpu":
        return "float32"
    density = _named(name, settings or {}) if target is None else target
    if density is None or isinstance(density, RowTarget) or density.dim > _MOST_DIMENSIONS:
        return "float32"
    return "float64" if _computes(density.clone(), torch.float64) else "float32"


def _named(name: Any, settings: dict[str, Any]) -> targets.Target | None:
    """Return a density by its name; None of a target with rows, and of what is no target."""
    if name not in targets.REGISTRY.names() or issubclass(targets.REGISTRY.get(name), RowTarget):
        return None
    try:
        return targets.REGISTRY.get(name)(**settings)
    except BnnvizError:  # the spec is yet to be checked
        return None


def _computes(target: targets.Target, dtype: torch.dtype) -> bool:
    """Return whether a density can be computed in a data type; a function may hold tensors of another one."""
    target.to("cpu", dtype)
    try:
        target.gradient(torch.full((2, target.dim), 0.5, dtype=dtype))
    except Exception:  # noqa: BLE001 - whatever the caller's function raises is raised again by the run
        return False
    return True
