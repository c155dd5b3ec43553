"""Read files in the idx format of MNIST (Y. LeCun, C. Cortes): a header of big-endian numbers, then bytes."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np

from bnnviz.data.formats import reading

_BYTES = 8  # the code of unsigned bytes
_MOST_BYTES = 2**32
_GZIP = b"\x1f\x8b"


def read_idx(place: Path) -> np.ndarray:
    """Read an idx file of unsigned bytes."""
    with reading(place, "idx file"):
        with place.open("rb") as plain:
            packed = plain.read(2) == _GZIP
        with (gzip.open if packed else open)(place, "rb") as stream:
            start = stream.read(4)
            if len(start) < 4 or start[:2] != b"\0\0":
                raise ValueError("it does not start with two zeros")
            if start[2] != _BYTES or not start[3]:
                raise ValueError("it does not hold unsigned bytes")
            header = stream.read(4 * start[3])
            if len(header) < 4 * start[3]:
                raise ValueError("its header is cut off")
            shape = tuple(int(size) for size in np.frombuffer(header, ">u4"))
            size = math.prod(shape)
            if size > _MOST_BYTES:
                raise ValueError(f"its header declares {size} bytes")
            content = stream.read(size + 1)
        if len(content) != size:
            more = "more" if len(content) > size else "fewer"
            raise ValueError(f"it holds {more} than the {size} bytes that its header declares")
    return np.frombuffer(content, np.uint8).reshape(shape)
