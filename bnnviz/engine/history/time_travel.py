"""Move a live run in its past: go back to a step, fork there, keep one of the branches.

This module does not import torch; modules that do are imported when a run exists already.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from bnnviz.engine.history.timeline import History, Timeline, logs_of, rest
from bnnviz.engine.protocol import LoggedChange
from bnnviz.engine.throttle import Throttle
from bnnviz.errors import BnnvizError

_EVERY_S, _SHARE = 0.5, 0.01  # minimum interval of checkpoints, and maximum fraction of the time
COMMANDS = ("back", "return", "fork", "follow", "keep")


class TimeTravel:
    """Execute the commands on the past of a host's run and on its branches."""

    def __init__(self, host: Any) -> None:
        self._host = host
        self.history, self.timeline = History(host.run.steps), Timeline()
        self._logs: dict[str, list[LoggedChange]] | None = None  # of a run in its past, whose future is known
        self._pace = Throttle(_SHARE, least=_EVERY_S)  # of checkpoints
        self.jumps = 0  # grows with each jump to another state
        self._follow_events(host.run)
        if host.run.phase != "start":  # the earliest step of a run that continues a recording
            self.history.note(host.run)

    def _follow_events(self, run: Any) -> None:
        """Show the events of a run, or of the followed branch of a fork."""
        if run.is_fork:
            self.timeline = run.branches[run.followed].timeline
        else:
            self.timeline.follow(run)

    def moved(self) -> None:
        """Record progress of the run; now and then keep a checkpoint."""
        run = self._host.run
        if run.phase == "start":
            return
        if run.steps >= self.history.furthest:  # at the front a run leaves its past
            self.history.furthest, self._logs = run.steps, None
        if not self.history.checkpoints or self._pace.due:
            begun = time.perf_counter()
            self.history.note(run)
            self._pace.spent(time.perf_counter() - begun)

    def obey(self, name: str, step: int | None = None, branch: str | None = None) -> None:
        """Execute a command."""
        if name not in ("back", "return"):
            self._check_arrived("fork")
        run = self._host.run
        if name == "back":
            if step is None:  # to the last event before this step
                # The run passes through steps from the checkpoint to its goal.
                step = self.timeline.before(run.steps if self._host.goal is None else self._host.goal)
                if step is None:
                    raise BnnvizError("This run has no recorded event before this step.", "step")
            if isinstance(step, bool) or not isinstance(step, int) or step < 0:
                raise BnnvizError(f"A step is a whole number from 0 on, not {step!r}.", "step")
            self._go(min(step, self.history.furthest))
        elif name == "return":
            self._go(self.history.furthest)
        elif name == "fork":
            self._fork()
        else:
            if not run.is_fork:
                raise BnnvizError("This run has only one branch. Fork it first.", "branch")
            run.follow(branch)
            self._follow_events(run)
            if name == "keep":
                kept = run.branches[run.followed]
                self._host.run, self._host.script = kept.run, kept.script
                self._part(kept.run.steps)
                self.history.forks = []
                self.history.checkpoints = [each for each in self.history.checkpoints if each.step < run.at]
                self.history.note(kept.run)  # only the kept branch can go back
        self.jumps += 1

    def part_for(self, settings: dict[str, Any]) -> None:
        """Prepare a change: in the past it is made in a new branch."""
        self._check_arrived(next(iter(settings)))
        if self._logs is None:
            return
        if self._host.run.is_fork:
            self._part(self._host.run.steps)
            self.timeline.cut(self._host.run.steps)
        else:
            self._fork()
            self.jumps += 1

    def _check_arrived(self, field: str) -> None:
        goal = self._host.goal
        if goal is not None:
            raise BnnvizError(f"The run is on its way to step {goal:,}; wait until it is there.", field)

    def shown(self) -> dict[str, Any]:
        """Return the part ``timeline`` of a frame."""
        run, last = self._host.run, self.history.furthest
        place = {"now": run.steps, "last": max(run.steps, last), "fork": run.at if run.is_fork else None}
        return self.timeline.around(run.steps) | place

    def status(self) -> dict[str, Any]:
        """Return the data on the past for the part ``status`` of a frame."""
        goal = self._host.goal
        behind = self._logs is not None or goal is not None
        return {"behind": behind, "furthest": self.history.furthest, "jumps": self.jumps, "goal": goal}

    def _part(self, step: int) -> None:
        self._logs = None
        self.history.part(step)

    def _go(self, step: int) -> None:
        from bnnviz.engine.history.fork import restored

        host, history = self._host, self.history
        checkpoint = history.before(step)
        if host.goal is None and self._logs is None:  # save the front
            self._logs, history.furthest = logs_of(host.run), host.run.steps
            history.note(host.run)
        before, logs = host.run, self._logs or logs_of(host.run)
        run = restored(checkpoint.data, history.block_store)
        host.script = deque()
        if run.is_fork:
            for branch in run.branches:
                branch.script = rest(branch.run, logs.get(branch.letter, logs[""])[len(branch.run.changes) :])
        else:
            host.script = rest(run, logs[""][len(run.changes) :])
        run.lead.look_like(before)
        run.lead.show_here()
        self.timeline.follow(None)
        self._follow_events(run)
        host.run, host.goal, host.playing = run, step, False
        host.advance(0.0)

    def _fork(self) -> None:
        """Fork the run, or add a branch."""
        from bnnviz.engine.history.fork import Fork

        host = self._host
        if host.run.phase == "start":
            raise BnnvizError("This run has not started yet. Fork it after its first step.", "fork")
        if host.run.is_fork:
            host.run.split()
        else:
            host.run = Fork.of(host.run, self.timeline, host.script)
        host.script = deque()
        self._part(host.run.steps)
        self._follow_events(host.run)
        self.timeline.cut(host.run.steps)
        self.history.forks.append(host.run.steps)
        self.history.note(host.run)
