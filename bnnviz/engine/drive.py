"""Drive a simulation: to its end, up to a step, or at a number of steps per second.

This module does not import torch.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from bnnviz.engine.protocol import LoggedChange

#: The longest block, in steps.
LONGEST = 1 << 30


def drive(
    run: Any,
    slice_s: float,
    each: Callable[[], Any] = lambda: None,
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> bool:
    """Advance a simulation to its end; return whether it ended without being stopped."""
    while not run.finished:
        if stopped():
            return False
        run.advance(slice_s)
        each()
    return True


def make_changes(run: Any, changes: deque[LoggedChange]) -> None:
    """Make the changes for the current step of a run, and remove them from the others."""
    while changes and changes[0][0] <= run.steps:
        run.change(changes.popleft()[1])


def replay(
    run: Any,
    changes: deque[LoggedChange],
    goal: float = math.inf,
    *,
    seconds: float = math.inf,
    slice_s: float,
    room: Callable[[], int] = lambda: LONGEST,
    each: Callable[[], Any] = lambda: None,
) -> int:
    """Advance a run up to a step and repeat its changes at their steps, removing them from ``changes``."""
    first, end = run.steps, time.monotonic() + seconds
    while run.steps < goal and time.monotonic() < end:
        if run.phase == "start":
            run.advance(slice_s)
            continue
        make_changes(run, changes)  # a finished run may be extended
        if run.finished:
            break
        ahead = [step - run.steps for step in (goal, *(step for step, _ in changes)) if step < math.inf]
        run.take(min([room(), *ahead]), slice_s)
        each()
    return run.steps - first


class Pace:
    """Set the speed of a simulation: steps per second, or None for full speed."""

    def __init__(self, speed: float | None = None) -> None:
        self.speed, self.due = speed, 0.0

    def restart(self) -> None:
        """Make the next step due now, without a backlog."""
        self.due = time.monotonic()

    def rests(self, now: float) -> bool:
        """Whether the next step is not due yet."""
        return self.speed is not None and now < self.due

    def advance(self, run: Any, seconds: float) -> int:
        """Run for at most ``seconds``, at the set speed after the start; return the number of steps."""
        if self.speed is None or run.phase == "start":
            return run.advance(seconds)
        now = time.monotonic()
        end, steps = now + seconds, 0
        while self.due <= now < end and not run.finished:
            run.step_proposal()
            steps += 1
            # A run that cannot keep up must not build up a backlog.
            self.due = max(self.due + 1 / self.speed, now - seconds)
            now = time.monotonic()
        return steps
