"""Show the weights of a small multilayer perceptron: those of the watched chain, and the spread of all draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from bnnviz.engine.frames.watched_chain import WatchedChain
from bnnviz.engine.monitor.components import MOST_CANONICALISED, Components
from bnnviz.engine.protocol import SingleRun
from bnnviz.engine.throttle import Throttle
from bnnviz.targets import Target

MOST_EDGES, MOST_UNITS = 1500, 64  # that can be told apart in a picture: of a network, of a layer
SPREAD_S = 1.0  # between two looks at the draws
_DRAWS = 500


def layers(target: Target) -> list[dict[str, Any]]:
    """Return the layers of a network that is small enough to be drawn; [] of any other target.

    Each has its numbers of ``inputs`` and ``outputs``, the coordinate at which its ``weight`` matrix begins, row after
    row, and that of its first ``bias``, None where it has none.
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
        self._looking = Throttle(least=SPREAD_S)
        self.forget()

    def forget(self) -> None:
        """Drop what was computed of earlier draws."""
        self._spread: tuple[np.ndarray, np.ndarray, int] = (np.empty(0), np.empty(0), 0)
        self._canonical = False

    def part(self, fast: bool) -> dict[str, Any]:
        """Return the weights of the watched chain, means and standard deviations of all draws; {} before the first.

        At full speed the draws are looked at now and then.
        """
        if self._chain.chain_trace.now is None:
            return {}
        canonical = self._components.canonicalise is not None
        if not fast or self._looking.due or canonical != self._canonical:
            self._look(canonical)
        mean, sd, draws = self._spread
        return {
            "weights": self._shown(self._chain.chain_trace.current_point()),
            "mean": mean,
            "sd": sd,
            "draws": draws,
            "chosen": self._components.coordinate,
        }

    def _look(self, canonical: bool) -> None:
        """Look at the draws anew."""
        self._canonical = canonical
        self._looking.spent()
        draws = self._run.store.view(self._run.alive)
        count = draws.shape[0] * draws.shape[1]
        if count < 2:
            self._spread = (np.empty(0), np.empty(0), count)
            return
        most = min(_DRAWS, max(2, MOST_CANONICALISED // draws.shape[2]))
        rows = self._components.looked_at(draws[:, :: max(1, -(-count // most))]).reshape(-1, draws.shape[2])
        self._spread = (rows.mean(0).astype(np.float32), rows.std(0, ddof=1).astype(np.float32), count)

    def _shown(self, point: torch.Tensor) -> np.ndarray:
        return self._components.looked_at(point.reshape(1, -1))[0].astype(np.float32)
