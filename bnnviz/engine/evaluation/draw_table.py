"""Cache functions of the draws of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz.engine.evaluation.predictions import chosen_draws, weights
from bnnviz.engine.protocol import AnyRun

_WEIGHED_AGAIN = 1.3  # weighted draws are resampled after this growth of their number


class DrawTable:
    """Cache functions of evenly thinned draws, or of resampled weighted draws.

    ``evaluate`` returns (n, ...) for draws (n, dim).
    """

    def __init__(self, run: AnyRun, evaluate: Callable[[Tensor], np.ndarray]) -> None:
        self._run, self._evaluate = run, evaluate
        self._known: dict[Any, np.ndarray] = {}
        self._resampled: tuple[int, Tensor] = (0, torch.empty(0))

    @property
    def keys(self) -> list[Any]:
        """The evaluated draws."""
        return list(self._known)

    @property
    def rows(self) -> np.ndarray:
        """Values (draws, ...) of the evaluated draws."""
        return np.array(list(self._known.values()))

    def missing(self, most: int) -> list[Any]:
        """Return those of at most ``most`` chosen draws that are not evaluated yet."""
        return [key for key in self._chosen(most) if key not in self._known]

    def fill(self, most: int, at_once: float = np.inf) -> None:
        """Evaluate missing draws of at most ``most`` chosen ones, and forget all others."""
        chosen = self._chosen(most)
        missing = self.missing(most)[: int(min(at_once, len(chosen)))]
        if missing:
            self._known.update(zip(missing, self._evaluate(self.draws(missing)), strict=True))
        self._known = {key: self._known[key] for key in chosen if key in self._known}

    def draws(self, keys: list[Any]) -> Tensor:
        """Return draws (n, dim)."""
        return self._resampled[1][keys] if self._run.sampler.traits.weighted else weights(self._run.store, keys)

    def values(self, most: int, at_once: float = np.inf) -> np.ndarray:
        """Return the values (chains, draws, values) of at most ``most`` draws of all living chains."""
        self.fill(most, at_once)
        # The keys of a slot are adjacent: the known ones are the start of every chain.
        chains = max(int(self._run.alive.sum()), 1)
        rows = self.rows[: len(self._known) // chains * chains].astype(float)
        return rows.reshape(-1, chains, rows.shape[1]).swapaxes(0, 1) if rows.size else np.empty((chains, 0, 1))

    def _chosen(self, most: int) -> list[Any]:
        run = self._run
        if not run.sampler.traits.weighted:
            return chosen_draws(run.store, run.alive, most)
        made = int(run.store.counts.sum())
        if made > _WEIGHED_AGAIN * self._resampled[0]:
            self._resampled, self._known = (made, run.resampled(most)), {}
        return list(range(len(self._resampled[1])))
