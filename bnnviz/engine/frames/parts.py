"""Make parts of frames: correlations of the draws, weights of a network, densities, counts and rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from bnnviz import diagnostics
from bnnviz.engine.monitor.components import CANONICAL, MOST_CANONICALISED, Components
from bnnviz.engine.protocol import AnyRun
from bnnviz.engine.run.draw_store import DrawStore
from bnnviz.targets import Target

_BLOCK = 60  # coordinates of a block
_BLOCKS = 8  # maximum per layer
_CORRELATED = 1000
_FEWEST = 10
MOST_EDGES, MOST_UNITS = 1500, 64  # that can be distinguished in a figure: of a network, of a layer
_NETWORKS = 500
_CONTOUR_POINTS, _LINE_POINTS, _BINS = 160, 300, 60


def coordinate_blocks(target: Target) -> list[dict[str, Any]]:
    """Return the blocks of coordinates (``label``, ``first``, ``count``): each layer's, in pieces of at most 60."""
    found, first = [], 0
    for name, size in target.groups():
        for begin in range(0, min(size, _BLOCKS * _BLOCK), _BLOCK):
            count = min(_BLOCK, size - begin)
            piece = "" if size <= _BLOCK else f", {begin + 1} to {begin + count} of {size:,}"
            found.append({"label": name + piece, "first": first + begin, "count": count})
        first += size
    return found


def correlations(store: DrawStore, alive: np.ndarray, block: dict[str, Any], components: Components) -> dict[str, Any]:
    """Return the frame part: the correlations of a block over all chains; {} with few draws."""
    draws = store.view(alive)
    count = draws.shape[0] * draws.shape[1]
    if count < _FEWEST:
        return {}
    first, size = block["first"], block["count"]
    # A canonical form needs all coordinates of a draw, possibly many.
    most = (
        _CORRELATED
        if components.canonicalise is None
        else max(_FEWEST, min(_CORRELATED, MOST_CANONICALISED // draws.shape[2]))
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


def network_layers(target: Target) -> list[dict[str, Any]]:
    """Return the layers of a network that is small enough to be drawn, with their first coordinates; [] otherwise."""
    found = list(target.units)
    edges = sum(layer.inputs * layer.outputs for layer in found)
    if edges > MOST_EDGES or any(max(layer.inputs, layer.outputs) > MOST_UNITS for layer in found):
        return []
    return [{name: getattr(layer, name) for name in ("inputs", "outputs", "weight", "bias")} for layer in found]


def network_weights(run: AnyRun, components: Components) -> dict[str, Any]:
    """Return the weights of the watched chain, means and standard deviations of all draws; {} before the first."""
    if run.chain_trace.now is None:
        return {}
    draws, mean, sd = run.store.view(run.alive), np.empty(0), np.empty(0)
    chains, each, dim = draws.shape
    if chains * each > 1:
        most = min(_NETWORKS, max(2, MOST_CANONICALISED // dim))
        rows = components.looked_at(draws[:, :: max(1, -(-chains * each // most))]).reshape(-1, dim)
        mean, sd = rows.mean(0).astype(np.float32), rows.std(0, ddof=1).astype(np.float32)
    now = components.looked_at(run.chain_trace.current_point().reshape(1, -1))[0].astype(np.float32)
    return {"weights": now, "mean": mean, "sd": sd, "draws": chains * each, "chosen": components.coordinate}


def contour(target: Target, x_range: tuple[float, float], y_range: tuple[float, float]) -> dict[str, np.ndarray]:
    """Return the density of a target of two coordinates on a grid, relative to its largest value there."""
    x, y = (np.linspace(*side, _CONTOUR_POINTS) for side in (x_range, y_range))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    return {"x": x, "y": y, "density": _relative(target, grid).reshape(len(y), len(x))}


def line(target: Target) -> dict[str, np.ndarray]:
    """Return the density of a target of one coordinate, normalised over its window."""
    x = np.linspace(*target.window()[0], _LINE_POINTS)
    density = _relative(target, x[:, None])
    return {"x": x, "y": density / np.trapezoid(density, x)}


def _relative(target: Target, points: np.ndarray) -> np.ndarray:
    """Return the density (n,) at points (n, dim), the largest being 1."""
    potential = target.potential(torch.as_tensor(points, dtype=target.dtype, device=target.device))
    potential = potential.double().cpu().numpy()
    return np.exp(np.nanmin(potential) - potential)


def histogram(run: AnyRun) -> dict[str, Any]:
    """Return the histogram of all draws of the only coordinate, as a density; empty before there are draws."""
    draws = run.store.view(run.alive)[..., 0].double().cpu().numpy().ravel()
    if not draws.size:
        return {}
    equal = np.full(draws.size, 1 / draws.size)
    shares = diagnostics.normalised(run.log_weights).ravel() if run.sampler.traits.weighted else equal
    mass, edges = np.histogram(draws, _BINS, run.target.window()[0], weights=shares)
    width = edges[1] - edges[0]
    return {"x": edges[:-1] + width / 2, "y": mass / width, "width": width, "draws": draws.size}


def count_rows(run: AnyRun) -> list[list[str]]:
    """Return rows (label, text, tone) of the counts of all chains; moves of the warm-up are no alarm."""
    rows = run.sampler_stats.rows()
    # While the sampler adapts its step, moves do not become draws.
    return [[row[0], f"{row[1]} (warm-up)", ""] if row[2] and run.phase == "tuning" else row for row in rows]
