"""Hold the live runs of a worker, and their checkpoints as files. Nothing here imports torch."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bnnviz import files, paths
from bnnviz.engine.cluster.live_run import ALIVE, LiveRun
from bnnviz.engine.host import FairLock
from bnnviz.engine.throttle import Throttle
from bnnviz.errors import BnnvizError

MOST_RUNS = 64  # live runs that a worker holds: memory is bounded


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


class LiveRuns:
    """Hold the live runs of a worker, and a pool of threads in which their frames are made."""

    def __init__(self, folder: Path | None = None) -> None:
        self.checkpoints = Checkpoints(folder)
        self.pool = ThreadPoolExecutor(2 * MOST_RUNS, thread_name_prefix="bnnviz-frame")
        self.turn = FairLock()  # one run works at a time: more threads would keep frames from the interpreter
        self._runs: dict[str, LiveRun] = {}
        self._lock = threading.Lock()  # of the dictionary only

    def add(self, spec: Any, run_id: str, **options: Any) -> LiveRun:
        """Begin a run, and return it."""
        run = LiveRun(spec, run_id, self, **options)
        with self._lock:
            self._runs[run_id] = run
        self.checkpoints.sweep()
        run.thread.start()
        return run

    def check_room(self) -> None:
        """Raise if the worker holds as many runs as it may."""
        if sum(run.host is not None for run in self.each()) >= MOST_RUNS:
            raise BnnvizError(f"This worker already holds {MOST_RUNS} live runs; close another page and try again.")

    def remove(self, run: LiveRun) -> None:
        """Forget a run that has ended."""
        with self._lock:
            if self._runs.get(run.run_id) is run:
                del self._runs[run.run_id]

    @property
    def playing(self) -> int:
        """Number of runs that play."""
        return sum(run.playing for run in self.each())

    def census(self) -> list[dict[str, Any]]:
        """Return one row for each run that is held and goes on."""
        return [
            {"run_id": run.run_id, "state": run.state, "playing": run.playing, "step": run.step}
            for run in self.each()
            if run.state in ALIVE and run.farewell is None
        ]

    def close(self) -> None:
        """Save and end all runs."""
        runs = self.each()
        for run in runs:
            run.end("The worker was shut down; the checkpoint of this run is kept.")
        for run in runs:
            run.thread.join()
        self.pool.shutdown(wait=False)
        self.checkpoints.close()

    def each(self) -> list[LiveRun]:
        """Return the runs that are held or begun."""
        with self._lock:
            return list(self._runs.values())


#: The runs of this process.
RUNS = LiveRuns()


def census() -> list[dict[str, Any]]:
    """Return one row for each live run of this process."""
    return RUNS.census()
