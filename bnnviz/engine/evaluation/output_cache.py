"""Cache the outputs of the kept draws at the test rows, computed once per draw."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bnnviz.engine.evaluation.predictions import at_once
from bnnviz.engine.protocol import DrawSource
from bnnviz.engine.run.draw_store import Room

_MOST = 500_000_000  # numbers: 2 GB, stored in a file on a CPU


class OutputCache:
    """Cache the outputs of a network at its test rows for the metrics at the end of a run."""

    def __init__(self, run: DrawSource) -> None:
        self._run = run
        self._known: dict[tuple[int, int], int] = {}
        self._room: Tensor | None = None

    def outputs(self) -> Tensor | None:
        """Return outputs (draws, rows, outputs) of the living chains; None for weighted draws or too many outputs."""
        run = self._run
        rows, _ = run.target.held_out()
        keys = self._keys()
        shape = (len(keys), len(rows), max(run.target.outputs_per_row, 1))
        if run.sampler.traits.weighted or not len(keys) or np.prod(shape, dtype=float) > _MOST:
            return None
        if keys != list(self._known):
            self._renew(keys, shape, rows)
        return self._room

    def _keys(self) -> list[tuple[int, int]]:
        """Return chain and number of each draw, in the order of the store."""
        store, alive = self._run.store, self._run.alive
        chains = np.flatnonzero(alive if alive.any() else np.ones_like(alive))
        return [(int(chain), slot * store.every) for chain in chains for slot in range(store.common(alive))]

    def _renew(self, keys: list[tuple[int, int]], shape: tuple[int, ...], rows: Tensor) -> None:
        """Allocate memory for these draws, copy the known outputs, and compute the others."""
        run = self._run
        room, old = Room(shape, run.device, run.dtype), self._room
        draws = run.store.view(run.alive).flatten(0, 1)
        missing = []
        for place, key in enumerate(keys):
            if key in self._known:
                room.tensor[place] = old[self._known[key]]
            else:
                missing.append(place)
        for places in torch.split(torch.tensor(missing, dtype=torch.long), at_once(run.target, len(rows))):
            places = places.to(run.device)
            room.tensor[places] = run.target.outputs(draws[places], rows)
            room.written(room.tensor[places])
        self._room, self._known = room.tensor, {key: place for place, key in enumerate(keys)}
