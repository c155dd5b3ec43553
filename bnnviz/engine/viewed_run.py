"""Run one sampler with its views: the watched chain, the frames, and the summary."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from bnnviz.engine.frames.builder import FrameBuilder
from bnnviz.engine.monitor.summary import summarise
from bnnviz.engine.recording import arviz
from bnnviz.engine.run.run import Run
from bnnviz.messages import Message

if TYPE_CHECKING:
    import xarray

LONGEST_EVENT = 20_000  # steps


class ViewedRun(Run):
    """Run one sampler for views, notebooks and recordings, with the draws of a `Run`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.watched, self.chain_trace = 0, self.sampler.chain_trace()  # the chain whose path is shown
        self.listeners.append(lambda step_batch: self.chain_trace.record(step_batch, self.watched))
        self.on_move.append(self.trace_again)
        self.frames = FrameBuilder(self)
        self.on_move.append(self.frames.forget)  # the draws begin anew

    def release(self) -> None:
        """Stop pending compilation."""
        self._switch.give_up()

    def step_event(self) -> None:
        """Step until the watched chain has had an event."""
        self.prepare()
        before = self.chain_trace.count
        for _ in range(LONGEST_EVENT):
            if self.finished or self.chain_trace.count != before:
                return
            self.step_proposal()
        self.notes.append(Message("no_event", steps=LONGEST_EVENT))

    # views

    def scene(self) -> dict[str, Any]:
        """Return the static data of the views (see ARCHITECTURE, frame)."""
        return self.frames.scene()

    def frame(self, want: list[str]) -> dict[str, Any]:
        """Return the requested parts of the current view data (see ARCHITECTURE, frame)."""
        return self.frames.frame(want)

    def select(self, choice: dict[str, Any] | None) -> None:
        """Choose draws or an event that all views mark, without changing draws."""
        self.frames.select(choice)

    def watch(self, **what: Any) -> None:
        """Choose what frames show (`FrameBuilder.watch`), without changing draws; None keeps a choice."""
        self.frames.watch(**what)

    @property
    def lead(self) -> ViewedRun:
        """The run in the views: this one, or for a fork that of the followed branch."""
        return self

    def look_like(self, other: Any) -> None:
        """Show the chain, the plane and the followed quantity of another run of the same target, or of a fork."""
        self.frames.look_like(other.lead.frames)

    def watch_chain(self, number: int) -> None:
        """Show the path of another chain."""
        if number != self.watched:
            self.watched = number
            self.trace_again()

    def trace_again(self) -> None:
        """Trace the watched chain anew, with the numbers of its events."""
        self.chain_trace = self.sampler.chain_trace()
        if self.events is not None:
            self.chain_trace.count = int(self.events[self.watched])

    def show_here(self) -> None:
        """Restart the path of the watched chain here."""
        self.trace_again()
        if self.state is not None:
            self.chain_trace.begin(self.state, self.watched)

    # text

    def summary(self) -> dict[str, Any]:
        """Return the output of ``bnnviz sample --json``: settings, costs, and estimates with their errors."""
        with torch.device(self.device):  # overrides the caller's default
            return summarise(self)

    def to_arviz(self, predictions: bool | None = None) -> xarray.DataTree:
        """Return the draws as an ArviZ data tree with the spec in its attributes (`arviz.to_arviz`)."""
        return arviz.to_arviz(self, predictions)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write draws and header to a file that ArviZ opens (NetCDF)."""
        return arviz.save(self, path)
