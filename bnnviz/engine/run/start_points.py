"""Initial positions of chains, which a spec contains as bytes (`bnnviz.specs.run.Spec.start_points`)."""

from __future__ import annotations

import io

import numpy as np

from bnnviz.errors import BnnvizError


def packed(x: np.ndarray) -> bytes:
    """Return the bytes of points (points, dim), a NumPy file."""
    buffer = io.BytesIO()
    np.save(buffer, x, allow_pickle=False)
    return buffer.getvalue()


def unpacked(content: bytes) -> np.ndarray:
    """Return the points (points, dim) in a spec."""
    try:
        x = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except (ValueError, MemoryError) as error:
        raise BnnvizError(_UNREADABLE, "start") from error
    if x.dtype not in (np.float32, np.float64) or x.ndim != 2 or not x.size or not np.isfinite(x).all():
        raise BnnvizError(_UNREADABLE, "start")
    return x


_UNREADABLE = "The starting points of the chains cannot be read; give them again."
