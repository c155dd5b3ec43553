"""Read arrays in numpy's ``.npz``, without pickles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bnnviz.data.formats import reading


def read_npz(place: Path, names: Sequence[str]) -> list[np.ndarray]:
    """Read arrays by name."""
    with reading(place, ".npz file"):
        found = np.load(place, allow_pickle=False)
        if isinstance(found, np.ndarray):
            raise ValueError("it is a single array")
        with found:
            return [found[name] for name in names]
