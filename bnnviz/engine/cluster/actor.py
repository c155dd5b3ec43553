"""Offer a live run to a page as a Dask actor.

The methods are coroutines on the worker's event loop: other threads do what takes time. This module does not import
torch; the run class is loaded by its dotted path.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from bnnviz.engine.cluster.live_runs import ALIVE, LiveRuns, Slot, live_runs
from bnnviz.engine.history.timeline import MAGIC
from bnnviz.engine.host import Host
from bnnviz.engine.protocol import LoggedChange
from bnnviz.errors import BnnvizError

WAIT_S, _LOOK_S = 1.5, 0.02  # how long an actor's method waits, as the caller gives up after 2 s; between two looks
_SENT_S = 0.001  # until an answer is on its way
_ABANDONED = "The page that started this run has gone, so it was ended; its checkpoint is kept."

log = logging.getLogger(__name__)


class LiveRun:
    """Offer one of the worker's `LiveRuns` as a Dask actor.

    With ``restore`` a lost run continues from its last checkpoint, and ``past`` is its change log. ``origin`` is the
    name of a recording to continue, ``record`` that of the recording to write.
    """

    def __init__(
        self,
        spec: Any,
        run_id: str,
        *,
        play: bool = False,
        speed: float | None = None,
        watch: dict[str, Any] | None = None,
        restore: bool = False,
        past: Iterable[LoggedChange] = (),
        record: str | None = None,
        origin: str | None = None,
        factory: str,
        runs: LiveRuns | None = None,
    ) -> None:
        self._runs = runs or live_runs()
        checkpoints = self._runs.checkpoints

        def build(slot: Slot) -> Host:
            from bnnviz.engine.recording import reader
            from bnnviz.engine.recording.resume import resume
            from bnnviz.engine.recording.warm_start import resolved

            module, name = factory.split(":")
            run_class = getattr(importlib.import_module(module), name)
            run = _restored(run_class, checkpoints.read(run_id), run_id) if restore else None
            if run is None and spec is None:
                raise BnnvizError("The checkpoint of this run no longer exists. Start the run again.")
            if run is None and origin is not None:
                run = resume(reader.place(origin))
            elif run is None:
                run = run_class(spec if getattr(spec, "start", None) is None else resolved(spec.checked()))
            if restore:
                slot.resumed = int(run.steps)
            # A page does not wait for a compiler.
            for each in run.runs:
                each.wait_for_compile = False
            if watch:
                run.watch(**watch)
            host = Host(run, playing=play and not run.finished, speed=speed, past=past, travels=True)
            if record is not None:
                try:
                    host.keep_in(reader.place(record))
                except BnnvizError as error:
                    host.message = error.sentence  # the run continues without its recording
            return host

        self._slot = self._runs.add(run_id, build)
        # When the page's process has gone, the scheduler drops the actor.
        weakref.finalize(self, self._slot.end, _ABANDONED).atexit = False

    async def scene(self) -> dict[str, Any]:
        """Return the status with the scene, after waiting for a run that is being built; None before it is."""
        slot, end = self._slot, time.monotonic() + WAIT_S
        while slot.host is None and slot.state in ALIVE and time.monotonic() < end:
            await asyncio.sleep(_LOOK_S)
        return slot.report(full=True) | {"scene": slot.scene}

    async def frame(self, want: list[str], seen: int = -1) -> bytes:
        """Return the pickled status and new frame or None; Dask would serialise each array separately, more slowly."""
        slot = self._slot
        changed = slot.changed(want, seen)
        if not changed:
            return slot.nothing_new()
        try:
            return await self._aside(slot.frame, changed, seen)
        finally:
            asyncio.get_running_loop().call_later(_SENT_S, slot.answered.set)

    async def command(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        """Have a command executed between two slices and return the status after it."""
        return await self._aside(self._slot.command, name, args)

    async def stop(self) -> None:
        """End the run at once and remove its checkpoint."""
        self._slot.end()

    async def _aside(self, function: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._runs.pool, function, *args)


def _restored(run_class: Any, data: bytes | None, run_id: str) -> Any:
    """Restore a lost run or fork from its last checkpoint; return None without a readable one."""
    if data is None:
        return None
    try:
        if not data.startswith(MAGIC):
            return run_class.restore(data)
        from bnnviz.engine.history.fork import Fork

        return Fork.restore(data)
    except Exception:
        log.exception("the checkpoint of live run %s cannot be used; it starts again", run_id)
        return None
