"""Execute runs and races in threads of this process."""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from bnnviz import optional
from bnnviz.engine.host import FairLock, Host
from bnnviz.engine.throttle import Throttle
from bnnviz.errors import BnnvizError

log = logging.getLogger(__name__)

_SLICE_S = 0.1
_WATCHED_SLICE_S = 0.02
_WATCHED_FOR_S = 1.0  # after a frame
_CALLBACK_S = 0.1
_LEAVE_S = 2.0
_SIGNAL_S = 0.5  # maximum seconds until a signal is handled
EXIT_INTERRUPTED = 130

_RUNNING: weakref.WeakSet[Background] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Stop all running threads: a thread inside torch would abort the process at the exit of Python."""
    runs = list(_RUNNING)
    for run in runs:
        run._stop.set()
        run._wake.set()
    end = time.monotonic() + _LEAVE_S
    ended = [run._join(max(end - time.monotonic(), 0.0)) for run in runs]
    if not all(ended):
        # For a step longer than that, leave without the abort and its core file.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_INTERRUPTED)


class Background:
    """Execute a run or a race in a separate thread.

    Watching, pausing and stepping do not affect draws. Reads and changes of the run wait until the current
    steps are done, at most 0.1 s unless a single step takes longer.

    Parameters
    ----------
    run : bnnviz.engine.viewed_run.ViewedRun or bnnviz.engine.race.race.Race
    callback : callable, optional
        Called with this object about ten times per second, in its thread.
    paused : bool
    folder : Path, optional
        Folder of the recording.
    """

    def __init__(
        self,
        run: Any,
        callback: Callable[[Any], Any] | None = None,
        *,
        paused: bool = False,
        folder: Path | None = None,
    ) -> None:
        self._run, self._callback = run, callback
        self._host = Host(run, playing=not paused)
        if folder is not None:
            self._host.keep_in(folder)
        self._folder = folder
        self._calls, self._seen = Throttle(least=_CALLBACK_S), -math.inf
        self._failure: BaseException | None = None
        self._listeners: list[Callable[[], Any]] = []
        self._stop, self._wake, self._done = threading.Event(), threading.Event(), threading.Event()
        # numpy's and torch's own locks make reading draws while they are written safe enough only
        # between two slices of work.
        self._lock = FairLock()
        self._thread = threading.Thread(target=self._main, name="bnnviz-run", daemon=True)

    def begin(self) -> Self:
        """Start the thread; return this object."""
        _RUNNING.add(self)
        try:
            self._thread.start()
        except KeyboardInterrupt as interrupt:  # before the thread has reported its start
            interrupt.run = self
            self._stop.set()
            self._join(_SIGNAL_S)  # for no longer: a step may take for ever
            raise
        return self

    def _main(self) -> None:
        try:
            self._work()
        finally:
            self._done.set()

    def _work(self) -> None:
        try:
            while not self._run.finished and not self._stop.is_set():
                with self._lock:
                    watched = time.monotonic() - self._seen < _WATCHED_FOR_S
                    worked = self._host.work(_WATCHED_SLICE_S if watched else _SLICE_S)
                if worked:
                    if self._callback is not None and (self._calls.due or self._run.finished):
                        self._calls.spent()
                        self._callback(self)
                    self._tell()
                else:
                    self._wake.wait(self._host.rest)
                    self._wake.clear()
        except BaseException as failure:  # noqa: BLE001
            # Whatever the target or a callback raises, an interrupt too, is raised in the caller's thread by wait();
            # the draws stay readable.
            self._failure = failure
        finally:
            with self._lock:
                self._host.playing = False
                self._host.end_recording(summary=self._failure is None)
                if self._stop.is_set() or self._failure is not None:
                    for run in self._run.runs:
                        run.release()
            self._tell()

    def _join(self, timeout: float | None = None) -> bool:
        """Wait for the end of the thread and let signals in; return whether it has ended."""
        # After an interrupt `Thread.join` reports a live thread as ended (Python 3.11 and 3.12).
        end = math.inf if timeout is None else time.monotonic() + timeout
        while not self._done.wait(min(_SIGNAL_S, max(end - time.monotonic(), 0.0))):
            if time.monotonic() >= end:
                return False
        return True

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    @property
    def _ended(self) -> bool:
        return self._run.finished or self._stop.is_set() or self._failure is not None

    @property
    def running(self) -> bool:
        """Whether it has not ended; it may be paused."""
        return self._thread.is_alive() and not self._done.is_set()

    @property
    def playing(self) -> bool:
        """Whether it is running: neither paused nor finished."""
        return self._host.playing

    @property
    def phase(self) -> str:
        """The phase: start, tuning, warm-up, sampling, done or failed."""
        return self._run.phase

    @property
    def progress(self) -> float:
        """Fraction of the work done, 0 to 1."""
        return self._run.progress

    @property
    def speed(self) -> float | None:
        """Maximum number of steps per second; None, the initial value, is full speed. May be set."""
        return self._host.pace.speed

    @speed.setter
    def speed(self, value: float | None) -> None:
        self._command("speed", value=value)

    def play(self) -> Self:
        """Resume; return the run.

        Raises
        ------
        BnnvizError
            If it has ended.
        """
        return self._command("play")

    def pause(self) -> Self:
        """Rest until `play`; return the run."""
        return self._command("pause")

    def step(self) -> Self:
        """Pause, then take exactly one step: one evaluation for every chain; return the run.

        Raises
        ------
        BnnvizError
            If it has ended.
        """
        return self._command("proposal")

    def step_event(self) -> Self:
        """Pause, then step until the watched chain has had an event; return the run.

        Raises
        ------
        BnnvizError
            If it has ended.
        """
        return self._command("event")

    def _command(self, name: str, **args: Any) -> Self:
        with self._lock:
            if self._ended and name not in ("pause", "speed"):
                raise BnnvizError("This run has ended. Start a new run.")
            self._host.command(name, **args)
        self._wake.set()
        self._tell()
        return self

    def _begin_again(self) -> Self:
        """Start another thread for a run that has ended and was given more to do."""
        self._host = Host(self._run, playing=True)
        if self._folder is not None:
            self._host.keep_in(self._folder)
        self._failure = None
        self._stop.clear()
        self._done.clear()
        self._thread = threading.Thread(target=self._main, name="bnnviz-run", daemon=True)
        return self.begin()

    def listen(self, listener: Callable[[], Any]) -> None:
        """Call a function, in any thread, each time the run may have something new to show."""
        self._listeners.append(listener)

    def scene(self) -> dict[str, Any]:
        """Return the static data of the views (see ARCHITECTURE, frame)."""
        with self._lock:
            return self._host.scene()

    def frame(self, want: list[str]) -> dict[str, Any]:
        """Return the requested parts of the current view data (see ARCHITECTURE, frame)."""
        with self._lock:
            self._seen = time.monotonic()
            frame = self._host.frame(want)
        if "status" in frame:
            frame["status"]["ended"] = self._ended
            if self._failure is not None:
                frame["status"]["message"] = str(self._failure)
        return frame

    @property
    def moment(self) -> tuple:
        """A value that differs if a frame would differ."""
        return *self._host.moment, self._host.playing, self._host.pace.speed, self._ended

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until the run has ended, or ``timeout`` seconds have passed; return the run.

        Raises
        ------
        BnnvizError
            If every chain met values that are not finite, or the target or sampler failed. The draws
            made until then stay in ``draws``. Also if the run is paused and there is no timeout.
        """
        if timeout is None and not (self._host.playing or self._ended):
            raise BnnvizError("The run is paused. Call play() first.")
        self._join(timeout)
        if self._failure is not None:
            raise self._failure
        if self._run.error is not None:
            raise BnnvizError(self._run.error)
        return self

    def run_to_end(self) -> Self:
        """Wait for the end as in `wait`; stop the run on errors and interrupts.

        Any exception, also by the target or a callback, has the unfinished run as its attribute ``run``.

        Returns
        -------
        Run
            In a notebook also after an interrupt, with the draws until then.

        Raises
        ------
        KeyboardInterrupt
            Outside of a notebook, if it was interrupted (Ctrl-C).
        """
        try:
            return self.wait()
        except KeyboardInterrupt as interrupt:
            interrupt.run = self
            try:
                self.stop()
            except KeyboardInterrupt as again:  # who asks twice does not wait for the step under way
                again.run = self
                raise
            if optional.in_notebook():
                log.warning("Interrupted; the run is kept as far as it came.")
                return self
            raise
        except BaseException as failure:
            with contextlib.suppress(AttributeError):  # an exception may be frozen
                failure.run = self
            self.stop()
            raise

    def __enter__(self) -> Self:
        """Return the run, which stops at the end of the block, also after an error."""
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> Self:
        """End the run early and keep its draws; return it after the current step."""
        self._stop.set()
        self._wake.set()
        if self._thread is not threading.current_thread():
            self._join()
        return self

    def summary(self) -> dict[str, Any]:
        """Return settings, costs, and estimates with their errors, as plain JSON.

        Returns
        -------
        dict
            For a run it has ``warnings``, ``rhat_max``, ``ess_min``; for a network also ``verdict`` and
            ``rhat_function_max``, that of its predictions. The page :doc:`What a summary holds </manual/summary>`
            describes all keys and their units. Unknown values are None. A race returns the output of
            ``bnnviz race --json``.
        """
        with self._lock:
            return self._run.summary()
