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
from bnnviz.targets import BNN

MOST = 32  # draws
_PIECE = 256  # rows at once
_WEIGHED_AGAIN = 1.3  # weighted draws are resampled after this growth of their number


class PredictiveCache:
    """Cache the class probabilities of draws at scaled rows (rows, ...).

    Draws are chosen as in `chosen_draws`; weighted draws are resampled, again when their number has grown by a third.
    """

    def __init__(self, run: AnyRun, rows: Tensor, most: int = MOST) -> None:
        self._run, self._rows, self._most = run, rows, most
        self._known: dict[Any, np.ndarray] = {}
        self._resampled: tuple[int, Tensor] = (0, torch.empty(0))
        self._stacked: tuple[int, np.ndarray] | None = None
        self.version = 0

    def missing(self) -> list[Any]:
        """Return the chosen draws that are not evaluated yet."""
        return [key for key in self._chosen() if key not in self._known]

    def look(self, seconds: float) -> None:
        """Evaluate missing draws, at least one, until the time is used up."""
        end = time.perf_counter() + seconds
        chosen = self._chosen()
        for key in (key for key in chosen if key not in self._known):
            self._known[key] = probabilities(self._run.target, self._theta(key), self._rows)
            self.version += 1
            if time.perf_counter() >= end:
                break
        else:
            if len(self._known) > len(chosen):
                self._known = {key: self._known[key] for key in chosen}
                self.version += 1

    @property
    def probabilities(self) -> np.ndarray:
        """Probabilities (draws, rows, classes) of the evaluated draws."""
        if self._stacked is None or self._stacked[0] != self.version:
            found = list(self._known.values())
            empty = np.empty((0, len(self._rows), self._run.target.outputs_per_row), np.float32)
            self._stacked = self.version, np.stack(found) if found else empty
        return self._stacked[1]

    @property
    def asked(self) -> int:
        """Number of evaluated draws."""
        return len(self._known)

    def draws(self, most: int) -> Tensor:
        """Return at most ``most`` evaluated draws (draws, dim), evenly thinned."""
        keys = list(self._known)
        chosen = [keys[i] for i in np.linspace(0, len(keys) - 1, min(most, len(keys))).astype(int)]
        if not chosen:
            return self._run.store.buffer.new_empty(0, self._run.target.dim)
        return torch.cat([self._theta(key) for key in chosen])

    def _chosen(self) -> list[Any]:
        run = self._run
        if not run.sampler.traits.weighted:
            return chosen_draws(run.store, run.alive, self._most)
        made = int(run.store.counts.sum())
        if made > _WEIGHED_AGAIN * self._resampled[0]:
            self._resampled = made, run.resampled(self._most)
            self._known = {}
        return list(range(len(self._resampled[1])))

    def _theta(self, key: Any) -> Tensor:
        """Return one draw, (1, dim)."""
        if self._run.sampler.traits.weighted:
            return self._resampled[1][key][None]
        return weights(self._run.store, [key])


def probabilities(target: BNN, theta: Tensor, rows: Tensor) -> np.ndarray:
    """Return the probabilities (rows, classes) of one draw (1, dim) at rows."""
    parts = [probabilities_at(target, theta, part)[0] for part in torch.split(rows, _PIECE)]
    return np.concatenate(parts).astype(np.float32)
