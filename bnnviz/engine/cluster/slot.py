"""Hold a live run's place in the loop of its worker: what it is to do, who waits for it, how much time it has had."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from bnnviz.engine.drive import Pace, make_changes, replay
from bnnviz.engine.history.commands import HistoryCommands
from bnnviz.engine.throttle import Throttle
from bnnviz.errors import BnnvizError

CHECKPOINT_SHARE = 0.05  # of the time, at most
SETTLE_S = 1.0  # slow parts of a frame are refreshed about once a second: pull on for so long after a change
ANSWER_TURNS = 3  # of the event loop until an answer is on its way
ANSWER_S = 0.005  # the longest wait for that
TIMELINE, STATUS = "timeline", "status"  # parts of frames that the loop knows of
ALIVE = ("starting", "running")


@dataclass
class Waiter:
    """Answer somebody on the worker's event loop who waits for the loop thread."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future

    def resolve(self, value: Any = None, error: Exception | None = None) -> None:
        """Give the answer, or the error that is raised instead; call from the other thread."""
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


def _after_turns(loop: asyncio.AbstractEventLoop, turns: int, then: Callable[[], None]) -> None:
    """Call a function some turns of the event loop later."""
    if turns:
        loop.call_soon(_after_turns, loop, turns - 1, then)
    else:
        then()


@dataclass
class Slot:
    """Hold a run's place in the loop: what it is to do, who waits for it, how much time it has had."""

    run_id: str
    build: Callable[[Slot], Any]
    playing: bool = False
    pace: Pace = field(default_factory=Pace)
    watch: dict[str, Any] = field(default_factory=dict)
    replay: deque[tuple[int, dict[str, Any]]] = field(default_factory=deque)
    record: str | None = None  # the name of its recording
    ended_playing: bool = False  # whether it played when its run ended by itself, so that a change has it play on

    run: Any = None
    writer: Any = None
    history: HistoryCommands | None = None  # of a run that can go back
    scene: dict[str, Any] | None = None
    state: str = "starting"
    message: str = ""
    about: str | None = None  # the setting that the message is about
    resumed: int | None = None  # the step at which a lost run was taken up again
    changes: int = 0  # entries of the change log that the run contains
    stopping: bool = False
    abandoned: bool = False  # nobody can reach the run any more

    used: float = 0.0  # seconds of the loop thread in which it has advanced
    version: int = 0  # grows with everything that a frame could show
    drawn: int = 0  # the version of the last change that is more than one of its status
    changed_at: float = 0.0

    commands: deque[tuple[str, dict[str, Any], Waiter | None]] = field(default_factory=deque)
    pulls: deque[tuple[list[str], Waiter]] = field(default_factory=deque)
    builders: deque[Waiter] = field(default_factory=deque)

    dirty: bool = False  # has moved since the last checkpoint
    hurry: bool = False  # a checkpoint is due sooner than after the usual time
    saving: Throttle = field(default_factory=lambda: Throttle(CHECKPOINT_SHARE))
    packing_s: float = 0.0  # what the last checkpoint took to make
    writing_s: float = 0.0  # and to write
    writing: Future[float] | None = None

    @property
    def alive(self) -> bool:
        """Whether the run is in the loop."""
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
        return self.history is not None and self.history.replay_to is not None

    def is_up_to_date(self, seen: int, now: float) -> bool:
        """Whether a caller who has seen this version has seen everything."""
        return seen == self.version and now - self.changed_at > SETTLE_S

    def show_again(self) -> None:
        """Make the scene of what runs now."""
        scene = self.run.scene()
        known = [TIMELINE] if self.history is not None else []
        self.scene = scene | {"emits": [*scene["emits"], *known]} if known else scene

    def touch(self) -> None:
        """Note that something has changed that a frame could show."""
        self.version += 1
        self.drawn, self.changed_at = self.version, time.monotonic()

    def touch_status(self) -> None:
        """Note that its status alone has changed, which one frame shows."""
        self.version += 1

    def advance(self, seconds: float) -> int:
        """Let the run step for at most so many seconds, or as its speed asks; return the steps done."""
        if self.under_way:
            return self.history.advance(seconds)
        if self.replay and self.playing:
            return self._replay(seconds)
        return self.pace.advance(self.run, seconds)

    def _replay(self, seconds: float) -> int:
        """Make the changes of a lost run at the steps where they were made: the draws are the same."""
        known = self.changes + len(self.replay)
        steps = replay(self.run, self.replay, self.replay[-1][0], seconds=seconds, slice_s=seconds)
        self._catch_up(known)
        return steps

    def catch_up(self) -> None:
        """Make the changes of the lost run that belong to this step."""
        self._catch_up(self.changes + len(self.replay))

    def _catch_up(self, known: int) -> None:
        make_changes(self.run, self.replay)
        self.changes = known - len(self.replay) if self.history is None else len(self.history.log)

    def change(self, settings: dict[str, Any]) -> None:
        """Change settings of the run."""
        if self.history is not None:
            self.history.change(settings)
            self.changes = len(self.history.log)
        else:
            self.run.change(settings)
            # a new change takes the place of what a lost run would have done later
            self.replay.clear()
            self.changes += 1
        self.dirty = self.hurry = True

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

    def pull(self, want: list[str], seen: int) -> list[str]:
        """Note that somebody asks for parts of a frame who has seen a version; return those that may have changed."""
        now = time.monotonic()
        if self.run is None or self.is_up_to_date(seen, now):
            return []
        if seen >= self.drawn and now - self.changed_at > SETTLE_S:
            return [part for part in want if part == STATUS]
        return want


def resolve_all(waiters: deque[Waiter]) -> None:
    """Let go of all who wait."""
    while waiters:
        waiters.popleft().resolve()


def checked_speed(value: Any) -> float | None:
    """Return a speed that somebody has asked for, in steps a second; None is as fast as it goes."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise BnnvizError(f"The speed is a number of steps per second above 0, not {value!r}.", "speed")
    return float(value)
