"""Estimate the time to the first draws of a run, and detect a lack of progress."""

from __future__ import annotations

import math
from typing import Any

from bnnviz.messages import Message

_LONG_S = 3.0  # seconds beyond which a run reports its progress
_NOWHERE_S = 30.0  # of work without a draw


class Waiting:
    """Track the time of the last draw of a run."""

    def __init__(self, run: Any) -> None:
        self._run, self._made, self._since, self._tuning_since = run, -1, 0.0, 0.0

    def begin_tuning(self) -> None:
        """Count the seconds of the warm-up from now on, without the start search."""
        self._tuning_since = self._run.seconds

    def note(self) -> None:
        """Check for new draws."""
        made = int(self._run.store.made.sum())
        if made != self._made or self._run.phase == "tuning":
            self._made, self._since = made, self._run.seconds

    def message(self) -> Message | None:
        """Return the progress of the start search or the warm-up, or a lack of draws; None if irrelevant."""
        run = self._run
        if run.phase == "start" and run.descent is not None:
            return _way(run.descent.taken, f"{run.descent.steps:,}", "about", run.descent.seconds_left)
        if run.phase == "tuning":
            return self._tuning()
        idle = run.seconds - self._since
        # A restored run has not been checked yet.
        if self._made < 0 or run.phase not in ("warm-up", "sampling") or idle < _NOWHERE_S:
            return None
        return Message("no_progress", seconds=idle)

    def _tuning(self) -> Message | None:
        """Return the progress of the warm-up: by its moves if their number is known, otherwise by its maximum steps."""
        run = self._run
        share, limit = run.sampler.warmup_share(run.state), run.sampler.tuning_limit
        if share is None:
            left = (limit - run.steps) * (run.seconds - self._tuning_since) / run.steps if run.steps else math.nan
            return _way(run.steps, f"at most {limit:,}", "at most", left)
        left = (run.seconds - self._tuning_since) * (1 - share) / share if share else math.nan
        return Message("warmup_left", percent=100 * share, seconds=left) if left > _LONG_S else None


def _way(done: int, most: str, how: str, seconds: float) -> Message | None:
    """Return the number of steps, and the remaining seconds if they are more than a few."""
    return Message("steps_left", done=done, most=most, how=how, seconds=seconds) if seconds > _LONG_S else None
