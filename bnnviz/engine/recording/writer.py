"""Write a run to disk while it samples, so that nothing is lost when the process ends.

`bnnviz.engine.recording.reader` describes the format. Each part is written to a temporary file and renamed, the
progress last, so that the progress only names complete parts. A resumed run rewrites draws beyond the progress.

Draws of a run with an end are appended as they come. A run without an end thins its draws and drops them when a
setting changes: its checkpoints hold the draws, and the array is written at the end.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bnnviz import paths
from bnnviz.engine.monitor.summary import summarise
from bnnviz.engine.protocol import AnyRun
from bnnviz.engine.recording.arrays import DRAWS, LOG_WEIGHT, SAMPLE_STATS, X, opened
from bnnviz.engine.recording.arviz import header
from bnnviz.engine.recording.lock import LOCK, RecordingGone, RecordingLock
from bnnviz.engine.recording.reader import FILE, FORMAT, HEADER, PROGRESS, START, SUMMARY, Recording, check_zarr
from bnnviz.engine.throttle import Throttle
from bnnviz.errors import BnnvizError
from bnnviz.files import HALF_WRITTEN, make_private, to_json, write_json, write_whole

if TYPE_CHECKING:
    import zarr


_CHUNK = 1 << 20  # bytes of draws per file
_EVERY_S = 2.0
_SHARE = 0.02  # maximum fraction of the time spent on writing
_GROUPS = "posterior", SAMPLE_STATS
# Incomplete or partly removed folders: a process may end while creating or removing one.
_COMING, _GOING = ".coming", ".going"


class RecordingWriter:
    """Write a run to disk."""

    def __init__(self, run: AnyRun, folder: str | os.PathLike[str], every_s: float = _EVERY_S) -> None:
        check_zarr()
        self.run, self.folder = run, Path(folder)
        self._pace = Throttle(_SHARE, least=every_s)
        self._pace.spent()
        self._begun = time.perf_counter()  # start of the current write
        self._written = self._state
        self._whole = 0  # common draws of all chains on disk
        self._checkpoint: dict[str, Any] = {}  # file, step, size and checksum of the last one
        try:
            if self.folder.parent == paths.recordings():
                make_private(self.folder.parent)
            if (self.folder / PROGRESS).exists():
                self._lock = RecordingLock(self.folder)
                self._arrays = self._open()
            else:
                self._arrays = self._make()
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    def note(self, now: bool = False) -> bool:
        """Write new data if it is due or ``now``; return whether it was written."""
        self._lock.check()
        if not now and (self._state == self._written or not self._pace.due):
            return False
        self._begun = time.perf_counter()
        self._pace.spent(self._pace.cost)  # also if it fails
        try:
            self._write()
        except OSError as error:
            self._lock.check()
            raise _unwritable(self.folder, error) from error
        self._written = self._state
        self._pace.spent(time.perf_counter() - self._begun)
        return True

    @property
    def _state(self) -> tuple[Any, ...]:
        return self.run.steps, self.run.phase, len(self.run.changes)

    def close(self, summary: bool = True) -> None:
        """Write the remaining data and the final results, and unlock the folder."""
        try:
            self.note(now=True)
        except RecordingGone:
            self._lock.release()
            raise
        try:
            if self.run.spec.draws is None:
                self._write_array_at_once()
            elif self.run.phase == "done":
                for array in self._arrays.values():  # to the common draws of all living chains
                    _lengthen(array, self.run.store.common(self.run.alive))
            if summary and self.run.store.common(self.run.alive):
                write_json(self.folder / SUMMARY, {"format": FORMAT, **to_json(summarise(self.run))})
            self._write_header()
            self._lock.release(remove=True)
        except OSError as error:
            self._lock.check()
            raise _unwritable(self.folder, error) from error
        finally:
            self._lock.release()

    def abandon(self) -> None:
        """Write nothing more, and unlock the folder."""
        self._lock.release()

    # --- beginning

    def _make(self) -> dict[str, zarr.Array]:
        """Write the recording to a temporary place and rename it, so that a process may end at any time."""
        place = self.folder
        if place.is_dir() and any(path.name != LOCK for path in place.iterdir()):
            raise BnnvizError(f"The folder {place} is not empty; give a recording a new one.", "out")
        place.parent.mkdir(parents=True, exist_ok=True)
        for left in place.parent.glob(f".{glob.escape(place.name)}.*"):  # of a process killed here
            with contextlib.suppress(BnnvizError, OSError):
                RecordingLock(left).release()
                shutil.rmtree(left)
        self.folder = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}."))
        try:
            self._lock = RecordingLock(self.folder)
            self._arrays = self._begin()
            self._write()
            (place / LOCK).unlink(missing_ok=True)  # of a writer killed before it had made the rest
            self._move(place)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self.folder = self._lock.folder = place
        root = opened(place / DRAWS, "r+")
        return {path: root[path] for path in self._arrays}

    def _move(self, place: Path) -> None:
        try:
            self.folder.rename(place)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise BnnvizError(
                f"Another process has begun a recording at {place}; choose another name for this one.", "record"
            ) from error

    def _begin(self) -> dict[str, zarr.Array]:
        """Write the static data of the run, and empty arrays."""
        if self.run.spec.target_attachment is not None:
            write_whole(self.folder / FILE, self.run.spec.target_attachment)
        if self.run.begun.start_points is not None:
            write_whole(self.folder / START, self.run.begun.start_points)
        self._write_header()
        import zarr

        # Never recreated: the user may have moved the folder away.
        root = zarr.open_group(self.folder / DRAWS, mode="w-", zarr_format=3)
        root.attrs["bnnviz"] = json.dumps(header(self.run))
        return self._new_arrays(root) if self.run.spec.draws is not None else {}

    def _new_arrays(self, root: zarr.Group) -> dict[str, zarr.Array]:
        arrays = {}
        for path, buffer in _buffers(self.run).items():
            names = list(self.run.target.names()) if path == X else None
            arrays[path] = _new_array(root, path, buffer, names)
        return arrays

    def _open(self) -> dict[str, zarr.Array]:
        """Open the arrays of the resumed recording and discard the steps that will be repeated."""
        for left in (*self.folder.rglob("*.partial"), *self.folder.glob(HALF_WRITTEN)):  # of a killed process
            left.unlink(missing_ok=True)
        known = Recording(self.folder)
        self._whole = int(self.run.store.counts.min())
        if self.run.steps < known.progress["steps"]:
            # Keep everything named by the progress.
            self._write_checkpoint()
            self._write_progress()
        if self.run.spec.draws is None:
            self._remove_arrays()  # until the end, only the checkpoint has the draws
        root = opened(self.folder / DRAWS, "r+")
        return {path: root[path] for path in _buffers(self.run) if path in root}

    # --- writing

    def _write(self) -> None:
        run = self.run
        if run.spec.draws is not None:
            end = int(run.store.counts.max())
            for path, buffer in _buffers(run).items():
                if path in self._arrays:
                    self._write_draws(self._arrays[path], buffer, self._whole, end)
        _settle(self.folder / DRAWS, self._begun)
        self._write_checkpoint()
        self._write_progress()
        self._whole = int(run.store.counts.min())
        for old in self.folder.glob("checkpoint-*"):
            if old.name != self._checkpoint["file"]:
                old.unlink(missing_ok=True)

    def _write_draws(self, array: zarr.Array, buffer: torch.Tensor, whole: int, end: int) -> None:
        """Write the draws from the last chunk on that was incomplete for any chain."""
        _lengthen(array, end)
        each = array.chunks[1]
        for first in range(whole // each * each, end, each):
            last = min(first + each, end)
            rows = buffer[:, first:last].cpu().numpy()
            array[:, first:last] = rows if array.ndim == 3 else rows[..., 0]

    def _write_checkpoint(self) -> None:
        run = self.run
        content = run.checkpoint(draws=run.spec.draws is None)
        digest = hashlib.sha256(content).hexdigest()
        # Never overwritten: the last progress refers to the last checkpoint until the next one is written.
        name = f"checkpoint-{run.steps}-{digest[:12]}"
        write_whole(self.folder / name, content)
        self._checkpoint = {"file": name, "step": run.steps, "size": len(content), "sha256": digest}

    def _write_progress(self) -> None:
        run = self.run
        progress = {
            "format": FORMAT,
            "counts": run.store.counts.tolist(),
            "alive": run.alive.tolist(),
            "checkpoint": self._checkpoint,
            "spec": run.spec.to_json(),
            "changes": run.changes,
            "finished": run.finished,
            "phase": run.phase,
            "steps": run.steps,
            "seconds": run.seconds,
            "gradients": run.gradients,
            "error": None if run.error is None else str(run.error),
        }
        write_json(self.folder / PROGRESS, progress)

    def _write_header(self) -> None:
        write_json(self.folder / HEADER, {"format": FORMAT, **to_json(header(self.run))})

    # --- ending

    def _write_array_at_once(self) -> None:
        """Write the draws of a run without an end atomically; its checkpoint has them too."""
        import zarr

        self._remove_arrays()
        coming = self.folder / _COMING
        arrays = self._new_arrays(zarr.open_group(coming, mode="w-", zarr_format=3))
        whole = self.run.store.common(self.run.alive)
        for path, buffer in _buffers(self.run).items():
            self._write_draws(arrays[path], buffer, 0, whole)
        _settle(coming, self._begun)
        for group in reversed(_GROUPS):  # draws last: weights exist wherever draws do
            if (coming / group).is_dir():
                (coming / group).rename(self.folder / DRAWS / group)
        shutil.rmtree(coming)

    def _remove_arrays(self) -> None:
        """Remove the arrays of draws, and leftovers of a process killed while creating or removing some."""
        for left in (self.folder / _COMING, self.folder / _GOING):
            if left.is_dir():
                shutil.rmtree(left)
        for group in _GROUPS:
            if (self.folder / DRAWS / group).is_dir():
                (self.folder / DRAWS / group).rename(self.folder / _GOING)
                shutil.rmtree(self.folder / _GOING)


def _buffers(run: AnyRun) -> dict[str, torch.Tensor]:
    """Return the data written for each draw by array path, (chains, draws, numbers)."""
    stats = run.draw_stats.buffer
    columns = {f"{SAMPLE_STATS}/{name}": stats[..., k : k + 1] for k, name in enumerate(run.sampler.sample_stats())}
    weights = {LOG_WEIGHT: run.logs.buffer} if run.sampler.traits.weighted else {}
    return {X: run.store.buffer, **weights, **columns}


def _new_array(root: zarr.Group, path: str, buffer: torch.Tensor, names: list[str] | None) -> zarr.Array:
    """Return a new empty array for a store's draws; (chain, draw) for scalars."""
    from zarr.codecs import Crc32cCodec, ZstdCodec

    chains, room, dim = buffer.shape
    each = max(1, min(room, _CHUNK // max(chains * dim * buffer.element_size(), 1)))
    group, _, variable = path.rpartition("/")
    group = root.require_group(group)
    ndim = 2 if names is None else 3
    array = group.create_array(
        variable,
        shape=(chains, 0, dim)[:ndim],
        chunks=(chains, each, dim)[:ndim],
        dtype=str(buffer.dtype).removeprefix("torch."),
        fill_value=float("nan"),
        dimension_names=("chain", "draw", "coordinate")[:ndim],
        compressors=[ZstdCodec(level=1), Crc32cCodec()],  # fast, with a checksum
        config={"write_empty_chunks": True},
    )
    _label(group, "chain", np.arange(chains))
    if names is not None:
        _label(group, "coordinate", np.array(names, dtype=object))
    return array


def _label(group: zarr.Group, name: str, values: np.ndarray) -> None:
    kind = "str" if values.dtype == object else values.dtype
    # Overwritten if a process was killed between writing the label and its array.
    array = group.create_array(name, shape=values.shape, dtype=kind, dimension_names=(name,), overwrite=True)
    array[:] = values


def _lengthen(array: zarr.Array, end: int) -> None:
    if array.shape[1] != end:
        array.resize((array.shape[0], end, *array.shape[2:]))


def _settle(folder: Path, since: float) -> None:
    """Flush the files of a folder to disk."""
    newest = time.time() - (time.perf_counter() - since) - 1.0
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_mtime >= newest:
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _unwritable(folder: Path, error: OSError) -> BnnvizError:
    return BnnvizError(
        f"The recording {folder} cannot be written ({error.strerror or error}): free some of the disk, or record to"
        " another folder; earlier data are kept.",
        "out",
    )
