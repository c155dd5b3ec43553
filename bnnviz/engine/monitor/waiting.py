"""Say how long a run that makes no draws yet will take, and where it gets nowhere."""

from __future__ import annotations

import math
from typing import Any

from bnnviz import cpp
from bnnviz.remedies import option

_LONG_S = 3.0  # from which on one asks how long something will take
_NOWHERE_S = 30.0  # of work without a draw
_COMPILE = (
    "The run takes long, and its steps are not compiled: machine code of a step may be many times as fast"
    f" ({option(kernel='compiled')})."
)


class Waiting:
    """Follow when a run last made a draw."""

    def __init__(self, run: Any) -> None:
        self._run, self._made, self._since, self._tuning_since = run, -1, 0.0, 0.0

    def begin_tuning(self) -> None:
        """Count the seconds of the warm-up from now on, without those of the search for a start."""
        self._tuning_since = self._run.seconds

    def note(self) -> None:
        """Look whether there are new draws."""
        made = int(self._run.store.made.sum())
        if made != self._made or self._run.phase == "tuning":
            self._made, self._since = made, self._run.seconds
        # A run that goes on from a checkpoint has been told already.
        if _COMPILE not in self._run.notes and self._should_compile():
            self._run.notes.append(_COMPILE)

    def _should_compile(self) -> bool:
        """Return whether a run that ends by itself would end sooner with compiled steps, which nobody has asked for."""
        run = self._run
        if run.spec.draws is None or run.spec.kernel != "eager" or not run.is_long:
            return False
        can = run.device.type == "cuda" or cpp.compiler() is not None
        return can and run.sampler.compiles and run.target.compiles

    def sentence(self) -> str:
        """Say how far the search for a start or the warm-up is, or that no draw comes; "" where there is no need to."""
        run = self._run
        if run.phase == "start" and run.descent is not None:
            return _way(run.descent.taken, f"{run.descent.steps:,}", "about", run.descent.seconds_left)
        if run.phase == "tuning":
            return self._tuning()
        idle = run.seconds - self._since
        if run.phase not in ("warm-up", "sampling") or idle < _NOWHERE_S:
            return ""
        return (
            f"No chain has made a draw for {idle:,.0f} s, so the run gets nowhere: let a draw take fewer steps, or"
            " write U in parameters of like scales."
        )

    def _tuning(self) -> str:
        """Say how far the warm-up is: by its moves where their number is known, else by the steps that it may take."""
        run = self._run
        share, limit = run.sampler.warmup_share(run.state), run.sampler.tuning_limit
        if share is None:
            left = (limit - run.steps) * (run.seconds - self._tuning_since) / run.steps if run.steps else math.nan
            return _way(run.steps, f"at most {limit:,}", "at most", left)
        left = (run.seconds - self._tuning_since) * (1 - share) / share if share else math.nan
        return f"The warm-up is {100 * share:.0f} % done, about {left:,.0f} s more." if left > _LONG_S else ""


def _way(done: int, most: str, how: str, seconds: float) -> str:
    """Say how many of so many steps are done, and the seconds that are left, where they are more than a few."""
    if not seconds > _LONG_S:
        return ""
    return f"Step {done:,} of {most}, {how} {seconds:,.0f} s more."
