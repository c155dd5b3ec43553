r"""Find principal axes: eigenvectors of the draws' covariance :math:`n^{-1} \sum_i (x_i - \bar x)(x_i - \bar x)^\top`.

With fewer draws than dimensions they are combinations :math:`\sum_i u_i (x_i - \bar x)` of the draws, with u an
eigenvector of the draws' inner products.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

_WIDE = 10_000_000  # size above which draws are processed in pieces
_PIECE = 20_000  # dimensions at a time


class Axes(NamedTuple):
    """Centre (dim,) and orthonormal axes (dim, count) by decreasing variance."""

    centre: np.ndarray
    axes: np.ndarray


def principal_axes(draws: np.ndarray, count: int = 2) -> Axes:
    """Compute the first principal axes of draws (n, dim).

    Signs are determined by the largest component. For identical draws, the result is the first coordinate axes.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> draws = np.random.default_rng(0).normal(size=(500, 3)) * [5.0, 1.0, 0.1]
    >>> len(diagnostics.principal_axes(draws))
    2
    """
    if draws.size > _WIDE and len(draws) <= draws.shape[1]:
        return _axes_of_few(draws, count)
    centre = draws.mean(0)
    centred = draws - centre
    if (draws == draws[0]).all():
        axes = np.eye(draws.shape[1], count)
    elif min(centred.shape) <= max(count, 3):
        axes = np.linalg.svd(centred, full_matrices=True)[2][:count].T
    else:
        # With the default start, plots would depend on the global random generator.
        start = np.random.default_rng(0).standard_normal(min(centred.shape))
        _, scale, rows = scipy.sparse.linalg.svds(centred, k=count, v0=start)
        axes = rows[np.argsort(scale)[::-1]].T
    return Axes(centre, _signed(axes))


def _axes_of_few(draws: np.ndarray, count: int) -> Axes:
    """Return principal axes of fewer draws than dimensions, without a copy of the draws.

    They are combinations of the draws, with coefficients from the eigenvectors of the draws' inner products.
    """
    centre, inner = draws.mean(0), np.zeros((len(draws), len(draws)))
    pieces = [slice(i, i + _PIECE) for i in range(0, draws.shape[1], _PIECE)]
    for piece in pieces:
        part = draws[:, piece] - centre[piece]
        inner += part @ part.T
    scale, vectors = scipy.linalg.eigh(inner)
    if scale[-1] <= 0:
        return Axes(centre, np.eye(draws.shape[1], count))
    first = vectors[:, ::-1][:, :count].astype(draws.dtype)
    found = np.concatenate([(draws[:, piece] - centre[piece]).T @ first for piece in pieces]).astype(float)
    return Axes(centre.astype(float), _signed(found / np.linalg.norm(found, axis=0)))


def last_axis(draws: np.ndarray) -> np.ndarray:
    """Compute the last principal axis (dim,) of draws (n, dim), the direction of the smallest nonzero variance.

    With fewer draws than dimensions, it is the last of n - 1 axes. The sign is fixed as in `principal_axes`. For
    identical draws, the result is the first coordinate axis.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> draws = np.random.default_rng(0).normal(size=(500, 2)) * [5.0, 0.1]
    >>> np.abs(diagnostics.last_axis(draws)).round(1).tolist()
    [0.0, 1.0]
    """
    centred = draws - draws.mean(0)
    wide = centred.shape[0] < centred.shape[1]
    scale, vectors = scipy.linalg.eigh(centred @ centred.T if wide else centred.T @ centred)
    varies = np.flatnonzero(scale > len(scale) * np.finfo(float).eps * scale[-1])
    if not varies.size:
        return np.eye(1, centred.shape[1])[0]
    vector = vectors[:, varies[0]]
    axis = centred.T @ vector if wide else vector
    return _signed(axis[:, None] / np.linalg.norm(axis))[:, 0]


def _signed(axes: np.ndarray) -> np.ndarray:
    """Return axes (dim, count) whose largest components are positive."""
    largest = np.abs(axes).argmax(0)
    return axes * np.sign(axes[largest, np.arange(axes.shape[1])])
