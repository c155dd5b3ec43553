"""Hold the live runs of a worker. Nothing here imports torch."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bnnviz.engine.cluster.checkpoints import Checkpoints
from bnnviz.engine.cluster.live_run import ALIVE, LiveRun
from bnnviz.engine.host import FairLock
from bnnviz.errors import BnnvizError

MOST_RUNS = 64  # live runs that a worker holds: memory is bounded


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
