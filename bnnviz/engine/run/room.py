"""Allocate the draws of a run, in memory or in a file, and reject runs that exceed the memory."""

from __future__ import annotations

import errno
import math
import mmap
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bnnviz import memory, paths
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    from bnnviz.samplers import Sampler
    from bnnviz.targets import Target

# Bytes of draws on a CPU from which on a file holds them, and maximum bytes before a flush.
_IN_MEMORY, _UNWRITTEN = 1 << 27, 1 << 26
_ROW_BYTES = 4  # of the random number per row for minibatches


def check_state(sampler: Sampler, target: Target, chains: int, dtype: torch.dtype, device: torch.device) -> None:
    """Raise for chains that exceed the memory, including the memory of one step."""
    free = _free_on(device)
    width = type(sampler).width  # some samplers know it only after preparation
    numbers = (width if isinstance(width, int) else 1) * chains * target.dim
    memory.check(
        2 * numbers * dtype.itemsize,
        f"{chains:,} chains in {target.dim:,} dimensions",
        "take fewer chains, or a smaller target",
        "chains",
        free,
    )
    if getattr(sampler, "batch_size", None) is not None:
        rows = getattr(target, "examples", 0)
        memory.check(
            _ROW_BYTES * chains * rows,
            f"Batches of {rows:,} rows for {chains:,} chains",
            "take fewer chains or rows",
            "chains",
            free,
        )


def _free_on(device: torch.device) -> int | None:
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None


class Room:
    """A tensor of zeros; a large one on a CPU is an unnamed file with its active pages in memory."""

    def __init__(self, shape: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> None:
        size = math.prod(shape) * dtype.itemsize
        if device.type != "cpu":
            memory.check(size, "The draws", "keep fewer draws, or take the CPU", "draws", _free_on(device))
        self._map: mmap.mmap | None = None
        self._unwritten = 0
        if device.type != "cpu" or size <= _IN_MEMORY:
            self.tensor = torch.zeros(shape, device=device, dtype=dtype)
            return
        self._map = _mapped(size)
        self.tensor = torch.frombuffer(self._map, dtype=dtype).view(shape)

    def written(self, x: Tensor) -> None:
        """Count written bytes and release flushed pages from memory."""
        if self._map is None:
            return
        self._unwritten += x.numel() * x.element_size()
        if self._unwritten >= _UNWRITTEN:
            self._unwritten = 0
            self._map.flush()
            self._map.madvise(mmap.MADV_DONTNEED)


def _mapped(size: int) -> mmap.mmap:
    """Map an anonymous file of ``size`` bytes with reserved disk space."""
    folder = paths.draws()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if size > shutil.disk_usage(folder).free:  # some disks would be filled before they report it
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with tempfile.TemporaryFile(dir=folder) as file:
            # Without reserved disk space a write to the map would end the process.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            return mmap.mmap(file.fileno(), size)
    except OSError as error:
        raise BnnvizError(
            f"The draws take {size / 1e9:.1f} GB, which the folder {folder} cannot hold ({error.strerror}): keep fewer"
            " draws, or set BNNVIZ_HOME to a folder on a larger disk.",
            "draws",
        ) from error
