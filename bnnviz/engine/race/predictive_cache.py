"""Cache class probabilities of draws at some rows, computed once per kept draw."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz.engine.evaluation.metrics import probabilities_at
from bnnviz.engine.evaluation.predictions import chosen_draws, weights
from bnnviz.engine.protocol import AnyRun

MOST = 32  # draws
_PIECE = 256  # rows at once
_WEIGHED_AGAIN = 1.3  # weighted draws are resampled after this growth of their number


class PredictiveCache:
    """Cache the class probabilities of draws at scaled rows (rows, ...).

    Draws are chosen as in `chosen_draws`; weighted draws are resampled, again when their number has grown by a third.

    Attributes
    ----------
    probabilities : ndarray
        Probabilities (draws, rows, classes) of the evaluated draws.
    """

    def __init__(self, run: AnyRun, rows: np.ndarray) -> None:
        self._run = run
        self._rows = torch.as_tensor(rows, dtype=run.target.dtype, device=run.target.device)
        self._known: dict[Any, np.ndarray] = {}
        self._resampled: tuple[int, Tensor] = (0, torch.empty(0))
        self.probabilities = np.empty((0, len(rows), run.target.outputs_per_row), np.float32)

    def missing(self) -> list[Any]:
        """Return the chosen draws that are not evaluated yet."""
        return [key for key in self._chosen() if key not in self._known]

    def look(self, seconds: float) -> None:
        """Evaluate missing draws, at least one, until the time is used up; forget others when there are none."""
        end, chosen = time.perf_counter() + seconds, self._chosen()
        for key in [key for key in chosen if key not in self._known]:
            parts = [probabilities_at(self._run.target, self._theta(key), rows) for rows in self._rows.split(_PIECE)]
            self._known[key] = np.concatenate([part[0] for part in parts]).astype(np.float32)
            if time.perf_counter() >= end:
                break
        else:
            self._known = {key: self._known[key] for key in chosen}
        if self._known:
            self.probabilities = np.stack(list(self._known.values()))

    @property
    def asked(self) -> int:
        """Number of evaluated draws."""
        return len(self._known)

    def draws(self, most: int) -> Tensor:
        """Return at most ``most`` evaluated draws (draws, dim), evenly thinned."""
        keys = list(self._known)
        chosen = [keys[i] for i in np.linspace(0, len(keys) - 1, min(most, len(keys))).astype(int)]
        return torch.cat([self._theta(key) for key in chosen])

    def _chosen(self) -> list[Any]:
        run = self._run
        if not run.sampler.traits.weighted:
            return chosen_draws(run.store, run.alive, MOST)
        made = int(run.store.counts.sum())
        if made > _WEIGHED_AGAIN * self._resampled[0]:
            self._resampled = made, run.resampled(MOST)
            self._known = {}
        return list(range(len(self._resampled[1])))

    def _theta(self, key: Any) -> Tensor:
        """Return one draw, (1, dim)."""
        return self._resampled[1][key][None] if self._run.sampler.traits.weighted else weights(self._run.store, [key])
