"""Evaluate the density of a target of one or two coordinates, and that of a run's draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from bnnviz import diagnostics
from bnnviz.engine.protocol import AnyRun
from bnnviz.targets import Target

_CONTOUR_POINTS, _LINE_POINTS, _BINS = 160, 300, 60


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
