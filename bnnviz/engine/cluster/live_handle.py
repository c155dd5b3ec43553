"""A page's handle of a live run: start it, get frames, send commands, and restart it after the loss of a worker."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import pickle
import time
import uuid
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from bnnviz.engine.cluster.actor import RunActor
from bnnviz.engine.cluster.local_cluster import WORKER_S
from bnnviz.engine.protocol import LoggedChange
from bnnviz.errors import BnnvizError

CALL_S = 2.0  # every call to a worker gives up after this
COMMAND_S = 10.0  # a command waits for a busy worker
START_S = 15.0  # starting an actor on a worker that is there
NOTICE_S = 8.0  # duration of a notice on a past event
LOSSES = 3  # a run that loses this many workers within LOSSES_S is not restarted
LOSSES_S = 60.0
LOST = (OSError, RuntimeError, TimeoutError)  # errors of calls to a lost worker

log = logging.getLogger(__name__)


def spawn(client: Any, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine on the loop of a Dask client; return its future."""
    return asyncio.run_coroutine_threadsafe(coroutine, client.loop.asyncio_loop)


def on_client(method: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Execute a coroutine of a handle on the client's loop."""

    @functools.wraps(method)
    async def called(handle: LiveHandle, *args: Any, **options: Any) -> Any:
        return await asyncio.wrap_future(spawn(handle.backend.client, method(handle, *args, **options)))

    return called


class LiveHandle:
    """Start, query, control and restore one live run for a page; its coroutines can be awaited on any event loop."""

    def __init__(
        self, backend: Any, spec: Any, *, play: bool, fixed: dict[str, Any], run_id: str | None = None
    ) -> None:
        self.run_id = run_id or uuid.uuid4().hex
        self.state = "starting"
        self.spec = spec
        self.backend = backend
        self._fixed = fixed
        self._resumes = run_id is not None
        self._carried: dict[str, Any] = {"play": play, "speed": None, "watch": None, "record": fixed["origin"]}
        self._log: list[LoggedChange] = []  # as last reported by the run
        self._future: Any = None
        self._actor: Any = None
        self.address: str | None = None
        self._up = asyncio.Event()
        self._bringing: Any = None  # the task that starts or recovers it
        self._attempts = 0
        self._replacing = False
        self.held = True  # by the worker
        self._losses: deque[float] = deque(maxlen=LOSSES)
        self._pulling: asyncio.Task | None = None
        self._answered = time.monotonic()
        self._seen: dict[str, int] = {}
        self._seq = 0
        self._message = ""
        self._field: str | None = None  # the setting that the message is about
        self._notice: tuple[str, float] = ("", 0.0)
        self._silence = ""  # last message about it

    @property
    def alive(self) -> bool:
        """Whether it may still advance."""
        return self.state in ("starting", "running", "recovering")

    @property
    def playing(self) -> bool:
        """Whether it plays, as last reported by the worker."""
        return bool(self._carried["play"])

    @property
    def factory(self) -> str:
        """The class of the run, as a dotted path."""
        return self._fixed["factory"]

    @property
    def notice(self) -> str | None:
        """Message about the run, while it is relevant."""
        text, until = self._notice
        if text and time.monotonic() < until:
            return text
        return self._message or None

    @on_client
    async def scene(self) -> dict[str, Any]:
        """Return the scene, as soon as the run is built."""
        while True:
            if self._up.is_set():
                with contextlib.suppress(*LOST):
                    reply = await self._call("scene")
                    self._take(reply)
                    if reply["scene"] is not None:
                        return reply["scene"]
            if not self.alive:
                raise BnnvizError(self.notice or "This run has ended.", self._field)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._up.wait(), CALL_S)

    @on_client
    async def frame(self, want: list[str]) -> dict[str, Any] | None:
        """Return a new frame with these parts; None if nothing has changed or the run is not ready."""
        if self._pulling is None:
            if not self._up.is_set():
                return None
            self._pulling = asyncio.ensure_future(self._pull(list(want)))
        # Otherwise the worker still owes an answer: another request would make it owe two, and late answers are
        # delivered anyway, since the worker counts them as seen.
        pulling = self._pulling
        done, _ = await asyncio.wait({pulling}, timeout=CALL_S)
        if not done:
            silent = time.monotonic() - self._answered
            self._silence = f"The worker running this has not answered for {silent:.0f} s."
            self._say(self._silence, 2 * CALL_S)
            return None
        if self._pulling is pulling:
            self._pulling = None
        return None if pulling.cancelled() else pulling.result()

    def look_again(self) -> None:
        """Request a complete frame next."""
        self._seen.clear()

    @on_client
    async def command(self, name: str, **args: Any) -> dict[str, Any]:
        """Execute a command and return the status after it; `stop` ends the run at once."""
        if name == "stop":
            self.state, self._message = "ended", "This run was stopped."
            self._say("")
            await self._end()
            return {"state": self.state}
        if not self._up.is_set() and not self.alive:
            raise BnnvizError(f"{self._message} Start it again to continue.")
        recorded = self._carried["record"]
        if name == "record":  # a worker that is lost before it answers may have created the recording
            self._carried["record"] = args.get("recording")
        try:
            await asyncio.wait_for(self._up.wait(), CALL_S)
            reply = await self._call("command", name, args, seconds=COMMAND_S)
        except BnnvizError:
            self._carried["record"] = recorded
            raise
        except LOST:
            raise BnnvizError(self.notice or f"The worker did not answer to {name!r}; try again.") from None
        self._take(reply)
        if name == "watch":
            self._carried["watch"] = (self._carried["watch"] or {}) | args
        return reply

    def let_go(self) -> None:
        """Make the worker end the run and keep its checkpoint."""
        self.state, self.held = "ended", False
        spawn(self.backend.client, self._end("No page shows this run, so it was ended; its checkpoint is kept."))

    # on the client's loop

    def begin(self) -> None:
        """Start the run."""
        self._bringing = spawn(self.backend.client, self._bring_up(None))

    async def _bring_up(self, lost: str | None) -> None:
        """Start the run, or restart it after the loss of its worker, on as many workers as needed."""
        self.backend.handles.add(self)  # here and not in `start`: the watcher may be counting them
        try:
            while not await self._launch(lost):
                lost, self._replacing = self.address, True
                if self._doomed():
                    return
        except BnnvizError as error:
            self._give_up(error.sentence)
        except Exception as error:
            log.exception("live run %s could not be started", self.run_id)
            self._give_up(f"This run could not be started on the cluster ({type(error).__name__}: {error}).")

    async def _launch(self, lost: str | None) -> bool:
        """Start the actor and wait until its run is built; False if the worker was lost meanwhile."""
        await self.backend.place(self, lost)
        self._attempts += 1
        self._future = self.backend.client.submit(
            RunActor,
            self.spec,
            self.run_id,
            **self._carried,
            **self._fixed,
            restore=self._resumes or lost is not None,
            past=self._log,
            actor=True,
            key=f"bnnviz-{self.run_id}-{self._attempts}",
            workers=[self.address],
            allow_other_workers=False,
        )
        try:
            with self.backend.client.as_current():  # else the actor takes the process's newest client
                self._actor = await asyncio.wait_for(self._future, START_S)
            reply = {"state": "starting"}
            while reply["state"] == "starting":
                try:
                    reply = await self._call("begun")
                except TimeoutError:  # building a run can keep the interpreter busy, but not a lost worker
                    if self.address not in await self.backend.workers():
                        raise
        except LOST:
            if self.address in await self.backend.workers():
                raise
            return False
        self._seen.clear()
        self._take(reply)
        self._up.set()
        return True

    def _doomed(self) -> bool:
        """Record the loss of a worker; return True if the run lost too many to be restarted."""
        now = time.monotonic()
        self._losses.append(now)
        if len(self._losses) < LOSSES or now - self._losses[0] > LOSSES_S:
            return False
        self._give_up(
            f"The worker running this was lost {LOSSES} times within a minute, so it is not started again; "
            "it may need more memory than there is: try fewer chains or a smaller network."
        )
        return True

    def _give_up(self, sentence: str) -> None:
        self.state, self._message = "failed", sentence
        self._say("")
        self._release()

    def check(self) -> None:
        """Check whether the worker still exists; called by the watcher."""
        lost = self._future is not None and self._future.status not in ("pending", "finished")
        needed = self.alive or (self.held and self.state == "ended")  # views may still show an ended run
        if not (lost and needed and self._bringing.done()):
            return
        address, self.address = self.address, None
        log.warning("live run %s lost its worker %s", self.run_id, address)
        self._release()
        self.state, self._replacing = "recovering", True
        self._say("The worker running this was lost; a new one takes it up.", WORKER_S)
        if not self._doomed():
            self._bringing = spawn(self.backend.client, self._bring_up(address))

    async def _end(self, message: str = "") -> None:
        """End the run on its worker; Dask drops an actor only when Python collects its calls, which are cycles."""
        self._bringing.cancel()
        if self._actor is not None:
            with contextlib.suppress(*LOST):
                await self._call("stop", message)
        self._release()

    def _release(self) -> None:
        self._up.clear()
        if self._pulling is not None:
            self._pulling.cancel()
        if self._future is not None:
            self._future.release()
        self._future = self._actor = None

    async def _call(self, method: str, *args: Any, seconds: float = CALL_S) -> Any:
        """Call a method of the actor; TimeoutError after some seconds, OSError or RuntimeError if it is lost."""
        reply = await asyncio.wait_for(getattr(self._actor, method)(*args), seconds)
        self._answered = time.monotonic()
        return reply

    def _take(self, reply: dict[str, Any]) -> None:
        """Update from the worker's status."""
        self.state = reply["state"]
        if self._replacing:
            self._replacing = False
            if self.state == "failed":
                self._say("")
            elif reply["resumed"]:
                self._say(f"The worker of this run was lost; a new one continues from step {reply['resumed']}.")
            else:
                self._say(
                    "The worker running this was lost before it had saved anything that a new one can read; "
                    "the run starts again and makes the same draws."
                )
        if self._resumes and reply["resumed"] is not None:
            self._resumes = False
            self._say(f"This run continues from its checkpoint at step {reply['resumed']:,}.")
        self._message, self._field = reply["message"], reply["field"]
        self.held = reply["held"]
        if reply["state"] != "starting":
            self._carried["play"] = reply["playing"]
        if self.held:
            self._carried["speed"] = reply["speed"]
            self._carried["record"] = reply["record"]
        if "spec" in reply:
            self.spec, self._log = reply["spec"], reply["log"]

    def _say(self, text: str, seconds: float = NOTICE_S) -> None:
        self._notice = (text, time.monotonic() + seconds)

    async def _pull(self, want: list[str]) -> dict[str, Any] | None:
        seen = min((self._seen.get(part, -1) for part in want), default=-1)
        try:
            reply = pickle.loads(await self._actor.frame(want, seen))
        except LOST:  # the watcher takes care of it
            return None
        self._answered = time.monotonic()
        if self._notice[0] == self._silence:
            self._say("")
        self._take(reply)
        frame = reply["frame"]
        if frame is None:
            return None
        self._seen.update(dict.fromkeys(want, reply["version"]))
        self._seq += 1
        return frame | {"seq": self._seq}
