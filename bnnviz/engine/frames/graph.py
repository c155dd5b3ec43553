"""Show the weights of a small multilayer perceptron: the current ones of the watched chain, and their spread."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from bnnviz.engine.frames.watched_chain import WatchedChain
from bnnviz.engine.monitor.components import MOST_CANONICALISED, Components
from bnnviz.engine.protocol import SingleRun
from bnnviz.targets import Target

MOST_EDGES, MOST_UNITS = 1500, 64  # that can be distinguished in a figure: of a network, of a layer
_DRAWS = 500


def layers(target: Target) -> list[dict[str, Any]]:
    """Return the layers of a network that is small enough to be drawn; [] for other targets.

    Each has its numbers of ``inputs`` and ``outputs``, the first coordinate of its ``weight`` matrix, row after row,
    and that of its ``bias``, if any.
    """
    found = list(target.units)
    edges = sum(layer.inputs * layer.outputs for layer in found)
    if edges > MOST_EDGES or any(max(layer.inputs, layer.outputs) > MOST_UNITS for layer in found):
        return []
    return [{name: getattr(layer, name) for name in ("inputs", "outputs", "weight", "bias")} for layer in found]


class GraphPart:
    """Build the part of a frame that shows a network's weights."""

    def __init__(self, run: SingleRun, chain: WatchedChain, components: Components) -> None:
        self._run, self._chain, self._components = run, chain, components

    def part(self) -> dict[str, Any]:
        """Return the weights of the watched chain, means and standard deviations of all draws; {} before the first."""
        if self._chain.chain_trace.now is None:
            return {}
        mean, sd, draws = self._spread()
        return {
            "weights": self._shown(self._chain.chain_trace.current_point()),
            "mean": mean,
            "sd": sd,
            "draws": draws,
            "chosen": self._components.coordinate,
        }

    def _spread(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Return means, standard deviations and the number of all draws."""
        draws = self._run.store.view(self._run.alive)
        count = draws.shape[0] * draws.shape[1]
        if count < 2:
            return np.empty(0), np.empty(0), count
        most = min(_DRAWS, max(2, MOST_CANONICALISED // draws.shape[2]))
        rows = self._components.looked_at(draws[:, :: max(1, -(-count // most))]).reshape(-1, draws.shape[2])
        return rows.mean(0).astype(np.float32), rows.std(0, ddof=1).astype(np.float32), count

    def _shown(self, point: torch.Tensor) -> np.ndarray:
        return self._components.looked_at(point.reshape(1, -1))[0].astype(np.float32)
