"""Hold a live run in the loop of its worker, with its pending requests and its time."""

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

from bnnviz.engine.host import STATUS, Host
from bnnviz.engine.throttle import Throttle

CHECKPOINT_SHARE = 0.05  # of the time, at most
SETTLE_S = 1.0  # slow frame parts refresh about once per second: frames are made this long after a change
ANSWER_TURNS = 3  # of the event loop until an answer is on its way
ANSWER_S = 0.005  # the longest wait for that
ALIVE = ("starting", "running")


@dataclass
class Waiter:
    """Answer a request from the worker's event loop to the loop thread."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future

    @classmethod
    def here(cls) -> Waiter:
        """Return a waiter for the running event loop."""
        loop = asyncio.get_running_loop()
        return cls(loop, loop.create_future())

    def resolve(self, value: Any = None, error: Exception | None = None) -> None:
        """Set the answer, or the error to raise instead; call from the other thread."""
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            self.loop.call_soon_threadsafe(self._set, value, error)

    def sent(self) -> None:
        """Wait until the event loop has passed the answer on; call after `resolve`, from the other thread."""
        # Otherwise both threads would compete for the interpreter, which costs more than the wait.
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
    """The place of a run in the loop."""

    run_id: str
    build: Callable[[], Host]

    host: Host | None = None
    scene: dict[str, Any] | None = None
    spec: Any = None  # of the run, at the last frame or command
    state: str = "starting"
    message: str = ""
    about: str | None = None  # the setting that the message is about
    resumed: int | None = None  # the step at which a lost run was resumed
    stopping: bool = False
    abandoned: bool = False  # no client can reach the run any more

    used: float = 0.0  # seconds of the loop thread spent on advancing it
    version: int = 0  # grows with every change that a frame could show
    drawn: int = 0  # the version of the last change beyond the status
    spec_version: int = 0  # the version of the last change of the spec
    changed_at: float = 0.0

    commands: deque[tuple[str, dict[str, Any], Waiter | None]] = field(default_factory=deque)
    pulls: deque[tuple[list[str], int, Waiter]] = field(default_factory=deque)
    builders: deque[Waiter] = field(default_factory=deque)

    saved: tuple[Any, ...] | None = None  # the moment of the last checkpoint
    hurry: bool = False  # a checkpoint is due earlier than usual
    saving: Throttle = field(default_factory=lambda: Throttle(CHECKPOINT_SHARE))
    packing_s: float = 0.0  # time to make the last checkpoint
    writing_s: float = 0.0  # time to write it
    writing: Future[float] | None = None

    @property
    def alive(self) -> bool:
        """Whether the run is in the loop."""
        return self.state in ALIVE and not self.stopping

    @property
    def step(self) -> int:
        """Steps the run has done."""
        return 0 if self.host is None else int(self.host.run.steps)

    @property
    def playing(self) -> bool:
        """Whether the run plays."""
        return self.state == "running" and self.host.playing

    @property
    def going(self) -> bool:
        """Whether the run should advance."""
        return self.state == "running" and self.host.going

    def take_scene(self) -> None:
        """Build the scene of the current run."""
        self.scene = self.host.scene()

    def look_at_spec(self) -> None:
        """Record whether the spec of the run has changed."""
        if self.host.run.spec is not self.spec:
            self.spec, self.spec_version = self.host.run.spec, self.version

    def touch(self) -> None:
        """Record a change that a frame could show."""
        self.version += 1
        self.drawn, self.changed_at = self.version, time.monotonic()

    def touch_status(self) -> None:
        """Record a change of the status only."""
        self.version += 1

    def report(self) -> dict[str, Any]:
        """Return the status of the run for callers."""
        told = {
            "state": self.state,
            "message": self.message,
            "field": self.about,
            "step": self.step,
            "resumed": self.resumed,
            "version": self.version,
            "held": self.host is not None,
            "playing": self.playing,
        }
        if self.host is None:
            return told
        ended = self.state == "running" and self.host.run.finished
        return told | {
            "state": "ended" if ended else self.state,
            "message": self.message or self.host.message,
            "speed": self.host.pace.speed,
            "record": self.host.record,
            "changes": len(self.host.log),
        }

    def full_report(self) -> dict[str, Any]:
        """Return the report with the spec and the change log of the run."""
        return self.report() | ({} if self.host is None else {"spec": self.host.run.spec, "log": self.host.log})

    def nothing_new(self) -> bytes:
        """Return the pickled report without a frame."""
        return pickle.dumps(self.report() | {"frame": None})

    def pull(self, want: list[str], seen: int) -> list[str]:
        """Return the parts of a frame that may have changed since a version."""
        settled = time.monotonic() - self.changed_at > SETTLE_S
        if self.host is None or (seen == self.version and settled):
            return []
        if seen >= self.drawn and settled:
            return [part for part in want if part == STATUS]
        return want


def resolve_all(waiters: deque[Waiter]) -> None:
    """Resolve all waiters."""
    while waiters:
        waiters.popleft().resolve()
