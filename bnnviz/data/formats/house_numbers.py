"""Read SVHN's cropped digits (Y. Netzer et al. 2011): one file of MATLAB's for each part."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bnnviz.data.formats import reading
from bnnviz.data.published import mat_arrays


def read_digits(place: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read one part as images (rows, channels, height, width) and labels (rows,)."""
    with reading(place, "file of SVHN's"):
        held = mat_arrays(place)
        x, y = held["X"], held["y"].ravel()
        if x.dtype != np.uint8 or x.ndim != 4 or y.dtype.kind not in "iuf" or len(y) != x.shape[3]:
            raise ValueError(f"X is {x.dtype} of shape {x.shape} and y {y.dtype} of {y.size}")
        if not np.isin(y, np.arange(1, 11)).all():
            raise ValueError("its labels are not 1 to 10")
    return np.ascontiguousarray(x.transpose(3, 2, 0, 1)), y.astype(np.int64) % 10


def grey(x: np.ndarray) -> np.ndarray:
    """Return the rounded luma, 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601), of images (rows, 3, ...)."""
    red, green, blue = (x[:, channel].astype(np.uint32) for channel in range(3))
    return ((299 * red + 587 * green + 114 * blue + 500) // 1000).astype(np.uint8)[:, None]
