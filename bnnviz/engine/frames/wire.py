"""Pickle frames for pages."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np


class _Pickler(pickle.Pickler):
    """Pickle numeric arrays as their bytes, three times faster than NumPy for about forty small ones."""

    def reducer_override(self, thing: Any) -> Any:
        if type(thing) is np.ndarray and thing.dtype.kind in "biuf":
            return _array, (thing.dtype.str, thing.shape, thing.tobytes())
        return NotImplemented


def _array(dtype: str, shape: tuple[int, ...], data: bytes) -> np.ndarray:
    return np.frombuffer(data, dtype).reshape(shape)


def dumps(reply: dict[str, Any]) -> bytes:
    """Return the bytes of an answer with a frame for `pickle.loads`; the loaded arrays are read-only."""
    into = io.BytesIO()
    _Pickler(into, pickle.HIGHEST_PROTOCOL).dump(reply)
    return into.getvalue()
