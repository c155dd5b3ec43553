"""Keep the checkpoints of live runs as files of their worker."""

from __future__ import annotations

import contextlib
import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from bnnviz import files, paths
from bnnviz.engine.throttle import Throttle

STALE_S = 24 * 3600.0  # untouched checkpoints are removed after this time

log = logging.getLogger(__name__)


class Checkpoints:
    """Manage the checkpoint files of one worker, written one after another in a separate thread."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or paths.live()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="bnnviz-checkpoint")

    def path(self, run_id: str) -> Path:
        """Return the file of a run."""
        return self.folder / f"{run_id}.ckpt"

    def read(self, run_id: str) -> bytes | None:
        """Return the last checkpoint of a run, or None without one."""
        try:
            return self.path(run_id).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, run_id: str, data: bytes, pace: Throttle | None = None) -> Future[None]:
        """Write a checkpoint in the background, and add the time it takes to the cost of ``pace``."""
        return self._writer.submit(self._write, run_id, data, pace)

    def remove(self, run_id: str) -> None:
        """Remove the checkpoint of a run, after all its pending writes."""
        self._writer.submit(self.path(run_id).unlink, missing_ok=True)

    def sweep(self) -> None:
        """Remove the files of dead workers, in the background."""
        self._writer.submit(self._sweep)

    def close(self) -> None:
        """Finish the pending writes."""
        self._writer.shutdown(wait=True)

    def _write(self, run_id: str, data: bytes, pace: Throttle | None) -> None:
        begin = time.perf_counter()
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            files.write_whole(self.path(run_id), data)
        except OSError as error:
            log.warning("the checkpoint of live run %s could not be written: %s", run_id, error)
        if pace is not None:
            pace.cost += time.perf_counter() - begin

    def _sweep(self) -> None:
        oldest = time.time() - STALE_S
        for path in [*self.folder.glob("*.ckpt"), *self.folder.glob(files.HALF_WRITTEN)]:
            # another worker on this machine may sweep the same file
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()
