"""Convert run settings from PyTorch and NumPy, and choose a default precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from bnnviz import targets
from bnnviz.engine.run.device import choose_device
from bnnviz.targets.minibatch import RowTarget

_MOST_DIMENSIONS = 50


def precision(target: targets.Target | None, device: str) -> str:
    """Return "float64" for a caller's own density of few dimensions on a CPU, and "float32" otherwise."""
    if target is None or isinstance(target, RowTarget) or target.dim > _MOST_DIMENSIONS:
        return "float32"
    if choose_device(device).type != "cpu":
        return "float32"
    return "float64" if _computes(target.clone(), torch.float64) else "float32"


def _computes(target: targets.Target, dtype: torch.dtype) -> bool:
    """Return whether a density supports a data type; a function may use tensors of another one."""
    target.to("cpu", dtype)
    try:
        target.gradient(torch.full((2, target.dim), 0.5, dtype=dtype))
    except Exception:  # noqa: BLE001 - whatever the caller's function raises is raised again by the run
        return False
    return True


def plain(value: Any) -> Any:
    """Convert a NumPy number to a Python number, and a precision or a device to its name."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, torch.dtype | torch.device):
        return str(value).removeprefix("torch.")
    is_precision = isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.floating))
    return np.dtype(value).name if is_precision else value
