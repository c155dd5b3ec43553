"""Advance the live runs of a worker in equal time slices, in one thread.

Between two slices it does all slow work: building runs, commands, frames, checkpoints. It does not import torch.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bnnviz import paths
from bnnviz.engine.cluster.checkpoints import Checkpoints
from bnnviz.engine.cluster.slot import Slot, resolve_all
from bnnviz.engine.frames import wire
from bnnviz.engine.history.time_travel import COMMANDS as TRAVELS
from bnnviz.engine.host import STATUS, STEPS
from bnnviz.engine.protocol import Simulation
from bnnviz.errors import BnnvizError

START_S = 2.0  # between two frames of a run during its start search: longer than the time to settle
SLICE_S = 0.02  # time of one run before the next one's turn
AHEAD_S = 0.05  # maximum lead over the time of the others
IDLE_S = 0.2  # between two looks at checkpoints and recordings when there is nothing to advance
MOST_RUNS = 64  # maximum live runs of a worker, to bound memory
log = logging.getLogger(__name__)


class LiveLoop:
    """Advance the live runs of a worker process in equal time slices, in a thread."""

    def __init__(self, folder: Path | None = None, slice_s: float = SLICE_S) -> None:
        self.checkpoints = Checkpoints(folder or paths.live())
        self._slice_s = slice_s
        self._slots: dict[str, Slot] = {}
        self._lock = threading.Lock()  # guards the dictionary only
        self._woken = threading.Event()
        self._ready: set[str] = set()  # runs that were ready at the last look
        self._closing = False
        self._thread = threading.Thread(target=self._loop, name="bnnviz-live", daemon=True)
        self._thread.start()

    # called from the event loop: queue and look up only

    def add(self, slot: Slot) -> None:
        """Add a run; the loop thread builds it when its turn comes."""
        with self._lock:
            self._slots[slot.run_id] = slot
        self.checkpoints.sweep()
        self._woken.set()

    def wake(self) -> None:
        """Wake the thread to serve its runs now."""
        self._woken.set()

    def abandon(self, slot: Slot) -> None:
        """Save and end a run that no client can reach any more."""
        slot.abandoned = True
        self._woken.set()

    def census(self) -> list[dict[str, Any]]:
        """Return one row per run of this loop."""
        return [
            {
                "run_id": slot.run_id,
                "state": slot.state,
                "playing": slot.playing,
                "step": slot.step,
            }
            for slot in self._all()
            if slot.alive
        ]

    def close(self) -> None:
        """Save all runs and end the thread."""
        self._closing = True
        self._woken.set()
        self._thread.join()
        self.checkpoints.close()

    # the loop thread

    def _all(self) -> list[Slot]:
        with self._lock:
            return list(self._slots.values())

    def _loop(self) -> None:
        while True:
            try:
                # before the look: a request during it, or closing the loop, shortens the next wait
                self._woken.clear()
                if self._closing:
                    break
                self._turn()
            except Exception:  # without this thread no run of the worker would ever continue
                log.exception("the loop of the live runs met an error and continues")
                time.sleep(IDLE_S)
        for slot in self._all():
            if slot.stopping:
                self._stop(slot)
            else:
                self._end(slot, "The worker was shut down; the checkpoint of this run is kept.")

    def _turn(self) -> None:
        for slot in self._all():
            self._attend(slot)
        slots, now = self._all(), time.monotonic()
        slot = self._next(slots, now)
        if slot is not None:
            self._advance(slot)
        else:
            self._woken.wait(self._rest(slots, now))

    def _next(self, slots: list[Slot], now: float) -> Slot | None:
        """Return the ready run with the least time."""
        ready = [s for s in slots if s.going and not s.host.pace.rests(now)]
        # a run that returns gets its share from now on, not the time of the others since it left; a run that took long,
        # for its start or for one step, does not wait until all others have had as much
        least = min((s.used for s in ready if s.run_id in self._ready), default=0.0)
        for slot in ready:
            used = slot.used if slot.run_id in self._ready else max(slot.used, least)
            slot.used = min(used, least + AHEAD_S)
        self._ready = {slot.run_id for slot in ready}
        return min(ready, key=lambda slot: slot.used, default=None)

    def _rest(self, slots: list[Slot], now: float) -> float | None:
        """Return the time until the next work; None if only a request can create work."""
        if not slots:
            return None
        due = [slot.host.pace.due - now for slot in slots if slot.going]
        return max(0.0, min([IDLE_S, *due]))

    def _attend(self, slot: Slot) -> None:
        """Answer the requests of a run, apart from advancing it."""
        if slot.stopping:
            self._stop(slot)
        elif slot.abandoned:
            self._end(slot, "The page that started this run has gone, so it was ended; its checkpoint is kept.")
        elif slot.state == "starting":
            self._build(slot)
        if slot.host is not None:
            with self._guarded(slot):
                self._obey(slot)
                self._show(slot)
                if slot.state == "running":
                    self.checkpoints.save(slot, runs=sum(other.state == "running" for other in self._all()))
                    self._keep(slot)

    @contextlib.contextmanager
    def _guarded(self, slot: Slot) -> Iterator[None]:
        """End only this run on an error."""
        try:
            yield
        except Exception as error:
            slot.about = error.field if isinstance(error, BnnvizError) else None
            # An invalid setting is reported to the user without a traceback.
            log.error("live run %s failed at step %d", slot.run_id, slot.step, exc_info=slot.about is None)
            self._fail(slot, _sentence(error))

    # adding and removing

    def _build(self, slot: Slot) -> None:
        with self._guarded(slot):
            if sum(other.host is not None for other in self._all()) >= MOST_RUNS:
                raise BnnvizError(f"This worker already holds {MOST_RUNS} live runs; close another page and try again.")
            slot.host = slot.build(slot)
            slot.take_scene()
            slot.saved = slot.host.moment
            slot.state = "running"
        slot.saving.spent()
        self._changed_together(slot)
        resolve_all(slot.builders)

    def _stop(self, slot: Slot) -> None:
        self._drop(slot, "ended", "This run was stopped.")
        self.checkpoints.remove(slot.run_id)

    def _end(self, slot: Slot, message: str) -> None:
        """End a run that may be restarted."""
        if slot.state == "running":
            with self._guarded(slot):
                self.checkpoints.write_now(slot)
        if slot.state == "failed":
            self._drop(slot, "failed", slot.message)
        else:
            self._drop(slot, "ended", message)

    def _drop(self, slot: Slot, state: str, message: str) -> None:
        if slot.host is not None:
            slot.host.close()
        with self._lock:
            self._slots.pop(slot.run_id, None)
        slot.state, slot.message = state, message
        # free its memory now, not when the last caller drops the actor or Python next collects cycles
        slot.host = slot.spec = None
        gc.collect()
        self._answer_all(slot)
        self._changed_together()

    def _fail(self, slot: Slot, message: str) -> None:
        slot.state, slot.message = "failed", message
        if slot.host is not None:
            slot.host.playing = False
        slot.touch()
        self._answer_all(slot)
        self._changed_together()

    def _answer_all(self, slot: Slot) -> None:
        """Answer all requests to a run that has ended."""
        resolve_all(slot.builders)
        while slot.pulls:
            slot.pulls.popleft()[2].resolve()
        while slot.commands:
            waiter = slot.commands.popleft()[2]
            if waiter is not None:
                waiter.resolve(error=BnnvizError(f"{slot.message} Start it again to continue."))

    def _changed_together(self, *changed: Slot) -> None:
        """Mark runs as changed, and the status of all: it includes the number of runs on the worker."""
        for slot in self._all():
            slot.touch_status()
        for slot in changed:
            slot.touch()

    # commands

    def _obey(self, slot: Slot) -> None:
        while slot.commands and slot.state == "running":
            name, args, waiter = slot.commands.popleft()
            if name in STEPS and slot.host.waits:
                # The caller does not wait until the run has found its start or is back at a past step.
                slot.commands.appendleft((name, args, None))
                if waiter is not None:
                    waiter.resolve(slot.report())
                return
            try:
                slot.host.command(name, **args)
                if name in TRAVELS or name == "change":
                    slot.take_scene()
            except BnnvizError as error:
                if waiter is None:
                    slot.host.message = error.sentence
                else:
                    waiter.resolve(error=error)
            except Exception as error:
                if waiter is not None:
                    waiter.resolve(error=BnnvizError(_sentence(error)))
                raise
            else:
                slot.hurry = slot.hurry or name in (*TRAVELS, "change", "pause")
                self._ask(slot)
                self._changed_together(slot)
                if waiter is not None:
                    waiter.resolve(slot.full_report())

    # advancing

    def _advance(self, slot: Slot) -> None:
        with self._guarded(slot):
            run = slot.host.run
            phase, begin = run.phase, _worked(run)
            # Frames do not count: runs of one kind advance equally, whatever their pages show.
            try:
                steps = slot.host.advance(self._slice_s)
            finally:
                slot.used += _worked(run) - begin
            # During the start search a run does not step, but reports its progress now and then.
            tells = phase == "start" and time.monotonic() >= slot.changed_at + START_S
            if steps or run.phase != phase or tells:
                slot.touch()
            self._ask(slot)

    def _ask(self, slot: Slot) -> None:
        """Check whether a run has ended."""
        run = slot.host.run
        if run.phase == "failed":
            log.error("live run %s stopped at step %d: %s", slot.run_id, slot.step, run.error)
            self._fail(slot, str(run.error or "This run stopped without giving a reason."))
        elif run.finished:
            slot.hurry = True
            slot.host.end_recording()
            self._changed_together(slot)

    def _keep(self, slot: Slot) -> None:
        message = slot.host.message
        slot.host.keep()
        if slot.host.message != message:
            slot.touch()

    # frames

    def _show(self, slot: Slot) -> None:
        """Build one frame of all parts requested since the last one."""
        pulls = []
        while slot.pulls:
            pulls.append(slot.pulls.popleft())
        if not pulls:
            return
        wanted = list(dict.fromkeys(part for want, _, _ in pulls for part in want))
        try:
            frame = slot.host.frame(wanted)
        except Exception:
            for _, _, waiter in pulls:
                waiter.resolve()
            if slot.state == "failed":  # it failed before, and its remains cannot be drawn
                return
            raise
        slot.look_at_spec()
        if STATUS in frame:
            frame[STATUS]["shared"] = sum(other.playing for other in self._all())
        for want, seen, waiter in pulls:
            part = {name: value for name, value in frame.items() if name == "seq" or name in want}
            report = slot.report() if seen >= slot.spec_version else slot.full_report()
            waiter.resolve(wire.dumps(report | {"frame": part if part.keys() > {"seq"} else None}))
        pulls[-1][2].sent()


def _worked(run: Simulation) -> float:
    """Return a clock of a run's work in seconds: CPU time on a CPU, so that a busy machine does not distort shares."""
    return time.thread_time() if run.device.type == "cpu" else time.perf_counter()


def _sentence(error: Exception) -> str:
    if isinstance(error, BnnvizError):
        return error.sentence
    what = str(error).strip().splitlines()
    cause = f"{type(error).__name__}: {what[0]}" if what else type(error).__name__
    return f"This run was stopped by an error ({cause}); the worker's log has the details."


# the loop of this process

_loop: LiveLoop | None = None
_loop_lock = threading.Lock()


def live_loop() -> LiveLoop:
    """Return the loop of this process, created at the first call."""
    global _loop
    with _loop_lock:
        if _loop is None:
            _loop = LiveLoop()
        return _loop


def census() -> list[dict[str, Any]]:
    """Return one row per live run of this process."""
    return [] if _loop is None else _loop.census()


def close() -> None:
    """Save and end the live runs of this process."""
    global _loop
    with _loop_lock:
        loop, _loop = _loop, None
    if loop is not None:
        loop.close()
