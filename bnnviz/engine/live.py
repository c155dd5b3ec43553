"""Live runs on a worker: the actor that a page talks to, and the one thread that advances all of them.

`LiveRun` is the Dask actor. Its methods are coroutines that only look things up or queue them, because
they share the worker's event loop. `LiveLoop` has one thread for each worker process: it gives the runs
equal time slices and does everything that takes time - building a run, its steps, commands, frames,
checkpoints - between two slices; pages on its machine ask it for frames without the event loop
(`framesocket`). Nothing here imports torch; the run class is loaded by its dotted path.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import json
import logging
import pickle
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bnnviz import files, paths
from bnnviz.engine import framebytes, framesocket
from bnnviz.engine.drive import Pace
from bnnviz.engine.past import COMMANDS, Past
from bnnviz.engine.protocol import Simulation
from bnnviz.engine.throttle import Throttle
from bnnviz.engine.timetravel import MAGIC
from bnnviz.errors import BnnvizError

START_S = 2.0  # between two frames of a run that looks for its start: longer than it takes to settle
SLICE_S = 0.02  # time one run has before the next one's turn
CAPACITY = 8  # live runs on one worker; more wait for their turn
LEASE_S = 10.0  # a run that nobody has pulled from for so long ends; after a fifth of it, it rests
CHECKPOINT_S = 3.0
CHECKPOINT_SHARE = 0.05  # of the time, at most
STALE_S = 24 * 3600.0  # a checkpoint that nobody has touched for so long is swept
WAIT_S = 1.5  # how long an actor's method waits; the caller gives up after 2 s
SETTLE_S = 1.0  # slow parts of a frame are refreshed about once a second: pull on for so long after a change
IDLE_S = 0.2  # the loop looks at the leases so often when there is nothing to advance
SUMMARISED = 5_000_000  # numbers of a live run's draws up to which its recording gets a summary: others wait for it
ANSWER_TURNS = 3  # of the event loop until an answer is on its way
ANSWER_S = 0.005  # the longest wait for that
STEPS = ("proposal", "event")
TIMELINE = "timeline"  # a part of frames that the loop knows
ALIVE = ("queued", "starting", "running")

log = logging.getLogger(__name__)


# Checkpoints -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Saved:
    """A checkpoint as read back: the run's own bytes, and how many changes they contain."""

    changes: int
    data: bytes


class Checkpoints:
    """The checkpoint files of one worker, written one after another by a thread of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="bnnviz-checkpoint")

    def path(self, run_id: str) -> Path:
        """Return the file of a run."""
        return self.folder / f"{run_id}.ckpt"

    def read(self, run_id: str) -> Saved | None:
        """Return the last checkpoint of a run, or None if there is none here."""
        try:
            raw = self.path(run_id).read_bytes()
        except FileNotFoundError:
            return None
        head, data = raw.split(b"\n", 1)
        return Saved(json.loads(head)["changes"], data)

    def write(self, run_id: str, saved: Saved) -> Future[float]:
        """Write a checkpoint in the background; the result is the time it took in seconds."""
        return self._writer.submit(self._write, run_id, saved)

    def remove(self, run_id: str) -> None:
        """Remove the checkpoint of a run, after all its pending writes."""
        self._writer.submit(self.path(run_id).unlink, missing_ok=True)

    def sweep(self) -> None:
        """Remove what dead workers have left behind, in the background."""
        self._writer.submit(self._sweep)

    def close(self) -> None:
        """Finish the pending writes."""
        self._writer.shutdown(wait=True)

    def _write(self, run_id: str, saved: Saved) -> float:
        begin = time.perf_counter()
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        head = json.dumps({"changes": saved.changes}).encode()
        files.write_whole(self.path(run_id), head + b"\n" + saved.data)
        return time.perf_counter() - begin

    def _sweep(self) -> None:
        oldest = time.time() - STALE_S
        for path in [*self.folder.glob("*.ckpt"), *self.folder.glob(files.HALF_WRITTEN)]:
            # another worker on this machine may sweep the same file
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()
        framesocket.sweep(self.folder)


# One run in the loop ---------------------------------------------------------------------------------


@dataclass
class _Waiter:
    """Somebody on the worker's event loop who waits for the loop thread."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future

    def resolve(self, value: Any = None, error: Exception | None = None) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(self._set, value, error)

    def sent(self) -> None:
        """Wait until the event loop has passed the answer on; call after `resolve`, from the other thread.

        Working on meanwhile, both threads would take the interpreter from each other with each of their
        operations, which costs more than the wait.
        """
        done = threading.Event()
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(_after_turns, self.loop, ANSWER_TURNS, done.set)
            done.wait(ANSWER_S)

    def _set(self, value: Any, error: Exception | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)


class _Remote:
    """A page that waits at the socket for a frame of a run."""

    def __init__(self, caller: framesocket.Caller, slot: Slot) -> None:
        self._caller, self._slot = caller, slot

    def resolve(self, data: bytes | None = None) -> None:
        self._caller.answer(data or self._slot.nothing_new())

    def sent(self) -> None:
        """Wait for nothing: the answer was sent when it was given."""


def _after_turns(loop: asyncio.AbstractEventLoop, turns: int, then: Callable[[], None]) -> None:
    """Call a function some turns of the event loop later."""
    if turns:
        loop.call_soon(_after_turns, loop, turns - 1, then)
    else:
        then()


@dataclass
class Slot:
    """A run's place in the loop: what it is to do, who waits for it, how much time it has had."""

    run_id: str
    build: Callable[[Slot], Any]
    lease_s: float | None = LEASE_S
    playing: bool = False
    pace: Pace = field(default_factory=Pace)
    watch: dict[str, Any] = field(default_factory=dict)
    replay: deque[tuple[int, dict[str, Any]]] = field(default_factory=deque)
    record: str | None = None  # the name of its recording

    run: Any = None
    recorder: Any = None
    past: Past | None = None  # of a run that can go back
    scene: dict[str, Any] | None = None
    state: str = "queued"
    message: str = ""
    about: str | None = None  # the setting that the message is about
    resumed: int | None = None  # the step at which a lost run was taken up again
    changes: int = 0  # entries of the change log that the run contains
    stopping: bool = False
    abandoned: bool = False  # nobody can reach the run any more

    used: float = 0.0  # seconds of the loop thread in which it has advanced
    last_pull: float = field(default_factory=time.monotonic)
    version: int = 0  # grows with everything that a frame could show
    changed_at: float = 0.0

    commands: deque[tuple[str, dict[str, Any], _Waiter | None]] = field(default_factory=deque)
    pulls: deque[tuple[list[str], _Waiter | _Remote]] = field(default_factory=deque)
    builders: deque[_Waiter] = field(default_factory=deque)

    dirty: bool = False  # has moved since the last checkpoint
    hurry: bool = False  # a checkpoint is due sooner than after the usual time
    saving: Throttle = field(default_factory=lambda: Throttle(CHECKPOINT_SHARE))
    packing_s: float = 0.0  # what the last checkpoint took to make
    writing_s: float = 0.0  # and to write
    writing: Future[float] | None = None

    @property
    def alive(self) -> bool:
        """Whether the run is in the loop, or waits to get in."""
        return self.state in ALIVE and not self.stopping

    @property
    def step(self) -> int:
        """Steps the run has done."""
        return 0 if self.run is None else int(self.run.steps)

    @property
    def going(self) -> bool:
        """Whether it wants to advance: it plays, or it has still to find its starting point."""
        if self.state != "running" or self.run.finished:
            return False
        return self.playing or self.run.phase == "start" or self.under_way

    @property
    def under_way(self) -> bool:
        """Whether it is on its way to a step that was."""
        return self.past is not None and self.past.journey is not None

    def watched(self, now: float) -> bool:
        """Whether somebody has pulled lately; a run without a lease needs nobody."""
        return self.lease_s is None or now - self.last_pull < self.lease_s / 5

    def settled(self, seen: int, now: float) -> bool:
        """Whether a caller who has seen this version has seen everything."""
        return seen == self.version and now - self.changed_at > SETTLE_S

    def show_anew(self) -> None:
        """Make the scene of what runs now."""
        scene = self.run.scene()
        known = [TIMELINE] if self.past is not None else []
        self.scene = scene | {"emits": [*scene["emits"], *known]} if known else scene

    def touch(self) -> None:
        """Note that something has changed that a frame could show."""
        self.version += 1
        self.changed_at = time.monotonic()

    def advance(self, seconds: float) -> int:
        """Let the run step for at most so many seconds, or as its speed asks; return the steps done."""
        if self.under_way:
            return self.past.advance(seconds)
        if self.replay and self.playing:
            return self._replay(seconds)
        return self.pace.advance(self.run, seconds)

    def _replay(self, seconds: float) -> int:
        """Make the changes of a lost run at the steps where they were made: the draws are the same."""
        begin, end = self.run.steps, time.monotonic() + seconds
        self.catch_up()
        while self.replay and time.monotonic() < end and not self.run.finished:
            if self.run.phase == "start":
                self.run.advance(seconds)
            else:
                self.run.step_proposal()
            self.catch_up()
        return self.run.steps - begin

    def catch_up(self) -> None:
        """Make the changes of the lost run that belong to this step."""
        while self.replay and self.replay[0][0] <= self.run.steps:
            self.run.change(self.replay.popleft()[1])
            self.changes = self.changes + 1 if self.past is None else len(self.past.log)

    def report(self) -> dict[str, Any]:
        """Return what a caller must know besides the frame."""
        finished = self.state == "running" and self.run.finished
        return {
            "state": "ended" if finished else self.state,
            "message": self.message,
            "field": self.about,
            "playing": self.playing,
            "speed": self.pace.speed,
            "step": self.step,
            "resumed": self.resumed,
            "changes": self.changes,
            "record": self.record,
            "version": self.version,
            "held": self.run is not None,
        }

    def nothing_new(self) -> bytes:
        """Return what a caller gets who gets no frame."""
        return pickle.dumps(self.report() | {"frame": None})

    def pull(self, seen: int) -> bool:
        """Note that somebody asks who has seen a version; return whether there may be anything new."""
        self.last_pull = time.monotonic()
        return self.run is not None and not self.settled(seen, self.last_pull)


# The loop --------------------------------------------------------------------------------------------


class LiveLoop:
    """The thread that advances the live runs of a worker process in equal time slices.

    Parameters
    ----------
    folder : Path or None
        Where checkpoints are kept; None: `bnnviz.paths.live`.
    capacity : int
        Runs that are advanced at a time; more are queued.
    slice_s : float
        Length of a time slice in seconds.
    """

    def __init__(self, folder: Path | None = None, capacity: int = CAPACITY, slice_s: float = SLICE_S) -> None:
        self.checkpoints = Checkpoints(folder or paths.live())
        self._capacity = capacity
        self._slice_s = slice_s
        self._slots: dict[str, Slot] = {}
        self._lock = threading.Lock()  # guards the dictionary only
        self._calls = framesocket.FrameServer(self.checkpoints.folder)
        self._ready: set[str] = set()  # runs that wanted time at the last look
        self._closing = False
        self._thread = threading.Thread(target=self._loop, name="bnnviz-live", daemon=True)
        self._thread.start()

    # called from the event loop: queue and look up only

    def add(self, slot: Slot) -> None:
        """Take a run in; it is built on the loop thread when its turn comes."""
        with self._lock:
            self._slots[slot.run_id] = slot
        self.checkpoints.sweep()
        self._calls.wake()

    def wake(self) -> None:
        """Make the thread look at its runs now."""
        self._calls.wake()

    @property
    def socket(self) -> str | None:
        """Where pages on this machine can ask for frames; None where they have to ask the actor."""
        return None if self._calls.path is None else str(self._calls.path)

    def abandon(self, slot: Slot) -> None:
        """Note that nobody can reach a run any more: it is saved and ended."""
        slot.abandoned = True
        self._calls.wake()

    def census(self) -> list[dict[str, Any]]:
        """Return one row for each run that this loop holds."""
        now = time.monotonic()
        return [
            {
                "run_id": slot.run_id,
                "state": slot.state,
                "playing": slot.playing,
                "speed": slot.pace.speed,
                "step": slot.step,
                "lease_s": slot.lease_s,
                "unpulled_s": now - slot.last_pull,
            }
            for slot in self._all()
            if slot.alive
        ]

    def starting(self) -> bool:
        """Return whether a run is being built, or looks for its start."""
        return any(slot.alive and (slot.run is None or slot.run.phase == "start") for slot in self._all())

    def close(self) -> None:
        """Save all runs and end the thread."""
        self._closing = True
        self._calls.wake()
        self._thread.join()
        self._calls.close()
        self.checkpoints.close()

    # the loop thread

    def _all(self) -> list[Slot]:
        with self._lock:
            return list(self._slots.values())

    def _loop(self) -> None:
        while True:
            try:
                # before the look: who asks for something during it, or closes the loop, shortens the next wait
                self._hear(0)
                if self._closing:
                    break
                self._turn()
            except Exception:  # without this thread no run of the worker would ever go on
                log.exception("the loop of the live runs met an error and goes on")
                time.sleep(IDLE_S)
        for slot in self._all():
            if slot.stopping:
                self._stop(slot)
            else:
                self._end(slot, "The worker was shut down; the checkpoint of this run is kept.")

    def _turn(self) -> None:
        now = time.monotonic()
        for slot in self._all():
            self._attend(slot, now)
        slots = self._all()
        slot = self._next(slots, now)
        if slot is not None:
            self._advance(slot)
        else:
            self._hear(self._rest(slots, now))

    def _next(self, slots: list[Slot], now: float) -> Slot | None:
        """Return the run that has had the least time of those that want some."""
        ready = [s for s in slots if s.going and s.watched(now) and not s.pace.rests(now)]
        # who comes back gets its share from now on, not the time that the others have had meanwhile
        least = min((s.used for s in ready if s.run_id in self._ready), default=0.0)
        for slot in ready:
            if slot.run_id not in self._ready:
                slot.used = max(slot.used, least)
        self._ready = {slot.run_id for slot in ready}
        return min(ready, key=lambda slot: slot.used, default=None)

    def _rest(self, slots: list[Slot], now: float) -> float | None:
        """Return how long there is nothing to do; None if nothing will be without being asked."""
        if not slots:
            return None
        due = [slot.pace.due - now for slot in slots if slot.going and slot.watched(now)]
        return max(0.0, min([IDLE_S, *due]))

    def _attend(self, slot: Slot, now: float) -> None:
        """Do what is asked of a run, apart from advancing it."""
        if slot.stopping:
            self._stop(slot)
        elif slot.abandoned or self._lapsed(slot, now):
            self._end(slot, self._why(slot))
        elif slot.state == "queued":
            self._admit(slot)
        if slot.run is not None:
            with self._guarded(slot):
                self._obey(slot)
                self._show(slot)
                self._save(slot)
                self._keep(slot)

    @contextlib.contextmanager
    def _guarded(self, slot: Slot) -> Iterator[None]:
        """Let an error end this run and no other."""
        try:
            yield
        except Exception as error:
            slot.about = error.field if isinstance(error, BnnvizError) else None
            # A setting that cannot be is the user's to read, and nothing to trace.
            log.error("live run %s failed at step %d", slot.run_id, slot.step, exc_info=slot.about is None)
            self._fail(slot, _sentence(error))

    # coming and going

    def _admit(self, slot: Slot) -> None:
        others = [other for other in self._all() if other is not slot]
        busy = sum(o.state in ("starting", "running") and not (o.run and o.run.finished) for o in others)
        if busy >= self._capacity:
            waiting = [o for o in self._all() if o.state == "queued"]
            slot.message = (
                f"This worker already advances {busy} live runs; this one is number "
                f"{waiting.index(slot) + 1} in the queue and starts when one of them ends."
            )
            return
        slot.message = ""
        slot.state = "starting"
        with self._guarded(slot):
            run = slot.build(slot)
            slot.run = run
            slot.past = _past(slot)
            slot.show_anew()
            slot.catch_up()
            slot.state = "running"
        self._begin_recording(slot)
        slot.saving.spent()
        self._changed_together()
        _resolve_all(slot.builders)

    def _lapsed(self, slot: Slot, now: float) -> bool:
        return slot.lease_s is not None and now - slot.last_pull >= slot.lease_s

    def _why(self, slot: Slot) -> str:
        if slot.abandoned:
            return "The page that started this run has gone, so it was ended; its checkpoint is kept."
        return f"Nobody has watched this run for {slot.lease_s:g} s, so it was ended; its checkpoint is kept."

    def _stop(self, slot: Slot) -> None:
        self._drop(slot, "ended", "This run was stopped.")
        self.checkpoints.remove(slot.run_id)

    def _end(self, slot: Slot, message: str) -> None:
        """End a run that may be taken up again."""
        if slot.state == "running":
            with self._guarded(slot):
                self._checkpoint(slot)
        if slot.state == "failed":
            self._drop(slot, "failed", slot.message)
        else:
            self._drop(slot, "ended", message)

    def _drop(self, slot: Slot, state: str, message: str) -> None:
        self._end_recording(slot)
        with self._lock:
            self._slots.pop(slot.run_id, None)
        slot.state, slot.message = state, message
        slot.playing = False
        # its memory goes now, not when the last caller has let go of the actor or Python next looks for cycles
        slot.run = slot.past = None
        gc.collect()
        self._answer_all(slot)
        self._changed_together()

    def _fail(self, slot: Slot, message: str) -> None:
        slot.state, slot.message, slot.playing = "failed", message, False
        slot.touch()
        self._answer_all(slot)
        self._changed_together()

    def _answer_all(self, slot: Slot) -> None:
        """Leave nobody waiting for a run that has ended."""
        _resolve_all(slot.builders)
        while slot.pulls:
            slot.pulls.popleft()[1].resolve()
        while slot.commands:
            waiter = slot.commands.popleft()[2]
            if waiter is not None:
                waiter.resolve(error=BnnvizError(f"{slot.message} Start it again to go on."))

    def _changed_together(self) -> None:
        """Every status tells how many runs share the worker."""
        for slot in self._all():
            slot.touch()

    # commands

    def _obey(self, slot: Slot) -> None:
        while slot.commands and slot.state == "running":
            name, args, waiter = slot.commands.popleft()
            if name in STEPS and (slot.run.phase == "start" or slot.under_way):
                # to find the starting point, or a step that was, takes a while: the step waits, the caller does not
                slot.commands.appendleft((name, args, None))
                if waiter is not None:
                    waiter.resolve(slot.report())
                return
            try:
                self._command(slot, name, args)
            except BnnvizError as error:
                if waiter is None:
                    slot.message = error.sentence
                else:
                    waiter.resolve(error=error)
            except Exception as error:
                if waiter is not None:
                    waiter.resolve(error=BnnvizError(_sentence(error)))
                raise
            else:
                self._changed_together()
                if waiter is not None:
                    waiter.resolve(slot.report() | ({"log": slot.past.whole_log} if name in COMMANDS else {}))

    def _command(self, slot: Slot, name: str, args: dict[str, Any]) -> None:
        if name == "play":
            self._play(slot)
        elif name == "pause":
            slot.playing = False
            slot.hurry = True
        elif name == "speed":
            slot.pace.set(_speed(args.get("value")))
        elif name == "proposal":
            slot.playing = False
            self._moved(slot, slot.run.step_proposal)
        elif name == "event":
            slot.playing = False
            self._moved(slot, slot.run.step_event)
        elif name == "watch":
            slot.run.watch(**args)
        elif name == "select":
            slot.run.select(args.get("choice"))
        elif name == "change":
            self._change(slot, args["settings"])
        elif name in COMMANDS:
            if slot.past is None:
                raise BnnvizError("Only runs of one sampler can go back, not several beside each other.", "step")
            self._end_recording_of_the_past(slot, name)
            slot.past.obey(name, args)
        elif name == "record":
            self._record(slot, args.get("recording"))
        else:
            raise BnnvizError(f"A live run has no command {name!r}.", "command")

    def _change(self, slot: Slot, settings: dict[str, Any]) -> None:
        if slot.past is not None:
            slot.past.change(settings)
            slot.changes = len(slot.past.log)
        else:
            slot.run.change(settings)
            # a new change takes the place of what a lost run would have done later
            slot.replay.clear()
            slot.changes += 1
        slot.dirty = slot.hurry = True

    def _play(self, slot: Slot) -> None:
        if slot.run.finished:
            raise BnnvizError("This run has made all its draws; reset it to play again.")
        slot.playing = True
        slot.message = ""
        slot.pace.restart()

    def _moved(self, slot: Slot, step: Callable[[], Any]) -> None:
        if slot.run.finished:
            raise BnnvizError("This run has made all its draws; reset it to step again.")
        slot.catch_up()
        step()
        if slot.past is not None:
            slot.past.moved()
        slot.dirty = True
        self._ask(slot)

    # recordings

    def _record(self, slot: Slot, name: str | None) -> None:
        """Keep a run on disk from now on under a name, or, without one, end its recording."""
        self._end_recording(slot)
        if name is None:
            return
        slot.recorder = _recorder(slot.run, name, anew=True)
        slot.record = name

    def _begin_recording(self, slot: Slot) -> None:
        """Go on with the recording of a run that was taken up again."""
        if slot.record is None or slot.run is None or slot.state != "running":
            return
        try:
            if slot.past is not None:
                slot.past.recall(_recording(slot.record))
            slot.recorder = _recorder(slot.run, slot.record)
        except BnnvizError as error:
            slot.record, slot.message = None, error.sentence

    def _end_recording_of_the_past(self, slot: Slot, command: str) -> None:
        """End a recording where its run is left: it keeps what it has."""
        name = slot.record
        if name is not None and command in ("back", "return", "keep"):
            self._end_recording(slot)
            slot.message = f"The recording {name} ended where the run was left; it keeps what was recorded."

    def _keep(self, slot: Slot) -> None:
        """Write what is new of a run that is recorded; what is wrong with that is said, and the run goes on."""
        if slot.recorder is None:
            return
        try:
            slot.recorder.note()
        except BnnvizError as error:
            if slot.message != error.sentence:
                slot.message = error.sentence
                slot.touch()

    def _end_recording(self, slot: Slot) -> None:
        recorder, slot.recorder, slot.record = slot.recorder, None, None
        if recorder is None:
            return
        try:
            recorder.close(summary=recorder.run.store.buffer.numel() <= SUMMARISED)
        except BnnvizError as error:
            slot.message = error.sentence
            log.warning("the recording of live run %s was not finished: %s", slot.run_id, error.sentence)

    # advancing

    def _advance(self, slot: Slot) -> None:
        with self._guarded(slot):
            phase, begin = slot.run.phase, _worked(slot.run)
            # Frames do not count: runs of one kind are to advance alike, whatever their pages look at.
            try:
                steps = slot.advance(self._slice_s)
            finally:
                slot.used += _worked(slot.run) - begin
            slot.dirty = slot.dirty or steps > 0
            if slot.past is not None:
                slot.past.moved()
            # On the way to its start a run does not step, but says now and then how far it is.
            tells = phase == "start" and time.monotonic() >= slot.changed_at + START_S
            if steps or slot.run.phase != phase or tells:
                slot.touch()
            self._ask(slot)

    def _ask(self, slot: Slot) -> None:
        """Ask a run whether it has ended by itself."""
        if slot.run.phase == "failed":
            log.error("live run %s stopped at step %d: %s", slot.run_id, slot.step, slot.run.error)
            self._fail(slot, slot.run.error or "This run stopped without giving a reason.")
        elif slot.run.finished:
            slot.playing = False
            slot.hurry = True
            self._end_recording(slot)
            self._changed_together()

    # frames

    def _hear(self, seconds: float | None) -> None:
        """Wait for at most so long, or until somebody wakes the thread, and take the pulls that have come."""
        for caller, question in self._calls.poll(seconds):
            with self._lock:
                slot = self._slots.get(question.run)
            if slot is None:  # the actor knows what became of it
                caller.answer(b"")
                continue
            waiter = _Remote(caller, slot)
            if slot.pull(question.seen):
                slot.pulls.append((question.want, waiter))
            else:
                waiter.resolve()

    def _show(self, slot: Slot) -> None:
        """Build one frame of all parts that were asked for since the last one."""
        pulls = []
        while slot.pulls:
            pulls.append(slot.pulls.popleft())
        if not pulls:
            return
        wanted = list(dict.fromkeys(part for want, _ in pulls for part in want))
        try:
            frame = slot.run.frame([part for part in wanted if part != TIMELINE])
        except Exception:
            for _, waiter in pulls:
                waiter.resolve()
            if slot.state == "failed":  # it has failed before: what it has left cannot be drawn
                return
            raise
        if "status" in frame:
            frame["status"] = frame["status"] | self._status(slot, frame["status"])
        if TIMELINE in wanted and slot.past is not None:
            frame[TIMELINE] = slot.past.shown()
        for want, waiter in pulls:
            part = {name: value for name, value in frame.items() if name == "seq" or name in want}
            waiter.resolve(framebytes.dumps(slot.report() | {"frame": part}))
        pulls[-1][1].sent()

    def _status(self, slot: Slot, status: dict[str, Any]) -> dict[str, Any]:
        """Return what the loop knows and the run does not."""
        return {
            "playing": slot.playing,
            "speed": slot.pace.speed,
            "shared": sum(other.alive and other.playing for other in self._all()),
            "record": slot.record,
            "message": slot.message or status.get("message", ""),
            **({} if slot.past is None else slot.past.status()),
        }

    # checkpoints

    def _save(self, slot: Slot) -> None:
        if slot.state != "running" or not slot.dirty:
            return
        runs = sum(other.state == "running" for other in self._all())
        slot.saving.cost = runs * (slot.packing_s + slot.writing_s)  # they all share the time
        slot.saving.least = 0.0 if slot.hurry else CHECKPOINT_S
        if not slot.saving.due:
            return
        if slot.writing is None or slot.writing.done():
            self._checkpoint(slot)

    def _checkpoint(self, slot: Slot) -> None:
        if not slot.dirty or slot.under_way:  # what lies on the way is known
            return
        self._collect(slot)
        begin = time.perf_counter()
        data = slot.run.checkpoint()
        slot.packing_s = time.perf_counter() - begin
        slot.saving.spent()
        slot.dirty = slot.hurry = False
        slot.writing = self.checkpoints.write(slot.run_id, Saved(slot.changes, data))

    def _collect(self, slot: Slot) -> None:
        """Learn how the last write went."""
        if slot.writing is None:
            return
        try:
            slot.writing_s = slot.writing.result()
        except OSError as error:
            log.warning("the checkpoint of live run %s could not be written: %s", slot.run_id, error)


def _recorder(run: Simulation, name: str, anew: bool = False) -> Any:
    """Return what keeps a run in the recording of this name, a new one or one that it goes on with."""
    from bnnviz.engine import shelf
    from bnnviz.engine.recorder import Recorder

    if run.is_fork:
        raise BnnvizError("Keep one of the futures first; then it can be recorded.", "record")
    if not run.can_record:
        raise BnnvizError("Only runs of one sampler are recorded, not several beside each other.", "record")
    folder = shelf.place(name)  # a page names no paths
    return Recorder(run, shelf.new_place(name) if anew else folder)


def _recording(name: str) -> Any:
    """Return the recording of a name, as it was last written."""
    from bnnviz.engine import shelf

    return shelf.Recording(shelf.place(name))


def _past(slot: Slot) -> Past | None:
    """Return the past of a run that can go back; None of one that cannot."""
    if not slot.run.has_history:
        return None
    from bnnviz.engine.fork import taken_up  # a run is there, and so is torch

    return Past(slot, taken_up)


def _worked(run: Simulation) -> float:
    """Return a clock of a run's work in seconds.

    On a CPU it stands while other processes have the core: a busy machine would make equal shares unequal.
    """
    return time.thread_time() if run.device.type == "cpu" else time.perf_counter()


def _resolve_all(waiters: deque[_Waiter]) -> None:
    while waiters:
        waiters.popleft().resolve()


def _speed(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise BnnvizError(f"The speed is a number of steps per second above 0, not {value!r}.", "speed")
    return float(value)


def _sentence(error: Exception) -> str:
    if isinstance(error, BnnvizError):
        return error.sentence
    what = str(error).strip().splitlines()
    cause = f"{type(error).__name__}: {what[0]}" if what else type(error).__name__
    return f"This run was stopped by an error ({cause}); the worker's log has the details."


def _restored(run_class: Any, checkpoints: Checkpoints, slot: Slot) -> Any:
    """Return a lost run as its last checkpoint has it; None if there is none that can be read."""
    try:
        saved = checkpoints.read(slot.run_id)
        if saved is None:
            return None
        run = _read(run_class, saved.data)
    except Exception:
        log.exception("the checkpoint of live run %s cannot be used; it starts again", slot.run_id)
        return None
    slot.changes = saved.changes
    for _ in range(min(saved.changes, len(slot.replay))):
        slot.replay.popleft()
    return run


def _read(run_class: Any, data: bytes) -> Any:
    """Return the run of a checkpoint, or the fork."""
    if not data.startswith(MAGIC):
        return run_class.restore(data)
    from bnnviz.engine.fork import Fork

    return Fork.restore(data)


def _with_start(spec: Any) -> Any:
    """Return a spec with the points that its chains set out from, where these are a recording's."""
    from bnnviz.engine.warmstart import resolved
    from bnnviz.spec import Spec

    return resolved(spec.checked()) if isinstance(spec, Spec) and spec.start is not None else spec


def _recorded(name: str) -> Any:
    """Return the run of a recording as it was last written."""
    from bnnviz.engine import shelf
    from bnnviz.engine.resume import resume

    return resume(shelf.place(name))


# The actor -------------------------------------------------------------------------------------------

_loop: LiveLoop | None = None
_loop_lock = threading.Lock()


def live_loop() -> LiveLoop:
    """Return the loop of this process; it is made at the first call."""
    global _loop
    with _loop_lock:
        if _loop is None:
            _loop = LiveLoop()
        return _loop


def census() -> list[dict[str, Any]]:
    """Return one row for each live run of this process."""
    return [] if _loop is None else _loop.census()


def starting() -> bool:
    """Return whether a live run of this process is being built, or looks for its start."""
    return _loop is not None and _loop.starting()


def close() -> None:
    """Save and end the live runs of this process."""
    global _loop
    with _loop_lock:
        loop, _loop = _loop, None
    if loop is not None:
        loop.close()


class LiveRun:
    """A live run as a Dask actor: the page's end of a place in the worker's `LiveLoop`.

    Parameters
    ----------
    spec : Spec
        What to run.
    run_id : str
        Names the run and its checkpoint.
    play : bool
        Whether it advances as soon as it is built.
    speed : float or None
        Steps per second; None is as fast as it goes.
    watch : dict or None
        The chain, plane and component to watch, as the command ``watch`` takes them.
    lease_s : float or None
        Seconds without a pull after which the run ends (after a fifth of them it rests); None: it stays.
    restore : bool
        Whether this goes on with a run whose worker was lost, from its checkpoint if that is here.
    changes : iterable of (step, settings)
        The change log of that run.
    record : str or None
        The name of the recording that it is kept in.
    origin : str or None
        The name of a recording whose run goes on.
    factory : str
        Dotted path of the run class, ``module:name``.
    loop : LiveLoop or None
        None: the one of this process.
    """

    def __init__(
        self,
        spec: Any,
        run_id: str,
        *,
        play: bool = False,
        speed: float | None = None,
        watch: dict[str, Any] | None = None,
        lease_s: float | None = LEASE_S,
        restore: bool = False,
        changes: Iterable[tuple[int, dict[str, Any]]] = (),
        record: str | None = None,
        origin: str | None = None,
        factory: str,
        loop: LiveLoop | None = None,
    ) -> None:
        self._loop = loop or live_loop()
        checkpoints = self._loop.checkpoints

        def build(slot: Slot) -> Any:
            module, name = factory.split(":")
            run_class = getattr(importlib.import_module(module), name)
            run = _restored(run_class, checkpoints, slot) if restore else None
            if run is None:
                run = run_class(_with_start(spec)) if origin is None else _recorded(origin)
            if restore:
                slot.resumed = int(run.steps)
            # Who looks on does not wait for a compiler.
            run.patient = False
            if slot.watch:
                run.watch(**slot.watch)
            return run

        self._slot = Slot(
            run_id,
            build,
            lease_s=lease_s,
            playing=play,
            pace=Pace(_speed(speed)),
            watch=dict(watch or {}),
            replay=deque(changes),
            record=record,
        )
        self._loop.add(self._slot)
        # when the page's process has gone, the scheduler drops the actor: do not wait for the lease
        weakref.finalize(self, self._loop.abandon, self._slot).atexit = False

    async def ready(self) -> dict[str, Any]:
        """Return the status and where frames can be asked for, after waiting for a run that is being built."""
        self._slot.last_pull = time.monotonic()
        await self._built()
        return self._slot.report() | {"socket": self._loop.socket}

    async def status(self) -> dict[str, Any]:
        """Return the state, the step, and a sentence if there is something to say."""
        return self._slot.report()

    async def scene(self) -> dict[str, Any]:
        """Return the status and the scene, which is None while the run is not built."""
        self._slot.last_pull = time.monotonic()
        await self._built()
        return self._slot.report() | {"scene": self._slot.scene}

    async def frame(self, want: list[str], seen: int = -1) -> bytes:
        """Return the status and a fresh frame, which is None if there is nothing new, pickled.

        A page on this machine asks for the frames of a run that plays at the loop's socket instead.

        Dask would measure, wrap and count each of its arrays: some 2 ms instead of 0.1.

        Parameters
        ----------
        want : list of str
            The parts to build.
        seen : int
            The version that the caller has seen of each of these parts.
        """
        slot = self._slot
        if not slot.pull(seen):
            self._loop.wake()  # it may have been resting
            return slot.nothing_new()
        waiter = _waiter()
        slot.pulls.append((want, waiter))
        self._loop.wake()
        return await waiter.future or slot.nothing_new()

    async def command(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        """Have a command executed between two slices and return the status after it.

        Raises
        ------
        BnnvizError
            If it is refused.
        """
        slot = self._slot
        if slot.state not in ALIVE:
            raise BnnvizError(f"{slot.message} Start it again to go on.")
        slot.last_pull = time.monotonic()
        waiter = None if slot.run is None else _waiter()
        slot.commands.append((name, args, waiter))
        self._loop.wake()
        return slot.report() if waiter is None else await waiter.future

    async def stop(self) -> None:
        """End the run at once and remove its checkpoint."""
        self._slot.stopping = True
        self._loop.wake()

    async def _built(self) -> None:
        if self._slot.run is None and self._slot.state in ALIVE:
            waiter = _waiter()
            self._slot.builders.append(waiter)
            if self._slot.run is not None:  # built meanwhile
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiter.future, WAIT_S)


def _waiter() -> _Waiter:
    loop = asyncio.get_running_loop()
    return _Waiter(loop, loop.create_future())
