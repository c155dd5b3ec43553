r"""Detect draws to which Stein's identity does not apply: their density has an edge, or their tails are too long.

Over a domain with an edge the identity has a boundary term, which vanishes only with the density. And if the squares of
draws have no variance, neither have estimates of variances. With excesses :math:`y` over a threshold, sorted, the
tail's shape is estimated by probability-weighted moments (Hosking and Wallis 1987,
https://doi.org/10.1080/00401706.1987.10488243),

.. math:: \xi = 2 - \frac{b_0}{b_0 - 2 b_1}, \quad b_0 = E[y], \quad b_1 = E[y (1 - F(y))];

moments of order :math:`1 / \xi` and more are infinite.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor

from bnnviz.engine.run.failures import edge_between
from bnnviz.targets import BNN, Target

_MOST_COLUMNS = 50
_BETWEEN = 256  # points between draws
_TAIL = 0.1  # fraction of the draws in a tail
_FEWEST = 50  # draws of a tail
_LONG = 0.12  # shape above which squares may have no variance: 1/4, minus two standard errors of a few draws
_BY_CHANCE = 0.02  # probability of such a shape for draws with normal tails
_VARIANCE = 4 / 3  # of the estimate of a shape near 0, times the draws of the tail


def says_nothing(target: Target, draws: Tensor) -> bool:
    """Return whether Stein's identity does not apply to draws (n, dim) of a target."""
    if isinstance(target, BNN):
        return False
    if len(draws) < 2:
        return True
    return has_edge(target, draws) or has_hole(target, draws) or has_long_tail(draws.double().cpu().numpy())


def has_edge(target: Target, draws: Tensor) -> bool:
    """Return whether U is not finite one standard deviation beyond the outermost draws (n, dim) in some coordinate."""
    columns = torch.arange(draws.shape[1], device=draws.device)
    columns = columns[:: -(-len(columns) // _MOST_COLUMNS)]
    sd = draws.std(0)
    outermost, beyond = [], []
    for found, side in ((draws.argmax(0), 1.0), (draws.argmin(0), -1.0)):
        points = draws[found[columns]].clone()
        outermost.append(points.clone())
        points[torch.arange(len(columns)), columns] += side * sd[columns]
        beyond.append(points)
    return bool(edge_between(target, torch.cat(outermost), torch.cat(beyond)).any())


def has_hole(target: Target, draws: Tensor) -> bool:
    """Return whether U is not finite at a point between two draws (n, dim): a hole has edges too."""
    rng = np.random.default_rng(0)
    ends = (draws[torch.as_tensor(rng.integers(len(draws), size=_BETWEEN), device=draws.device)] for _ in range(2))
    share = torch.as_tensor(rng.uniform(size=(_BETWEEN, 1)), dtype=draws.dtype, device=draws.device)
    return not bool(torch.isfinite(target.clone().defined_potential(torch.lerp(*ends, share))).all())


def has_long_tail(draws: np.ndarray) -> bool:
    """Return whether the squares of draws (n, dim) seem to have no variance in some coordinate."""
    tail = int(_TAIL * len(draws))
    if tail < _FEWEST:
        return False
    off = np.sort(np.abs(draws - np.median(draws, axis=0)), axis=0)[-tail - 1 :]
    excess = off[1:] - off[0]
    weights = 1 - (np.arange(1, tail + 1) - 0.35)[:, None] / tail
    first, second = excess.mean(0), (weights * excess).mean(0)
    shape = 2 - first / np.maximum(first - 2 * second, 1e-12)
    # By chance the longest estimated tail of many coordinates exceeds that of one.
    quantile = NormalDist().inv_cdf
    most = quantile(1 - _BY_CHANCE / draws.shape[1]) - quantile(1 - _BY_CHANCE)
    return bool((shape > _LONG + (_VARIANCE / tail) ** 0.5 * most).any())
