"""Execute the live runs of a worker, each by a host in a thread of its own. Nothing here imports torch."""

from __future__ import annotations

import contextlib
import gc
import logging
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bnnviz import paths
from bnnviz.engine.cluster.checkpoints import Checkpoints
from bnnviz.engine.frames import codec
from bnnviz.engine.history.time_travel import COMMANDS as TRAVELS
from bnnviz.engine.host import STATUS, STEPS, FairLock, Host
from bnnviz.engine.throttle import Throttle
from bnnviz.errors import BnnvizError

START_S = 2.0  # between two frames of a run that looks for its start: longer than it takes to settle
SLICE_S = 0.02  # of work of all runs, after which commands and frames have their turn
LEAST_S = 0.005  # of work of one run
IDLE_S = 0.2  # between two looks at checkpoints and recordings when there is nothing to advance
ANSWER_S = 0.005  # the longest wait until a frame is on its way
SETTLE_S = 1.0  # slow parts of a frame are refreshed about once a second: frames are made for so long after a change
MOST_RUNS = 64  # live runs that a worker holds: memory is bounded
ALIVE = ("starting", "running")

log = logging.getLogger(__name__)


class Slot:
    """Hold a live run: its host, the thread that advances it, and what is asked of it."""

    def __init__(self, run_id: str, build: Callable[[Slot], Host], runs: LiveRuns) -> None:
        self.run_id, self._build, self._runs = run_id, build, runs  # `build` is called in the thread
        self.host: Host | None = None
        self.scene: dict[str, Any] | None = None
        self.state, self.message = "starting", ""
        self.about: str | None = None  # the setting that the message is about
        self.resumed: int | None = None  # the step at which a lost run was taken up again
        self.later: deque[tuple[str, dict[str, Any]]] = deque()  # commands that wait for the start of the run
        # Cleared while a frame is on its way: else both threads would take the interpreter from each other.
        self.answered = threading.Event()
        self.answered.set()
        self._spec: Any = None  # at the last frame or command
        self.version = self._drawn = self._spec_version = 0  # of all, of more than the status, of the spec
        self._changed_at = 0.0
        self.saved: tuple[Any, ...] | None = None  # the moment of the last checkpoint
        self.hurry = False  # a checkpoint is due sooner than after the usual time
        self.saving = Throttle()
        self.writing: Future[None] | None = None  # the last checkpoint
        self._farewell: str | None = None  # why the thread is to end; "" also removes the checkpoint
        self._lock, self._woken = FairLock(), threading.Event()
        self.thread = threading.Thread(target=self._main, name=f"bnnviz-live-{run_id[:8]}", daemon=True)

    def end(self, message: str = "") -> None:
        """End the run, which may be taken up again from its checkpoint; without a message remove the checkpoint."""
        if self._farewell is None:
            self._farewell = message
        self._woken.set()

    @property
    def alive(self) -> bool:
        """Whether the run is held and goes on."""
        return self.state in ALIVE and self._farewell is None

    @property
    def step(self) -> int:
        """Steps the run has done."""
        host = self.host
        return 0 if host is None else int(host.run.steps)

    @property
    def playing(self) -> bool:
        """Whether the run plays."""
        host = self.host
        return self.state == "running" and host is not None and host.playing

    # the thread

    def _main(self) -> None:
        with self._guarded():
            self._start()
        self.touch()
        self._runs.touch()
        while self._farewell is None:
            self._woken.clear()
            worked = False
            with self._runs.turn, self._lock, self._guarded():
                if not self.answered.wait(ANSWER_S):
                    self.answered.set()
                worked = self.state == "running" and self._work()
            if not worked and self._farewell is None:
                rest = self.host.rest if self.state == "running" else None
                self._woken.wait(IDLE_S if rest is None else min(rest, IDLE_S))
        with self._lock:
            self._leave()
        self._runs.remove(self)

    def _start(self) -> None:
        if sum(slot.host is not None for slot in self._runs.slots()) >= MOST_RUNS:
            raise BnnvizError(f"This worker already holds {MOST_RUNS} live runs; close another page and try again.")
        host = self._build(self)
        self.scene, self.saved = host.scene(), host.moment
        with self._lock:
            self.saving.spent()
            self.host, self.state = host, "running"

    def _work(self) -> bool:
        """Advance the run for a slice of time; return whether there was anything to do."""
        host = self.host
        while self.later and not host.waits:
            try:
                self._execute(*self.later.popleft())
            except BnnvizError as error:
                host.message = error.sentence
        before = host.moment, host.message
        worked = host.work(max(SLICE_S / max(1, self._runs.playing), LEAST_S))
        # On the way to its start a run does not step, but reports now and then how far it is.
        tells = host.run.phase == "start" and time.monotonic() >= self._changed_at + START_S
        if (host.moment, host.message) != before or (worked and tells):
            self.touch()
        if worked:
            self._look_for_end()
        if self.state == "running":
            self._runs.checkpoints.save(self, sum(slot.state == "running" for slot in self._runs.slots()))
        return worked

    def _look_for_end(self) -> None:
        """Note whether the run has ended by itself."""
        run = self.host.run
        if run.phase == "failed":
            log.error("live run %s stopped at step %d: %s", self.run_id, self.step, run.error)
            self._fail(str(run.error or "This run stopped without giving a reason."))
        elif run.finished:
            self.hurry = True
            self.host.end_recording()
            self.touch()
            self._runs.touch()

    def _leave(self) -> None:
        message = self._farewell
        if self.state == "running" and message:
            with self._guarded():
                self._runs.checkpoints.write_now(self)
        if self.host is not None:
            self.host.close()
        if not (self.state == "failed" and message):
            self.state, self.message = "ended", message or "This run was stopped."
        if not message:
            self._runs.checkpoints.remove(self.run_id)
        # Its memory goes now, not when the last caller has let go of the actor or Python next looks for cycles.
        self.host = self._spec = self._build = None
        gc.collect()

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Let an error end this run and no other."""
        try:
            yield
        except Exception as error:
            if self.state == "failed":  # what it has left may not be drawn
                return
            self.about = error.field if isinstance(error, BnnvizError) else None
            # A setting that cannot be is the user's to read, and nothing to trace.
            log.error("live run %s failed at step %d", self.run_id, self.step, exc_info=self.about is None)
            if isinstance(error, BnnvizError):
                self._fail(error.sentence)
                return
            cause = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
            self._fail(f"This run was stopped by an error ({cause}); the worker's log has the details.")

    def _fail(self, message: str) -> None:
        self.state, self.message = "failed", message
        if self.host is not None:
            self.host.playing = False
        self.touch()
        self._runs.touch()

    # commands and frames, from other threads

    def command(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        """Execute a command between two slices, or once the run is built and has its start; return the report."""
        with self._lock:
            if self.state not in ALIVE:
                raise BnnvizError(f"{self.message} Start it again to go on.")
            if self.host is None or self.later or (name in STEPS and self.host.waits):
                self.later.append((name, args))
                return self.report()
            refused = None
            with self._guarded():
                try:
                    self._execute(name, args)
                except BnnvizError as error:
                    refused = error
            if refused is not None or self.state == "failed":
                raise refused or BnnvizError(self.message)
            return self.report(full=True)

    def _execute(self, name: str, args: dict[str, Any]) -> None:
        self.host.command(name, **args)
        if name in TRAVELS or name == "change":
            self.scene = self.host.scene()
        self.hurry = self.hurry or name in (*TRAVELS, "change", "pause")
        self._look_for_end()
        self.touch()
        self._runs.touch()
        self._woken.set()

    def frame(self, want: list[str], seen: int) -> bytes:
        """Return the report and a frame, pickled."""
        with self._lock:
            frame = None
            if self.host is not None:
                with self._guarded():
                    frame = self.host.frame(want)
            if frame is None:
                return self.nothing_new()
            if self.host.run.spec is not self._spec:
                self._spec, self._spec_version = self.host.run.spec, self.version
            if STATUS in frame:
                frame[STATUS]["shared"] = self._runs.playing
            self.answered.clear()
            report = self.report(full=seen < self._spec_version)
            return codec.dumps(report | {"frame": frame if frame.keys() > {"seq"} else None})

    # what has changed

    def touch(self) -> None:
        """Note that something has changed that a frame could show."""
        self.version += 1
        self._drawn, self._changed_at = self.version, time.monotonic()

    def changed(self, want: list[str], seen: int) -> list[str]:
        """Return the parts of a frame that may have changed for a caller who has seen a version."""
        settled = time.monotonic() - self._changed_at > SETTLE_S
        if self.host is None or (seen == self.version and settled):
            return []
        if seen >= self._drawn and settled:
            return [part for part in want if part == STATUS]
        return want

    def report(self, full: bool = False) -> dict[str, Any]:
        """Return what a caller must know besides the frame; in full with the spec and the change log of the run."""
        host = self.host
        report = {
            "state": self.state,
            "message": self.message,
            "field": self.about,
            "step": self.step,
            "resumed": self.resumed,
            "version": self.version,
            "held": host is not None,
            "playing": self.playing,
        }
        if host is None:
            return report
        return report | {
            "state": "ended" if self.state == "running" and host.run.finished else self.state,
            "message": self.message or host.message,
            "speed": host.pace.speed,
            "record": host.record,
            "changes": len(host.log),
            **({"spec": host.run.spec, "log": host.log} if full else {}),
        }

    def nothing_new(self) -> bytes:
        """Return what a caller gets who gets no frame."""
        return pickle.dumps(self.report() | {"frame": None})


class LiveRuns:
    """Hold the live runs of a worker, and a pool of threads in which their frames are made."""

    def __init__(self, folder: Path | None = None) -> None:
        self.checkpoints = Checkpoints(folder or paths.live())
        self.pool = ThreadPoolExecutor(2 * MOST_RUNS, thread_name_prefix="bnnviz-frame")
        self.turn = FairLock()  # one run works at a time: more threads would keep frames from the interpreter
        self._slots: dict[str, Slot] = {}
        self._lock = threading.Lock()  # of the dictionary only

    def add(self, run_id: str, build: Callable[[Slot], Host]) -> Slot:
        """Begin a run; return its slot."""
        slot = Slot(run_id, build, self)
        with self._lock:
            self._slots[run_id] = slot
        self.checkpoints.sweep()
        slot.thread.start()
        return slot

    def remove(self, slot: Slot) -> None:
        """Forget a run that has ended."""
        with self._lock:
            if self._slots.get(slot.run_id) is slot:
                del self._slots[slot.run_id]
        self.touch()

    def touch(self) -> None:
        """Note that the status of all runs has changed: it has the number of those that play."""
        for slot in self.slots():
            slot.version += 1

    @property
    def playing(self) -> int:
        """Number of runs that play."""
        return sum(slot.playing for slot in self.slots())

    def census(self) -> list[dict[str, Any]]:
        """Return one row for each run that is held."""
        return [
            {"run_id": slot.run_id, "state": slot.state, "playing": slot.playing, "step": slot.step}
            for slot in self.slots()
            if slot.alive
        ]

    def close(self) -> None:
        """Save and end all runs."""
        slots = self.slots()
        for slot in slots:
            slot.end("The worker was shut down; the checkpoint of this run is kept.")
        for slot in slots:
            slot.thread.join()
        self.pool.shutdown(wait=False)
        self.checkpoints.close()

    def slots(self) -> list[Slot]:
        """Return the runs that are held or begun."""
        with self._lock:
            return list(self._slots.values())


# The runs of this process

_runs: LiveRuns | None = None
_runs_lock = threading.Lock()


def live_runs() -> LiveRuns:
    """Return the live runs of this process."""
    global _runs
    with _runs_lock:
        if _runs is None:
            _runs = LiveRuns()
        return _runs


def census() -> list[dict[str, Any]]:
    """Return one row for each live run of this process."""
    return [] if _runs is None else _runs.census()


def close() -> None:
    """Save and end the live runs of this process."""
    global _runs
    with _runs_lock:
        runs, _runs = _runs, None
    if runs is not None:
        runs.close()
