"""Read arrays in numpy's ``.npz``, without pickles."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bnnviz.data.formats import broken

_BROKEN = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, SyntaxError, MemoryError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)


def read_npz(place: Path, names: Sequence[str]) -> list[np.ndarray]:
    """Read arrays by name."""
    try:
        found = np.load(place, allow_pickle=False)
        if isinstance(found, np.ndarray):
            raise ValueError("it is a single array")
        with found:
            return [found[name] for name in names]
    except _BROKEN as error:
        raise broken(place, ".npz file", error) from error
