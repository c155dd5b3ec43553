"""Count how often a chain crosses a level, and how long it stays on each side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Crossings(NamedTuple):
    """Number of crossings of a level by chains, and lengths of stays on one side.

    Attributes
    ----------
    count : ndarray, shape (chains,)
        Number of crossings.
    longest : ndarray, shape (chains,)
        Length of the longest stay on one side, including an unfinished one.
    stay : float
        Mean number of transitions between crossings over all chains.
    """

    count: np.ndarray
    longest: np.ndarray
    stay: float


def crossings(x: np.ndarray, level: float = 0.0) -> Crossings:
    """Count crossings of a level by x (chains, moves) and compute the lengths of stays on one side.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> found = diagnostics.crossings(np.array([[-1.0, 1.0, 1.0, -1.0, -1.0]]))
    >>> found.count.tolist(), found.longest.tolist()
    ([2], [2])
    """
    above = np.asarray(x) > level
    changed = above[:, 1:] != above[:, :-1]
    count = changed.sum(1)
    edge = np.ones((len(above), 1), dtype=bool)
    longest = [int(np.diff(np.flatnonzero(row)).max()) for row in np.hstack([edge, changed, edge])]
    total = int(count.sum())
    return Crossings(count, np.array(longest), above.size / total if total else float("nan"))
