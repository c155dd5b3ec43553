"""Keep the history of a live run: checkpoints, events, and the way to any past step.

A past step is reached from the last checkpoint before it, as the kernel is deterministic. This module does not import
torch.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnnviz.engine.protocol import LoggedChange
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    from bnnviz.engine.run.draw_store import BlockStore
    from bnnviz.samplers.observers import StepBatch

_MOST_CHECKPOINTS, _MOST_BYTES = 160, 1 << 27  # maximum number and total bytes of checkpoints
_EVENTS = 100_000  # maximum on the timeline; beyond it every second one is dropped
_NEAR, _WHOLE = 64, 400  # events in a frame: around the current step, and of the whole run
_RUN_UP = 200  # steps before the target of a jump, shown as its path
_KERNEL = {"kernel"}
MAGIC = b"bnnviz fork\n"  # start of a fork's checkpoint


class Checkpoint(NamedTuple):
    """A checkpoint to go back to: step, bytes and blocks of draws."""

    step: int
    data: bytes
    blocks: frozenset[str] = frozenset()


def asked(changes: list[LoggedChange]) -> list[LoggedChange]:
    """Return the requested entries of a change log, without switches to a compiled kernel."""
    return [change for change in changes if set(change[1]) != _KERNEL]


def logs_of(run: Any) -> dict[str, list[LoggedChange]]:
    """Return the change logs of the branches of a fork by their letters, and with "" that of the run in the views."""
    return {"": list(run.changes)} | {
        each.letter: list(each.run.changes) for each in (run.branches if run.is_fork else ())
    }


class Timeline:
    """Collect the events of the watched chain of a run: the step after each, and its kind."""

    def __init__(self, steps: Iterable[int] = (), kinds: Iterable[int] = ()) -> None:
        self.steps, self.kinds = array("q", steps), array("b", kinds)
        self._run: Any = None

    def follow(self, run: Any) -> None:
        """Collect the events of this run from now on; None stops it."""
        if self._run is not None:
            self._run.listeners.remove(self._take_events)
        self._run = run
        if run is not None:
            run.listeners.append(self._take_events)

    def _take_events(self, step_batch: StepBatch) -> None:
        lately = self._run.chain_trace.lately
        while lately:
            step, kind = lately.popleft()
            self.add(step + 1, kind)

    def add(self, step: int, kind: int) -> None:
        """Add an event; known ones are unchanged."""
        if self.steps and step <= self.steps[-1]:
            return
        if len(self.steps) >= _EVENTS:
            self.steps, self.kinds = self.steps[::2], self.kinds[::2]
        self.steps.append(step)
        self.kinds.append(kind)

    def cut(self, step: int) -> None:
        """Drop events after a step, from which on the run differs."""
        end = bisect_right(self.steps, step)
        del self.steps[end:], self.kinds[end:]

    def before(self, step: int) -> int | None:
        """Return the step of the last event before this one, or None."""
        place = bisect_left(self.steps, step)
        return self.steps[place - 1] if place else None

    def around(self, step: int) -> dict[str, np.ndarray]:
        """Return ``step`` and ``kind`` of the events around a step, and an even selection of all as ``whole_``."""
        end = bisect_right(self.steps, step)
        near = slice(max(0, end - _NEAR), end + _NEAR // 2)
        stride = max(1, -(-len(self.steps) // _WHOLE))
        return {
            "step": np.array(self.steps[near], dtype=np.int64),
            "kind": np.array(self.kinds[near], dtype=np.int8),
            "whole_step": np.array(self.steps[::stride], dtype=np.int64),
            "whole_kind": np.array(self.kinds[::stride], dtype=np.int8),
        }


class History:
    """Keep checkpoints of a live run, sparser the older they are."""

    def __init__(self, furthest: int = 0) -> None:
        self.furthest = furthest
        self.checkpoints: list[Checkpoint] = []
        self.forks: list[int] = []  # steps of forks, which a way back cannot cross
        self.block_store: BlockStore | None = None

    def note(self, run: Any) -> None:
        """Keep a checkpoint of the current run."""
        if self.block_store is None:
            from bnnviz.engine.run.draw_store import BlockStore

            self.block_store = BlockStore()
        self.block_store.asked.clear()
        data = run.checkpoint(block_store=self.block_store)
        self.add(Checkpoint(run.steps, data, frozenset(self.block_store.asked)))

    def add(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint, and as many of the others as possible."""
        steps = [each.step for each in self.checkpoints]
        place = bisect_left(steps, checkpoint.step)
        known = place < len(steps) and steps[place] == checkpoint.step
        self.checkpoints[place : place + known] = [checkpoint]
        while len(self.checkpoints) > _MOST_CHECKPOINTS or (len(self.checkpoints) > 2 and self._size() > _MOST_BYTES):
            # The least needed one has the smallest gap for its age.
            steps = [each.step for each in self.checkpoints]
            now = max(self.furthest, steps[-1])
            gaps = [(steps[i + 1] - steps[i - 1]) / (now - steps[i] + 1) for i in range(1, len(steps) - 1)]
            del self.checkpoints[1 + int(np.argmin(gaps))]
        if self.block_store is not None:
            self.block_store.keep(set().union(*(each.blocks for each in self.checkpoints)))

    def _size(self) -> int:
        """Return the total bytes of all checkpoints."""
        blocks = set().union(*(each.blocks for each in self.checkpoints))
        return sum(len(each.data) for each in self.checkpoints) + (self.block_store.size(blocks) if blocks else 0)

    def before(self, step: int) -> Checkpoint:
        """Return a checkpoint to reach a step from, preferably some steps before it."""
        steps = [each.step for each in self.checkpoints]
        parted = max((fork for fork in self.forks if fork <= step), default=0)
        for goal in (step - _RUN_UP, step):
            place = bisect_right(steps, max(goal, parted))
            if place:
                return self.checkpoints[place - 1]
        first = f"step {steps[0]:,}" if steps else "a later step"
        raise BnnvizError(f"This run can go back to {first} at the earliest, and not to step {step:,}.", "step")

    def part(self, step: int) -> None:
        """Drop the history after a step, from which on the run differs."""
        self.furthest = step
        self.checkpoints = [each for each in self.checkpoints if each.step <= step]
        self.forks = [fork for fork in self.forks if fork <= step]


def rest(run: Any, changes: list[LoggedChange]) -> deque[LoggedChange]:
    """Return the pending changes of a run, with the step of its switch to a compiled kernel."""
    if any(set(settings) == _KERNEL for _, settings in changes) and run.compiled_since is None:
        run.spec = run.spec.replace(kernel="eager")
    return deque(changes)
