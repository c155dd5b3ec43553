"""Offer a live run to a page as a Dask actor. This module does not import torch."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Any

from bnnviz.engine.cluster.live_runs import RUNS, LiveRuns

WAIT_S = 1.5  # how long an actor's method waits, as the caller gives up after 2 s
_SENT_S = 0.001  # until an answer is on its way
_ABANDONED = "The page that started this run has gone, so it was ended; its checkpoint is kept."


class RunActor:
    """Pass the calls of a page to a `LiveRun`: coroutines on the worker's event loop, for which threads do the work.

    The run is another object, because its thread keeps it alive: Dask drops the actor once the page's process has gone.
    """

    def __init__(self, spec: Any, run_id: str, *, runs: LiveRuns = RUNS, **options: Any) -> None:
        self.run, self._pool = runs.add(spec, run_id, **options), runs.pool
        weakref.finalize(self, self.run.end, _ABANDONED).atexit = False

    async def begun(self) -> dict[str, Any]:
        """Return the report, after waiting for a run that is being built."""
        await self._aside(self.run.begun.wait, WAIT_S)
        return self.run.report(full=True)

    async def scene(self) -> dict[str, Any]:
        """Return the report with the scene, as soon as the run is built; None before it is."""
        await self.begun()
        return await self._aside(self.run.scene)

    async def frame(self, want: list[str], seen: int = -1) -> bytes:
        """Return the pickled report and new frame or None; Dask would serialise each array separately, more slowly."""
        changed = self.run.changed(want, seen)
        if not changed:
            return self.run.nothing_new()
        try:
            return await self._aside(self.run.frame, changed, seen)
        finally:
            asyncio.get_running_loop().call_later(_SENT_S, self.run.answered.set)

    async def command(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        """Have a command executed between two slices and return the report after it."""
        return await self._aside(self.run.command, name, args)

    async def stop(self, message: str = "") -> None:
        """End the run at once; without a message remove its checkpoint."""
        self.run.end(message)

    async def _aside(self, function: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *args)
