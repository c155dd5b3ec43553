"""End a run when its predictions have mixed, or when its time is up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bnnviz.engine.evaluation.predictions import Predictor
from bnnviz.engine.monitor.mixing import measured_mixing
from bnnviz.engine.protocol import SingleRun
from bnnviz.messages import Message

#: R-hat and ESS of predictions from which on more draws would change nothing that is printed.
GOOD_RHAT, ENOUGH = 1.01, 1000
_FIRST, _LATER = 0.3, 1.5  # share of the time at the first look, and by how much each is later
_FEWEST = 10  # draws of each chain, without which no run ends


class Limit:
    """Listen to a run, and end it."""

    def __init__(self, run: SingleRun, seconds: float, clock: Callable[[], float] | None = None) -> None:
        self._run, self._clock = run, clock or (lambda: run.seconds)
        self._begun, self._seconds = self._clock(), seconds
        self._next = _FIRST * seconds
        run.listeners.append(self._hear)

    def _hear(self, step_batch: Any) -> None:
        """Look whether the run is to end; what the block of steps has brought is not drawn then."""
        run, passed = self._run, self._clock() - self._begun
        if run.phase != "sampling" or run.store.common(run.alive) < _FEWEST:
            return
        if passed >= self._seconds:
            self._end("the time was used up")
        elif passed >= self._next:
            self._next *= _LATER
            found = measured_mixing(run, Predictor(run.target))
            if found.rhat <= GOOD_RHAT and found.least >= ENOUGH:
                self._end(f"the predictions have converged (R-hat {found.rhat:.3f}, ESS {found.least:,.0f} at least)")

    def _end(self, reason: str) -> None:
        made = self._run.store.common(self._run.alive)
        self._run.phase = "done"
        self._run.notes.append(Message("ended_early", draws=made, reason=reason))
