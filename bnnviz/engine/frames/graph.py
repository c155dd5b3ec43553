"""Show the weights of a small multilayer perceptron: the current ones of the watched chain, and their spread."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.engine.monitor.components import MOST_CANONICALISED, Components
from bnnviz.engine.protocol import AnyRun
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


def part(run: AnyRun, components: Components) -> dict[str, Any]:
    """Return the weights of the watched chain, means and standard deviations of all draws; {} before the first."""
    if run.chain_trace.now is None:
        return {}
    draws, mean, sd = run.store.view(run.alive), np.empty(0), np.empty(0)
    chains, each, dim = draws.shape
    if chains * each > 1:
        most = min(_DRAWS, max(2, MOST_CANONICALISED // dim))
        rows = components.looked_at(draws[:, :: max(1, -(-chains * each // most))]).reshape(-1, dim)
        mean, sd = rows.mean(0).astype(np.float32), rows.std(0, ddof=1).astype(np.float32)
    now = components.looked_at(run.chain_trace.current_point().reshape(1, -1))[0].astype(np.float32)
    return {"weights": now, "mean": mean, "sd": sd, "draws": chains * each, "chosen": components.coordinate}
