"""Choose the precision of a run for which the caller names none."""

from __future__ import annotations

import torch

from bnnviz import targets
from bnnviz.engine.run.device import choose_device
from bnnviz.targets.minibatch import RowTarget

_MOST_DIMENSIONS = 50


def precision(target: targets.Target | None, device: str) -> str:
    """Return "float64" for a caller's density of few dimensions on a CPU, where it costs nothing, and else "float32".

    Parameters
    ----------
    target : Target or None
        The caller's own; None of a registered one, whose precision is that of its spec.
    device : str
        As a spec names it.
    """
    if target is None or isinstance(target, RowTarget) or target.dim > _MOST_DIMENSIONS:
        return "float32"
    if choose_device(device).type != "cpu":
        return "float32"
    return "float64" if _computes(target.clone(), torch.float64) else "float32"


def _computes(target: targets.Target, dtype: torch.dtype) -> bool:
    """Return whether a density can be computed in a data type; a function may hold tensors of another one."""
    target.to("cpu", dtype)
    try:
        target.gradient(torch.full((2, target.dim), 0.5, dtype=dtype))
    except Exception:  # noqa: BLE001 - whatever the caller's function raises is raised again by the run
        return False
    return True
