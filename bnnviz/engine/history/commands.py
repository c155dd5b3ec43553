"""Obey what a live run is asked about its past: go back to a step, fork there, keep one of the futures.

Nothing here imports torch; what does is imported where a run is there already.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz.engine.history.timeline import History, ReplayTo, Restore, asked
from bnnviz.engine.protocol import Place
from bnnviz.engine.throttle import Throttle
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    from bnnviz.engine.recording.reader import Recording

_EVERY_S, _SHARE = 0.5, 0.01  # between two checkpoints of its own, and of the time that making them may take
#: The commands of a live run that its past obeys.
COMMANDS = ("back", "return", "fork", "follow", "keep")


class HistoryCommands:
    """Obey commands about the past of the run in a place of the loop, and the futures that it was parted in."""

    def __init__(self, slot: Place, restore: Restore) -> None:
        self._slot = slot
        self._history = History(restore)
        self._history.furthest = slot.run.steps
        self.replay_to: ReplayTo | None = None
        self._pace = Throttle(_SHARE, least=_EVERY_S)  # of checkpoints
        self.jumps = 0  # grows whenever what is seen is another state than the one before
        # Changes that were made before the page's: those of a recording that goes on.
        self._before = len(asked(slot.run.changes)) - slot.changes
        self._follow(slot.run)

    @property
    def log(self) -> list[tuple[int, dict[str, Any]]]:
        """The change log as the page knows it."""
        return asked(self._slot.run.changes)[self._before :]

    @property
    def whole_log(self) -> list[tuple[int, dict[str, Any]]]:
        """The change log with what is still to come of it, where the run repeats what was."""
        run, left = self._slot.run, self._slot.replay if self.replay_to is None else self.replay_to.left
        script = run.branches[run.followed].script if run.is_fork else left
        return self.log + asked(list(script))

    def _follow(self, run: Any) -> None:
        """Show the events of a run, or of the followed branch of a fork."""
        if run.is_fork:
            self._history.timeline = run.branches[run.followed].timeline
        else:
            self._history.timeline.follow(run)

    def advance(self, seconds: float) -> int:
        """Go on with the way back for at most so many seconds; return the steps that were taken."""
        replaying = self.replay_to
        steps = replaying.advance(seconds)
        if replaying.done:
            self._slot.replay, self.replay_to = replaying.left, None
            self._history.reached(replaying.run.steps)
        return steps

    def moved(self) -> None:
        """Note that the run may have moved; where it has found its start it is kept to go back to."""
        run = self._slot.run
        if run.phase == "start" or self.replay_to is not None:
            return
        self._history.reached(run.steps)
        if self._history.empty or self._pace.due:
            begun = time.perf_counter()
            self._history.note(run)
            self._pace.spent(time.perf_counter() - begun)

    def recall(self, recording: Recording) -> None:
        """Take over checkpoints and events of the recording that the run goes on with."""
        from bnnviz.samplers.pdmp.thinning import BOUNCE, REFRESH

        step = self._slot.run.steps
        for checkpoint in recording.progress["marks"]:
            if checkpoint["step"] < step:
                self._history.recall(checkpoint["step"], recording.folder)
        kinds = (recording.steps() or {}).get("kind", np.empty(0))[:step]
        for number in np.flatnonzero(np.isin(kinds, (BOUNCE, REFRESH))).tolist():
            self._history.timeline.add(number + 1, int(kinds[number]))

    def obey(self, name: str, args: dict[str, Any]) -> None:
        """Execute a command."""
        if self.replay_to is not None and name not in ("back", "return"):
            raise BnnvizError(f"The run is on its way to step {self.replay_to.goal:,}; wait until it is there.", "fork")
        commands = {
            "back": lambda: self._back(args.get("step")),
            "return": lambda: self._go(self._history.furthest),
            "fork": self.fork,
            "follow": lambda: self._follow_branch(args.get("branch")),
            "keep": lambda: self._keep(args.get("branch")),
        }
        commands[name]()
        slot = self._slot
        self.jumps += 1
        slot.show_again()
        slot.changes = len(self.log)
        slot.dirty = slot.hurry = True

    def change(self, settings: dict[str, Any]) -> None:
        """Change settings; where it is known what comes next, in a future beside the one that was."""
        if self.replay_to is not None:
            raise BnnvizError(
                f"The run is on its way to step {self.replay_to.goal:,}; change it when it is there.",
                next(iter(settings)),
            )
        if self._history.behind and not self._slot.run.is_fork:
            self.fork()
            self.jumps += 1
        elif self._history.behind:
            self._history.part(self._slot.run.steps)
            self._history.timeline.cut(self._slot.run.steps)
        self._slot.run.change(settings)
        self._slot.replay.clear()

    def shown(self) -> dict[str, Any]:
        """Return the part ``timeline`` of a frame."""
        run = self._slot.run
        return self._history.shown(run.steps) | {"fork": run.at if run.is_fork else None}

    def status(self) -> dict[str, Any]:
        """Return what is told of the past in the part ``status``."""
        behind = self._history.behind or self.replay_to is not None
        told = {"behind": behind, "furthest": self._history.furthest, "jumps": self.jumps}
        if not behind and not self._slot.run.is_fork:
            return told
        goal = None if self.replay_to is None else self.replay_to.goal
        return told | {"goal": goal, "spec": self._slot.run.spec.to_json()}

    def _back(self, step: int | None) -> None:
        """Go back to a step, or, without one, to the last event before this one."""
        if step is None:
            # On its way the run is at steps that it passes only, from the checkpoint before its goal on.
            here = self._slot.run.steps if self.replay_to is None else self.replay_to.goal
            step = self._history.timeline.before(here)
            if step is None:
                raise BnnvizError("No event of this run is known before this step.", "step")
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise BnnvizError(f"A step is a whole number from 0 on, not {step!r}.", "step")
        self._go(min(step, self._history.furthest))

    def _go(self, step: int) -> None:
        slot, history = self._slot, self._history
        checkpoint = history.before(step)
        if self.replay_to is None:
            history.leave(slot.run)
        run, before = history.taken_up(checkpoint), slot.run
        self.replay_to = ReplayTo(run, step, history.log(before))
        run.look_like(before)
        run.show_here()
        history.timeline.follow(None)
        self._follow(run)
        slot.run, slot.playing = run, False
        self.advance(0.0)

    def fork(self) -> None:
        """Part the run in two, or add another future to those there are."""
        from bnnviz.engine.history.fork import Fork

        slot, history = self._slot, self._history
        if slot.run.phase == "start":
            raise BnnvizError("This run is still looking for its start; fork it after its first step.", "fork")
        if slot.run.is_fork:
            slot.run.split()
        else:
            slot.run = Fork.of(slot.run, history.timeline, slot.replay)
        slot.replay = deque()
        fork = slot.run
        history.part(fork.steps)
        self._follow(fork)
        history.timeline.cut(fork.steps)
        history.parted(fork)

    def _follow_branch(self, letter: str | None) -> None:
        fork = self._chosen()
        fork.follow(letter)
        self._follow(fork)

    def _keep(self, letter: str | None) -> None:
        """End the fork: one of its branches goes on alone."""
        fork, history = self._chosen(), self._history
        fork.follow(letter)
        branch = fork.branches[fork.followed]
        self._slot.run, self._slot.replay = branch.run, branch.script
        history.timeline = branch.timeline
        history.joined(branch.run, fork.at)

    def _chosen(self) -> Any:
        if not self._slot.run.is_fork:
            raise BnnvizError("This run has one future only; fork it first.", "branch")
        return self._slot.run
