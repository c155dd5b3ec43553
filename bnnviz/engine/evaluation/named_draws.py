"""Convert draws to named parameters."""

from __future__ import annotations

import numpy as np
import torch

from bnnviz.targets import BNN, Target


def named_draws(target: Target, draws: np.ndarray) -> dict[str, np.ndarray]:
    """Return draws (chains, draws, dim) as parameters (chains, draws, *shape) by name; empty for unnamed parameters."""
    # Constrained parameters are computed in float64, so that fewer of them round to a bound.
    flat = torch.from_numpy(draws.reshape(-1, draws.shape[-1]))
    values = target.named_values(flat if isinstance(target, BNN) else flat.double())
    return {name: value.cpu().numpy().reshape(*draws.shape[:2], *value.shape[1:]) for name, value in values.items()}
