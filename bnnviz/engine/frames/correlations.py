"""Correlate the coordinates of the draws, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.engine.monitor.components import CANONICAL, MOST_CANONICALISED, Components
from bnnviz.engine.run.draw_store import DrawStore
from bnnviz.targets import Target

MOST = 60  # coordinates of a block
_BLOCKS = 8  # maximum per layer
_DRAWS = 1000
_FEWEST = 10


def blocks(target: Target) -> list[dict[str, Any]]:
    """Return the blocks of coordinates (``label``, ``first``, ``count``): each layer's, in pieces of at most 60."""
    found, first = [], 0
    for name, size in target.groups():
        for begin in range(0, min(size, _BLOCKS * MOST), MOST):
            count = min(MOST, size - begin)
            piece = "" if size <= MOST else f", {begin + 1} to {begin + count} of {size:,}"
            found.append({"label": name + piece, "first": first + begin, "count": count})
        first += size
    return found


def part(store: DrawStore, alive: np.ndarray, block: dict[str, Any], components: Components) -> dict[str, Any]:
    """Return the frame part: the correlations of a block over all chains; {} with few draws."""
    draws = store.view(alive)
    count = draws.shape[0] * draws.shape[1]
    if count < _FEWEST:
        return {}
    first, size = block["first"], block["count"]
    # A canonical form needs all coordinates of a draw, possibly many.
    most = (
        _DRAWS if components.canonicalise is None else max(_FEWEST, min(_DRAWS, MOST_CANONICALISED // draws.shape[2]))
    )
    rows = draws[:, :: max(1, -(-count // most))]
    chosen = components.looked_at(rows if components.canonicalise else rows[..., first : first + size])
    chosen = (chosen[..., first : first + size] if components.canonicalise else chosen).reshape(-1, size)
    label = f"{block['label']}, {CANONICAL}" if components.canonicalise else block["label"]
    return {
        "block": label,
        "first": first,
        "correlation": diagnostics.correlation(chosen),
        "draws": len(chosen),
        "chosen": components.coordinate,
    }
