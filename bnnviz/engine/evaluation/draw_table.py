"""Cache a row of values per draw."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor

from bnnviz.engine.evaluation.predictions import Key, chosen_draws, weights
from bnnviz.engine.protocol import AnyRun


class DrawTable:
    """Cache functions of evenly thinned draws; ``evaluate`` returns (n, values) for draws (n, dim)."""

    def __init__(self, run: AnyRun, evaluate: Callable[[Tensor], np.ndarray]) -> None:
        self._run, self._evaluate = run, evaluate
        self._known: dict[Key, np.ndarray] = {}

    def values(self, most: int, at_once: float = np.inf) -> np.ndarray:
        """Return the values (chains, draws, values) of at most ``most`` draws of all living chains."""
        run = self._run
        keys = chosen_draws(run.store, run.alive, most)
        missing = [key for key in keys if key not in self._known][: int(min(at_once, len(keys)))]
        if missing:
            self._known.update(zip(missing, self._evaluate(weights(run.store, missing)), strict=True))
        self._known = {key: self._known[key] for key in keys if key in self._known}
        # The keys of a slot are adjacent: the known ones are the start of every chain.
        chains = max(int(run.alive.sum()), 1)
        rows = np.array(list(self._known.values())[: len(self._known) // chains * chains], dtype=float)
        return rows.reshape(-1, chains, rows.shape[1]).swapaxes(0, 1) if rows.size else np.empty((chains, 0, 1))
