"""Choose the watched chain of a run, and record its path."""

from __future__ import annotations

from bnnviz.engine.protocol import SingleRun
from bnnviz.samplers.observers import StepBatch


class WatchedChain:
    """Trace the path of one chain from the run's blocks, without affecting any draw."""

    def __init__(self, run: SingleRun) -> None:
        self._run, self.number = run, 0
        self.chain_trace = run.sampler.chain_trace()
        run.listeners.append(self._hear)
        run.on_move.append(self.trace_again)

    def choose(self, number: int) -> None:
        """Watch another chain."""
        if number != self.number:
            self.number = number
            self.trace_again()

    def trace_again(self) -> None:
        """Follow the chain from here on with an empty path; its events keep their numbers."""
        self.chain_trace = self._run.sampler.chain_trace()
        if self._run.events is not None:
            self.chain_trace.count = int(self._run.events[self.number])

    def show_here(self) -> None:
        """Restart the path of the chain here."""
        self.trace_again()
        if self._run.state is not None:
            self.chain_trace.begin(self._run.state, self.number)

    def _hear(self, step_batch: StepBatch) -> None:
        self.chain_trace.record(step_batch, self.number)
