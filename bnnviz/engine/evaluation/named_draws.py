"""Give draws as the named parameters that their coordinates stand for."""

from __future__ import annotations

import numpy as np
import torch

from bnnviz.targets import BNN, Target


def named_draws(target: Target, draws: np.ndarray) -> dict[str, np.ndarray]:
    """Return draws (chains, draws, dim) of a target as parameters (chains, draws, *shape) by name; none without names.

    They are computed in float64: what rounds to a bound is one.
    """
    return _shaped(target.named_values(_flat(draws)), draws)


def own_draws(target: BNN, draws: np.ndarray) -> dict[str, np.ndarray]:
    """Return what a network's likelihood has learned, (chains, draws, *shape) by name."""
    return _shaped(target.own_values(_flat(draws)), draws)


def _flat(draws: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(draws.reshape(-1, draws.shape[-1])).double()


def _shaped(values: dict[str, torch.Tensor], draws: np.ndarray) -> dict[str, np.ndarray]:
    return {name: value.cpu().numpy().reshape(*draws.shape[:2], *value.shape[1:]) for name, value in values.items()}
