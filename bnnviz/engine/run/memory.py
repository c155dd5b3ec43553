"""How the C library keeps memory between the steps of a sampler."""

from __future__ import annotations

import ctypes
import functools

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of glibc's mallopt
_KEPT_FREE, _LARGE = 32 << 20, 4 << 20  # bytes


@functools.cache
def keep_freed() -> bool:
    """Have freed memory up to 32 MB kept for the next step; return whether this C library can do that.

    By default glibc gives blocks from 128 kB on back to the system, which hands them out again page by page, cleared:
    for steps that need the same few blocks again and again that takes longer than the arithmetic.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT_FREE)) and bool(mallopt(_MMAP_THRESHOLD, _LARGE))
