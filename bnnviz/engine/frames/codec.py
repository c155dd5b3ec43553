"""Convert frames to files: npz archives with JSON that places their arrays."""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from typing import Any

import numpy as np

FORMAT = 1
# Errors of reading damaged bytes, in numpy, zipfile and here.
DAMAGE = (
    *(ValueError, KeyError, TypeError, AttributeError, IndexError, EOFError, SyntaxError),
    *(RecursionError, MemoryError, NotImplementedError, RuntimeError, zlib.error, zipfile.BadZipFile),
)
_ARRAY, _TUPLE = "$array", "$tuple"
_MOST = 1 << 30  # maximum bytes of an unpacked file


class OtherFormat(Exception):
    """Bytes of another version's format."""


def pack(tree: Any) -> bytes:
    """Pack a tree of dicts, lists, tuples, arrays and JSON values into bytes."""
    packer = _Packer()
    text = json.dumps({"format": FORMAT, "film": packer.put(tree)}, separators=(",", ":")).encode()
    out = io.BytesIO()
    np.savez_compressed(out, tree=np.frombuffer(text, np.uint8), **packer.arrays())
    return out.getvalue()


def unpack(content: bytes) -> Any:
    """Unpack the bytes of `pack`."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        if sum(member.file_size for member in file.infolist()) > _MOST:
            raise ValueError("the file would become too large")
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        stored = {name: found[name] for name in found.files}
    read = json.loads(stored.pop("tree").tobytes())
    if read["format"] != FORMAT:
        raise OtherFormat
    return _unpacked(read["film"], stored)


class _Packer:
    """Collect arrays by type, each only once."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[np.ndarray]] = {}
        self._ends: dict[str, int] = {}
        self._known: dict[tuple[str, bytes], int] = {}

    def put(self, value: Any) -> Any:
        """Return a JSON value with references to its arrays."""
        if isinstance(value, np.ndarray):
            return {_ARRAY: [value.dtype.name, list(value.shape), self._place(value)]}
        if isinstance(value, dict):
            if not all(isinstance(key, str) and not key.startswith("$") for key in value):
                raise TypeError(f"the keys of frames are texts, and none begins with a $: {list(value)}")
            return {key: self.put(each) for key, each in value.items()}
        if isinstance(value, tuple):
            return {_TUPLE: [self.put(each) for each in value]}
        return [self.put(each) for each in value] if isinstance(value, list) else value

    def arrays(self) -> dict[str, np.ndarray]:
        """Return one array per type."""
        return {name: np.concatenate(pieces) for name, pieces in self._pieces.items()}

    def _place(self, array: np.ndarray) -> int:
        if array.dtype.kind not in "biuf":
            raise TypeError(f"the arrays of frames are of numbers, not {array.dtype}")
        name = array.dtype.name
        key = (name, array.tobytes())
        if key not in self._known:
            self._known[key] = self._ends.get(name, 0)
            self._ends[name] = self._known[key] + array.size
            self._pieces.setdefault(name, []).append(array.ravel())
        return self._known[key]


def _unpacked(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_unpacked(each, arrays) for each in value]
    if not isinstance(value, dict):
        return value
    if _TUPLE in value:
        return tuple(_unpacked(each, arrays) for each in value[_TUPLE])
    if _ARRAY not in value:
        return {key: _unpacked(each, arrays) for key, each in value.items()}
    name, shape, place = value[_ARRAY]
    if place < 0 or any(size < 0 for size in shape):
        raise ValueError("an array exceeds the file")
    return arrays[name][place : place + math.prod(shape)].reshape(shape).copy()
