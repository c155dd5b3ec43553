"""Execute one live run of a worker by a host in a thread of its own. This module does not import torch."""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import pickle
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from bnnviz.engine.history.time_travel import COMMANDS as TRAVELS
from bnnviz.engine.history.timeline import MAGIC
from bnnviz.engine.host import STATUS, STEPS, FairLock, Host
from bnnviz.engine.protocol import LoggedChange
from bnnviz.engine.throttle import Throttle
from bnnviz.errors import BnnvizError

START_S = 2.0  # between two frames of a run that looks for its start: longer than it takes to settle
SLICE_S = 0.04  # of work of all runs, after which commands and frames have their turn
_LEAST_SLICE_S = 0.005  # of work of one run
IDLE_S = 0.2  # between two looks at checkpoints and recordings when there is nothing to advance
ANSWER_S = 0.005  # the longest wait until a frame is on its way
SETTLE_S = 1.0  # slow parts of a frame are refreshed about once a second: frames are made for so long after a change
LEAST_S = 3.0  # between two checkpoints of a run without special events
SHARE = 0.05  # of the time for the checkpoints of all runs, at most
ALIVE = ("starting", "running")

log = logging.getLogger(__name__)


class LiveRun:
    """Build a run, advance it in a thread, and answer what is asked of it; its memory goes when it ends."""

    def __init__(self, spec: Any, run_id: str, runs: Any, **options: Any) -> None:
        self.run_id, self._runs = run_id, runs
        self.host: Host | None = None
        self.state, self.message = "starting", ""
        self.about: str | None = None  # the setting that the message is about
        self.resumed: int | None = None  # the step at which a lost run was taken up again
        self.later: deque[tuple[str, dict[str, Any]]] = deque()  # commands that wait for the start of the run
        # Cleared while a frame is on its way: else both threads would take the interpreter from each other.
        self.answered = threading.Event()
        self.answered.set()
        self._spec: Any = None  # at the last frame or command
        self.version = self._spec_version = 0
        self._shared = 0  # runs that play, at the last frame with a status
        self._changed_at = 0.0
        self._saved: tuple[Any, ...] | None = None  # the moment of the last checkpoint
        self._hurry = False  # a checkpoint is due sooner than after the usual time
        self._saving = Throttle()
        self._writing: Future[None] | None = None  # the last checkpoint
        self.farewell: str | None = None  # why the thread is to end; "" also removes the checkpoint
        self._lock, self._woken = FairLock(), threading.Event()
        self.begun = threading.Event()  # whether it is built, or cannot be
        name = f"bnnviz-live-{run_id[:8]}"
        self.thread = threading.Thread(target=self._main, args=(spec,), kwargs=options, name=name, daemon=True)

    def end(self, message: str = "") -> None:
        """End the run, which may be taken up again from its checkpoint; without a message remove the checkpoint."""
        if self.farewell is None:
            self.farewell = message
        self._woken.set()

    @property
    def step(self) -> int:
        """Steps of the run."""
        host = self.host
        return 0 if host is None else int(host.run.steps)

    @property
    def playing(self) -> bool:
        """Whether the run plays."""
        host = self.host
        return self.state == "running" and host is not None and host.playing

    # the thread

    def _main(self, spec: Any, **options: Any) -> None:
        with self._guarded():
            self._start(spec, **options)
        self.begun.set()
        self.touch()
        while self.farewell is None:
            self._woken.clear()
            worked = False
            with self._runs.turn, self._lock, self._guarded():
                if not self.answered.wait(ANSWER_S):
                    self.answered.set()
                worked = self.state == "running" and self._work()
            if not worked and self.farewell is None:
                rest = self.host.rest if self.state == "running" else None
                self._woken.wait(IDLE_S if rest is None else min(rest, IDLE_S))
        with self._lock:
            self._leave()
        self._runs.remove(self)

    def _start(
        self,
        spec: Any,
        *,
        factory: str,
        play: bool = False,
        speed: float | None = None,
        watch: dict[str, Any] | None = None,
        restore: bool = False,
        past: Iterable[LoggedChange] = (),
        record: str | None = None,
        origin: str | None = None,
    ) -> None:
        """Build the run and its host."""
        from bnnviz.engine.recording import reader
        from bnnviz.engine.recording.resume import resume

        self._runs.check_room()
        module, name = factory.split(":")
        run_class = getattr(importlib.import_module(module), name)
        run = self._restored(run_class) if restore else None
        if run is None and spec is None:
            raise BnnvizError("The checkpoint of this run no longer exists. Start the run again.")
        if run is None and origin is not None:
            run = resume(reader.place(origin))
        elif run is None:
            run = run_class(spec)
        if restore:
            self.resumed = int(run.steps)
        for each in run.runs:  # a page does not wait for a compiler
            each.wait_for_compile = False
        if watch:
            run.watch(**watch)
        host = Host(run, playing=play and not run.finished, speed=speed, past=past, travels=True)
        if record is not None:
            try:
                host.keep_in(reader.place(record))
            except BnnvizError as error:
                host.message = error.sentence  # the run continues without its recording
        self._saved = host.moment
        with self._lock:
            self._saving.spent()
            self.host, self.state = host, "running"

    def _restored(self, run_class: Any) -> Any:
        """Restore a lost run or fork from its last checkpoint; return None without a readable one."""
        data = self._runs.checkpoints.read(self.run_id)
        try:
            if data is None or not data.startswith(MAGIC):
                return None if data is None else run_class.restore(data)
            from bnnviz.engine.history.fork import Fork

            return Fork.restore(data)
        except Exception:
            log.exception("the checkpoint of live run %s cannot be used; it starts again", self.run_id)
            return None

    def _work(self) -> bool:
        """Advance the run for a slice of time; return whether there was anything to do."""
        host = self.host
        while self.later and not host.waits:
            try:
                self._execute(*self.later.popleft())
            except BnnvizError as error:
                host.message = error.sentence
        before = host.moment, host.message
        worked = host.work(max(SLICE_S / max(1, self._runs.playing), _LEAST_SLICE_S))
        # On the way to its start a run does not step, but reports now and then how far it is.
        tells = host.run.phase == "start" and time.monotonic() >= self._changed_at + START_S
        if (host.moment, host.message) != before or (worked and tells):
            self.touch()
        if worked:
            self._look_for_end()
        if self.state == "running":
            self._saving.share = SHARE / sum(run.state == "running" for run in self._runs.each())
            self._saving.least = 0.0 if self._hurry else LEAST_S
            if self._saving.due and (self._writing is None or self._writing.done()):
                self._write_checkpoint()
        return worked

    def _write_checkpoint(self) -> None:
        """Write a checkpoint of a changed run, unless it is on its way to a past step."""
        moment = self.host.moment
        if moment == self._saved or self.host.waits:
            return
        begin = time.perf_counter()
        data = self.host.run.checkpoint()
        self._saving.spent(time.perf_counter() - begin)
        self._saved, self._hurry = moment, False
        self._writing = self._runs.checkpoints.write(self.run_id, data, self._saving)

    def _look_for_end(self) -> None:
        """Note whether the run has ended by itself."""
        run = self.host.run
        if run.phase == "failed":
            log.error("live run %s stopped at step %d: %s", self.run_id, self.step, run.error)
            self._fail(str(run.error or "This run stopped without giving a reason."))
        elif run.finished:
            self._hurry = True
            self.host.end_recording()
            self.touch()

    def _leave(self) -> None:
        message = self.farewell
        if self.state == "running" and message:
            with self._guarded():
                self._write_checkpoint()
        if self.host is not None:
            self.host.close()
        if not (self.state == "failed" and message):
            self.state, self.message = "ended", message or "This run was stopped."
        if not message:
            self._runs.checkpoints.remove(self.run_id)
        # Its memory goes now, not when the last caller has let go of the actor or Python next looks for cycles.
        self.host = self._spec = None
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

    # commands and frames, from other threads

    def command(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        """Execute a command between two slices, or once the run is built and has its start; return the report."""
        with self._lock:
            if self.state not in ALIVE:
                raise BnnvizError(f"{self.message} Start it again to continue.")
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
        self._hurry = self._hurry or name in (*TRAVELS, "change", "pause")
        self._look_for_end()
        self.touch()
        self._woken.set()

    def scene(self) -> dict[str, Any]:
        """Return the report with the scene; None for a run that is not held."""
        scene = None
        with self._lock:
            if self.host is not None:
                with self._guarded():
                    scene = self.host.scene()
            return self.report(full=True) | {"scene": scene}

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
                frame[STATUS]["shared"] = self._shared = self._runs.playing
            self.answered.clear()
            report = self.report(full=seen < self._spec_version)
            return pickle.dumps(report | {"frame": frame if frame.keys() > {"seq"} else None})

    # what has changed

    def touch(self) -> None:
        """Note that something has changed that a frame could show."""
        self.version, self._changed_at = self.version + 1, time.monotonic()

    def changed(self, want: list[str], seen: int) -> list[str]:
        """Return the parts of a frame that may have changed for a caller who has seen a version."""
        if self.host is None:
            return []
        if seen < self.version or time.monotonic() - self._changed_at <= SETTLE_S:
            return want
        return [part for part in want if part == STATUS and self._shared != self._runs.playing]

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
