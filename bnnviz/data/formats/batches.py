"""Read the CIFAR sets' archives (A. Krizhevsky): batches of images as pickles of Python 2, in a tar file.

A pickle may call any function, so this module has an unpickler for dictionaries, lists, numbers, texts and arrays of
bytes only, which does not even call numpy.
"""

from __future__ import annotations

import io
import math
import pickle
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bnnviz.data.formats import broken

SIDE = 32
_VALUES = 3 * SIDE * SIDE  # of an image: all red values, then green, then blue, each row by row
_MOST_BYTES = 2**28  # of one batch; the largest that is published has 154 MB
_WHAT = "archive of batches"
_BROKEN = (
    *(pickle.UnpicklingError, EOFError, AttributeError, LookupError, TypeError, ValueError, OverflowError, MemoryError),
    RecursionError,
)


class _NotAllowed(pickle.UnpicklingError):
    """Refuse a pickle that names something that no batch needs."""


class _NumpyKind:
    """Replace ``numpy.dtype`` while a pickle is read."""

    def __init__(self, code: Any, *_: Any) -> None:
        self.code = code.decode("ascii") if isinstance(code, bytes) else code

    def __setstate__(self, state: Any) -> None:
        """Ignore byte order and alignment, which bytes do not have."""


class _Array:
    """Replace an array of bytes while a pickle is read: created empty, then filled."""

    def __init__(self, *_: Any) -> None:
        self.values = np.empty(0, np.uint8)

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, columns_first, content = state
        if not isinstance(kind, _NumpyKind) or kind.code != "u1" or not isinstance(content, bytes):
            raise _NotAllowed("it holds an array that is not of bytes")
        if math.prod(shape) != len(content):
            raise ValueError("an array's shape and content differ")
        self.values = np.frombuffer(content, np.uint8).reshape(shape, order="F" if columns_first else "C")


_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _NumpyKind,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        """Return the replacement of a name; refuse all other names."""
        if (module, name) not in _ALLOWED:
            raise _NotAllowed(f"it asks for {module}.{name}, which no batch needs and which is not run")
        return _ALLOWED[module, name]


def unpickle(content: bytes) -> Any:
    """Read a pickle of dictionaries, lists, numbers, texts (as bytes) and arrays of bytes."""
    return _Unpickler(io.BytesIO(content), encoding="bytes").load()


def read_batches(place: Path, folder: str, names: Sequence[str], label: str) -> tuple[np.ndarray, np.ndarray]:
    """Read batches out of the archive, one after another.

    Shapes: x (rows, 3, 32, 32), y (rows,).
    """
    found = []
    try:
        with tarfile.open(place) as archive:
            for name in names:
                member = archive.getmember(f"{folder}/{name}")
                stream = archive.extractfile(member)
                if stream is None or member.size > _MOST_BYTES:
                    raise broken(place, _WHAT, f"{name} in it is not a file of a batch's size")
                found.append(_read_batch(place, name, stream.read(), label))
    except KeyError as error:
        raise broken(place, _WHAT, f"there is no {folder}/{name} in it") from error
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise broken(place, _WHAT, error) from error
    return np.concatenate([x for x, _ in found]), np.concatenate([y for _, y in found])


def _read_batch(place: Path, name: str, content: bytes, label: str) -> tuple[np.ndarray, np.ndarray]:
    try:
        batch = unpickle(content)
        images, labels = batch[b"data"], batch[label.encode()]
        if not isinstance(images, _Array) or not all(type(number) is int for number in labels):
            raise TypeError("its images are not an array, or its labels not numbers")
        return images.values.reshape(len(labels), 3, SIDE, SIDE), np.array(labels, np.int64)
    except _BROKEN as error:
        text = f"no {error}" if isinstance(error, KeyError) else error
        raise broken(place, _WHAT, f"{name}: {text or type(error).__name__}") from error
