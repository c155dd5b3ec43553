"""Count the moves of all chains of a run, and measure their rate."""

from __future__ import annotations

import time

from bnnviz.engine.protocol import AnyRun


class Counts:
    """Counts of all chains so far, for all parts of a frame."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}
        self.rows: list[list[str]] = []
        self.sentence = ""

    def note(self, run: AnyRun) -> None:
        """Update the counts."""
        sampler_stats = run.sampler_stats
        self.figures, self.rows, self.sentence = sampler_stats.summary(), sampler_stats.rows(), sampler_stats.sentence()
        if run.phase == "tuning":
            # While the sampler adapts its step, moves do not become draws.
            self.rows = [[row[0], f"{row[1]} (warm-up)", ""] if row[2] else row for row in self.rows]


class Rates:
    """Measure events and gradients per second, over the last second or so."""

    def __init__(self) -> None:
        self.events = self.gradients = 0.0
        self._at: tuple[float, int, int] | None = None

    def note(self, run: AnyRun) -> None:
        """Record the current position of the run."""
        now = (time.perf_counter(), run.sampler_stats.events, run.gradients)
        if self._at is None or now[1] < self._at[1]:
            self._at = now
        elapsed = now[0] - self._at[0]
        if elapsed > 0.5:
            self.events = (now[1] - self._at[1]) / elapsed
            self.gradients = (now[2] - self._at[2]) / elapsed
            self._at = now
