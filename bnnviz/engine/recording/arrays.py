"""Read the arrays of a recording (zarr), believing nothing of what they say of themselves."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import zarr

DRAWS = "draws.zarr"
X, LOG_WEIGHT, STEPS = "posterior/x", "sample_stats/log_weight", "steps/told"
#: The group of what each draw came with.
SAMPLE_STATS = "sample_stats"
#: What is raised where an array's description or its chunks are not what was written.
BROKEN = (OSError, LookupError, ValueError, TypeError, RuntimeError, MemoryError, AttributeError)
# Random numbers hardly shrink: what claims to be so many times its size on the disk is made up or empty.
_MOST_SHRINK, _FREE = 200, 1 << 26


def _group(folder: Path) -> zarr.Group | None:
    import zarr

    return zarr.open_group(folder, mode="r") if folder.is_dir() else None


def labels(folder: Path, group: str, name: str) -> list[str]:
    """Return the labels of an axis of the arrays in a group, or raise one of `BROKEN`."""
    found = _group(folder)[group][name]
    if found.ndim != 1 or found.shape[0] > _most(_sizes(folder / group / name)):
        raise ValueError("labels that the disk cannot hold")
    return [str(label) for label in found[:]]


def read(folder: Path, path: str, end: float, chains: int | None) -> np.ndarray | None:
    """Return an array up to a place, or raise one of `BROKEN`; None where there is no such array.

    Parameters
    ----------
    folder : Path
        Of the arrays.
    path : str
    end : float
        How many steps, or draws of each chain, are to be believed.
    chains : int or None
        That the array has to have; None: its first axis is of steps.
    """
    root = _group(folder)
    if root is None or path not in root:
        return None
    array, axis = root[path], 0 if chains is None else 1
    if chains not in (None, array.shape[0]):
        raise ValueError("another number of chains")
    end = int(min(array.shape[axis], end))
    _believe(array, folder / path / "c", [*array.shape[:axis], end, *array.shape[axis + 1 :]])
    return array[:end] if axis == 0 else array[:, :end]


def _believe(array: zarr.Array, folder: Path, region: list[int]) -> None:
    """Refuse an array that has other chunks than it says, or is far larger than its files."""
    grid = [math.ceil(size / each) for size, each in zip(region, array.chunks, strict=True)]
    sizes = _sizes(folder)
    # Their number first: a made-up shape may have more chunks than can be counted.
    there = math.prod(grid) <= len(sizes) and all(
        tuple(map(str, chunk)) in sizes for chunk in itertools.product(*map(range, grid))
    )
    if not there or math.prod(grid) * math.prod(array.chunks) * array.dtype.itemsize > _most(sizes):
        raise ValueError("an array that the disk cannot hold")


def _sizes(folder: Path) -> dict[tuple[str, ...], int]:
    """Return the bytes of each file in a folder, by the parts of its path."""
    return {file.relative_to(folder).parts: file.lstat().st_size for file in folder.rglob("*") if file.is_file()}


def _most(sizes: dict[tuple[str, ...], int]) -> int:
    return _FREE + _MOST_SHRINK * sum(sizes.values())
