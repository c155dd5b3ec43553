"""End a run when its time is up, or when its predictions have converged."""

from __future__ import annotations

from collections.abc import Callable

from bnnviz.engine.evaluation.predictions import Predictor
from bnnviz.engine.monitor.mixing import measured_mixing
from bnnviz.engine.protocol import AnyRun
from bnnviz.messages import Message
from bnnviz.targets import BNN

#: R-hat and ESS of predictions beyond which more draws would not change the printed digits.
GOOD_RHAT, ENOUGH = 1.01, 1000
_FIRST, _LATER = 0.3, 1.5  # share of the time at the first look, and by how much each is later
_FEWEST = 10  # draws of each chain, without which predictions are not judged
# Shares of the time after which the search for a start and the warm-up end, so that there are draws at its end.
_SEARCH, _WARMUP = 0.3, 0.7


class Limit:
    """End a run after some seconds in any phase, with the draws so far."""

    def __init__(self, run: AnyRun, seconds: float, clock: Callable[[], float] | None = None) -> None:
        self._run, self._clock = run, clock or (lambda: run.seconds)
        self._begun, self._seconds = self._clock(), seconds
        self._next = _FIRST * seconds
        run.on_work.append(self._check)

    def _check(self) -> None:
        run, passed = self._run, self._clock() - self._begun
        if run.finished:
            return
        if passed >= self._seconds:
            self._end("the time was used up")
        elif run.phase == "start" and passed >= _SEARCH * self._seconds:
            run.notes.append(Message("search_cut", seconds=passed))
            run.end_search()
        elif run.phase in ("tuning", "warm-up") and passed >= _WARMUP * self._seconds:
            run.notes.append(Message("warmup_cut", steps=run.steps))
            run.end_warmup()
        elif passed >= self._next and run.phase == "sampling" and isinstance(run.target, BNN):
            self._next *= _LATER
            if run.store.common(run.alive) < _FEWEST:
                return
            found = measured_mixing(run, Predictor(run.target))
            if found.rhat <= GOOD_RHAT and found.least >= ENOUGH:
                self._end(f"the predictions have converged (R-hat {found.rhat:.3f}, ESS {found.least:,.0f} at least)")

    def _end(self, reason: str) -> None:
        if not self._run.store.common(self._run.alive):
            self._run.keep_states()
        made = self._run.store.common(self._run.alive)
        self._run.phase = "done"
        self._run.notes.append(Message("ended_early", draws=made, reason=reason))
