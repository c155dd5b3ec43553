"""Check and read an untrusted recording: JSON files, which may have forged checksums, and arrays (zarr)."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bnnviz.files import plain_json
from bnnviz.specs.forms import (
    is_amount,
    is_change,
    is_count,
    is_digest,
    is_flag,
    is_message,
    is_name,
    is_object,
    is_phase,
    is_spec,
    is_text,
    list_of,
    matches,
    or_none,
    record,
)

if TYPE_CHECKING:
    import numpy as np
    import zarr


DRAWS = "draws.zarr"
X, LOG_WEIGHT = "posterior/x", "sample_stats/log_weight"
#: The group of the draws' statistics.
SAMPLE_STATS = "sample_stats"
#: Errors of reading a damaged description or damaged chunks of an array.
BROKEN = (OSError, LookupError, ValueError, TypeError, RuntimeError, MemoryError, AttributeError)
# Random numbers hardly compress: an array much larger than its files is forged or empty.
_MOST_SHRINK, _FREE = 200, 1 << 26


# Codecs of `bnnviz.engine.recording.writer`. Others may run code from the file, as "pickle" did.
_CODECS = frozenset({"bytes", "crc32c", "vlen-utf8", "zstd"})
_DESCRIPTION = "zarr.json"
_MOST_TEXT = 1 << 26  # maximum bytes of a description
_is_checkpoint = matches(re.compile(r"checkpoint-\d{1,15}-[0-9a-f]{12}"))
HEADER_FORM = {
    "bnnviz": is_name,
    "spec": is_spec,
    "changes": list_of(is_change),
    "device": is_name,
    "notes": list_of(is_message),
    "torch": is_name,
    "threads": is_count,
    "kernel": is_name,
    "steps": is_count,
    "stats": is_object,
    "data_sha256": or_none(is_digest),
}
_CHECKPOINT = {"file": _is_checkpoint, "step": is_count, "size": is_count, "sha256": is_digest}
PROGRESS_FORM = {
    "counts": list_of(is_count, least=1),
    "alive": list_of(is_flag, least=1),
    "checkpoint": record(_CHECKPOINT),
    "spec": is_spec,
    "changes": list_of(is_change),
    "finished": is_flag,
    "phase": is_phase,
    "steps": is_count,
    "seconds": is_amount,
    "gradients": is_amount,
    "error": or_none(is_text),
}


def opened(folder: Path, mode: Literal["r", "r+"] = "r") -> zarr.Group:
    """Open the arrays of a recording, or raise one of `BROKEN`: zarr format 3 only, with codecs that run no code."""
    for level in ("", "*/", "*/*/"):
        for path in folder.glob(level + _DESCRIPTION):
            if path.lstat().st_size > _MOST_TEXT:
                raise ValueError("a description that is too long")
            found = plain_json(path.read_text(encoding="utf-8"))
            if found["zarr_format"] != 3 or found.get("consolidated_metadata") is not None:
                raise ValueError("a description of another format")
            if unknown := {str(codec["name"]) for codec in found.get("codecs", [])} - _CODECS:
                raise ValueError(f"codecs that no recording has: {sorted(unknown)}")
    import zarr

    # Consolidated descriptions in the root may be of format 2, with its codecs.
    return zarr.open_group(folder, mode=mode, zarr_format=3, use_consolidated=False)


def labels(folder: Path, group: str, name: str) -> list[str]:
    """Return the labels of an axis of the arrays in a group, or raise one of `BROKEN`."""
    found = opened(folder)[group][name]
    if found.ndim != 1 or found.shape[0] > _most(_sizes(folder / group / name)):
        raise ValueError("labels that the disk cannot hold")
    return [str(label) for label in found[:]]


def read(folder: Path, path: str, end: int, chains: int) -> np.ndarray | None:
    """Return an array up to a position, or None without such an array; raise one of `BROKEN`."""
    if not folder.is_dir() or path not in (root := opened(folder)):
        return None
    array = root[path]
    if array.shape[0] != chains:
        raise ValueError("another number of chains")
    end = min(array.shape[1], end)
    _believe(array, folder / path / "c", [chains, end, *array.shape[2:]])
    return array[:, :end]


def _believe(array: zarr.Array, folder: Path, region: list[int]) -> None:
    """Raise for an array whose chunks are missing, or that is far larger than its files."""
    grid = [math.ceil(size / each) for size, each in zip(region, array.chunks, strict=True)]
    sizes = _sizes(folder)
    # Their number first: a forged shape may have more chunks than can be counted.
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
