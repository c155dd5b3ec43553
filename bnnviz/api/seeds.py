"""Take seeds as numbers or from generators."""

from __future__ import annotations

import secrets

import numpy as np
import torch

Seed = int | np.random.Generator | torch.Generator | None


def number(seed: Seed) -> int:
    """Return the given seed, or draw one from a generator; None chooses it at random."""
    if seed is None:
        return secrets.randbelow(2**31)
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**31))
    if isinstance(seed, torch.Generator):
        return int(torch.randint(2**31, (), generator=seed, device=seed.device))
    return seed
