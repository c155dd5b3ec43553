"""Give draws as the named parameters that their coordinates stand for."""

from __future__ import annotations

import numpy as np
import torch

from bnnviz.targets import Target


def named_draws(target: Target, draws: np.ndarray) -> dict[str, np.ndarray]:
    """Return draws (chains, draws, dim) of a target as parameters (chains, draws, *shape) by name; none without names.

    They are computed in float64: what rounds to a bound is one.
    """
    values = target.named_values(torch.from_numpy(draws.reshape(-1, draws.shape[-1])).double())
    return {name: value.numpy().reshape(*draws.shape[:2], *value.shape[1:]) for name, value in values.items()}
