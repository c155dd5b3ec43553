"""Count how often a chain passes between two sides, and how long it stays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Crossings(NamedTuple):
    """Hold how often chains on a line cross a level, and how long they stay on a side.

    Attributes
    ----------
    count : ndarray, shape (chains,)
        Passages from one side to the other.
    longest : ndarray, shape (chains,)
        Moves of the longest stay on one side, an unfinished one included.
    stay : float
        Mean moves of a stay, over all chains: moves by crossings; nan before the first one.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> diagnostics.crossings(np.array([[-1.0, 1.0, 1.0, -1.0]])).count.tolist()
    [2]
    """

    count: np.ndarray
    longest: np.ndarray
    stay: float


def crossings(x: np.ndarray, level: float = 0.0) -> Crossings:
    """Count passages of x (chains, moves) over a level, and how long chains stay on a side.

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
