"""Principal axes of draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import svds


class Axes(NamedTuple):
    """Centre (dim,) and orthonormal axes (dim, count), the widest first."""

    centre: np.ndarray
    axes: np.ndarray


def principal_axes(draws: np.ndarray, count: int = 2) -> Axes:
    """Return the first principal axes of draws (n, dim).

    Signs are fixed by the largest component, so that a refit does not mirror a picture.
    """
    centre = draws.mean(0)
    centred = draws - centre
    if min(centred.shape) <= max(count, 3):
        axes = np.linalg.svd(centred, full_matrices=True)[2][:count].T
    else:
        # A fixed start: with the default one pictures would depend on the global generator.
        start = np.random.default_rng(0).standard_normal(min(centred.shape))
        _, scale, rows = svds(centred, k=count, v0=start)
        axes = rows[np.argsort(scale)[::-1]].T
    largest = np.abs(axes).argmax(0)
    return Axes(centre, axes * np.sign(axes[largest, np.arange(axes.shape[1])]))
