"""What writes a run to disk while it goes on, so that nothing is lost when the process ends.

A recording is a folder:

- ``header.json``: spec, versions, device; written once, and again at the end;
- ``draws.zarr``: what ArviZ opens: the group ``posterior`` with ``x`` (chain, draw, coordinate), and the group
  ``sample_stats`` with ``log_weight`` where draws have weights;
- ``checkpoint-N``: all that is needed to go on after step N, but for the draws;
- ``progress.json``: how many draws of each chain are whole, and which checkpoint goes with them.

Each is written beside its place and moved there, the progress last: whenever the process ends, what the progress
speaks of is there. Draws beyond it are written anew, the same again, by a run that goes on.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bnnviz.engine.recording import header
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import zarr

    from bnnviz.engine.run import Run

FORMAT = 1
HEADER, PROGRESS, DRAWS = "header.json", "progress.json", "draws.zarr"
_CHUNK = 1 << 22  # bytes of draws that are written at once
_EVERY_S = 2.0
_SHARE = 0.03  # of the run's time that writing may take
_ARRAYS = {"store": ("posterior", "x"), "logs": ("sample_stats", "log_weight")}


class Recorder:
    """Keeps a run on disk.

    Parameters
    ----------
    run : Run
    folder : Path
        That is new, or empty, or holds the recording that the run goes on from.
    every_s : float, default 2
        Seconds between two writes, at least; longer where a write takes more than a thirtieth of them.

    Raises
    ------
    BnnvizError
        If the folder cannot be written to, holds something else, or the run has no number of draws.
    """

    def __init__(self, run: Run, folder: Path, every_s: float = _EVERY_S) -> None:
        if run.spec.draws is None:
            raise BnnvizError("A run without an end cannot be recorded; say how many draws to make.", "draws")
        self.run, self.folder, self.every_s = run, Path(folder), every_s
        self._last, self._cost = time.perf_counter(), 0.0
        self._whole = 0  # draws of all chains that are on disk
        known = read_progress(self.folder) if (self.folder / PROGRESS).exists() else None
        try:
            self._arrays = self._open() if known else self._make()
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        if known:
            self._whole = min(known["counts"])

    def note(self, now: bool = False) -> bool:
        """Write what is new, if it is time for that or ``now``; return whether it was written.

        Raises
        ------
        BnnvizError
            If the disk is full or cannot be written to; what was written before stays.
        """
        begun = time.perf_counter()
        if not now and begun - self._last < max(self.every_s, self._cost / _SHARE):
            return False
        try:
            self._write()
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        self._last = time.perf_counter()
        self._cost = self._last - begun
        return True

    def close(self) -> None:
        """Write what is new, and what is known at the end; arrays end where the draws do.

        Raises
        ------
        BnnvizError
            As `note`.
        """
        self.note(now=True)
        try:
            whole = self.run.store.common(self.run.alive)
            if self.run.finished:
                for array in self._arrays.values():
                    array.resize((array.shape[0], whole, *array.shape[2:]))
            write_json(self.folder / HEADER, _header(self.run))
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    def _make(self) -> dict[str, zarr.Array]:
        import zarr

        self.folder.mkdir(parents=True, exist_ok=True)
        if any(self.folder.iterdir()):
            raise BnnvizError(f"The folder {self.folder} is not empty; give a recording a new one.", "out")
        root = zarr.open_group(self.folder / DRAWS, mode="w", zarr_format=3)
        root.attrs["bnnviz"] = json.dumps(_header(self.run))
        arrays = {}
        for name, (group, variable) in _ARRAYS.items():
            store = getattr(self.run, name)
            if not store.buffer.shape[2]:
                continue
            arrays[name] = _array(root.require_group(group), variable, store.buffer)
            _label(root[group], store.buffer.shape, list(self.run.target.names()) if name == "store" else None)
        write_json(self.folder / HEADER, _header(self.run))
        return arrays

    def _open(self) -> dict[str, zarr.Array]:
        import zarr

        root = zarr.open_group(self.folder / DRAWS, mode="r+")
        found = {name: "/".join(path) for name, path in _ARRAYS.items()}
        return {name: root[path] for name, path in found.items() if path in root}

    def _write(self) -> None:
        run = self.run
        counts = run.store.counts.copy()
        for name, array in self._arrays.items():
            self._write_draws(array, getattr(run, name).buffer, int(counts.max()))
        mark = f"checkpoint-{run.steps}"
        write_whole(self.folder / mark, run.checkpoint(draws=False))
        progress = {"format": FORMAT, "counts": counts.tolist(), "alive": run.alive.tolist(), "checkpoint": mark}
        write_json(self.folder / PROGRESS, progress | {"finished": run.finished, "seconds": run.seconds})
        self._whole = int(counts.min())
        for old in self.folder.glob("checkpoint-*"):
            if old.name != mark:
                old.unlink(missing_ok=True)

    def _write_draws(self, array: zarr.Array, buffer: torch.Tensor, end: int) -> None:
        """Write the draws from the last chunk on that was not whole for all chains."""
        each = array.chunks[1]
        for first in range(self._whole // each * each, end, each):
            last = min(first + each, end)
            rows = buffer[:, first:last].cpu().numpy()
            array[:, first:last] = rows if array.ndim == 3 else rows[..., 0]


def _array(group: zarr.Group, variable: str, buffer: torch.Tensor) -> zarr.Array:
    """Return a new array for a store's draws, not yet written; (chains, draws) where there is one number of each."""
    chains, room, dim = buffer.shape
    each = max(1, min(room, _CHUNK // max(chains * dim * buffer.element_size(), 1)))
    dims, single = ("chain", "draw", "coordinate"), variable != "x"
    shape, chunks = (chains, room, dim), (chains, each, dim)
    return group.create_array(
        variable,
        shape=shape[:2] if single else shape,
        chunks=chunks[:2] if single else chunks,
        dtype=str(buffer.dtype).removeprefix("torch."),
        fill_value=float("nan"),
        dimension_names=dims[:2] if single else dims,
    )


def _label(group: zarr.Group, shape: tuple[int, ...], names: list[str] | None) -> None:
    """Write the coordinates of a group's arrays, as xarray reads them."""
    for name, size in zip(("chain", "draw"), shape, strict=False):
        array = group.create_array(name, shape=(size,), dtype="int64", dimension_names=(name,))
        array[:] = np.arange(size)
    if names is not None:
        array = group.create_array("coordinate", shape=(len(names),), dtype="str", dimension_names=("coordinate",))
        array[:] = np.array(names, dtype=object)


def _header(run: Run) -> dict[str, Any]:
    return {"format": FORMAT, **header(run)}


def write_whole(path: Path, content: bytes) -> None:
    """Write a file beside its place, make sure that it is on the disk, and move it there.

    Raises
    ------
    OSError
        If it cannot be written; what was there before is still there.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, whole or not at all."""
    write_whole(path, json.dumps(value).encode())


def _unwritable(folder: Path, error: OSError) -> BnnvizError:
    return BnnvizError(
        f"The recording {folder} cannot be written ({error.strerror or error}): free some of the disk, or record to"
        " another folder; what was written before is kept.",
        "out",
    )


# --- reading


def read_progress(folder: Path) -> dict[str, Any]:
    """Return what a recording says of how far it is.

    Raises
    ------
    BnnvizError
        If the folder is no recording, or one of another version.
    """
    try:
        found = json.loads((folder / PROGRESS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise BnnvizError(f"{folder} is no recording of a run that can be read.", "run") from None
    counts, alive = (found.get(name) if isinstance(found, dict) else None for name in ("counts", "alive"))
    sound = isinstance(counts, list) and isinstance(alive, list) and len(counts) == len(alive) > 0
    if not sound or found.get("format") != FORMAT or not all(isinstance(n, int) and n >= 0 for n in counts):
        raise BnnvizError(f"{folder} was not recorded by this version of bnnviz, or its progress is damaged.", "run")
    return found


def resume(folder: Path) -> Run:
    """Return the run of a recording as it was last written, which goes on with the draws that it would have made.

    Raises
    ------
    BnnvizError
        If the folder is no recording, or its checkpoint cannot be used.
    """
    import zarr

    from bnnviz.engine.run import Run

    folder = Path(folder)
    progress = read_progress(folder)
    try:
        data = (folder / str(progress["checkpoint"])).read_bytes()
        root = zarr.open_group(folder / DRAWS, mode="r")
        most = max(progress["counts"])
        draws, logs = (
            root[path][:, :most] if path in root else None for path in ("posterior/x", "sample_stats/log_weight")
        )
    except (OSError, KeyError, ValueError) as error:
        raise BnnvizError(f"The recording {folder} cannot be read ({error}).", "run") from error
    run = Run.restore(data)
    run.refill(draws, logs)
    return run
