"""Where runs execute: a cluster of worker processes, here or elsewhere, and handles to the live runs on it.

The page's process talks to the workers through this module only, and neither imports torch nor blocks its
event loop: everything here runs on the loop of the one Dask client, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import pickle
import time
import uuid
import weakref
from collections import deque
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bnnviz import optional
from bnnviz.engine.cluster import local_cluster as cluster
from bnnviz.engine.cluster import loop
from bnnviz.engine.cluster.actor import LiveRun
from bnnviz.engine.cluster.frame_socket import FrameConnection, Question
from bnnviz.engine.cluster.slot import LEASE_S
from bnnviz.errors import BnnvizError

CALL_S = 2.0  # every call to a worker gives up after this
PATIENCE_S = 10.0  # a worker that is busy but there is told what to do, and waited for, for so long
CONNECT_S = 4.0  # looking for a remote scheduler
START_S = 15.0  # starting an actor on a worker that is there
WORKER_S = 60.0  # waiting for a worker: a new process imports torch, a cluster may have to make a machine
SPARE_S = 10.0  # importing torch takes a core for a while: the spare worker leaves it to the first page
WATCH_S = 0.1  # lost workers are noticed so soon
NOTICE_S = 8.0  # how long a notice of something that is over stays
LOSSES = 3  # a run that loses so many workers within LOSSES_S kills them itself; a scheduler is not started more often
LOSSES_S = 60.0
LOST = (OSError, RuntimeError, TimeoutError)  # what a call to a lost worker raises

log = logging.getLogger(__name__)


class Backend:
    """A cluster that executes live runs; made with `connect`.

    Attributes
    ----------
    notice : str or None
        A sentence on the cluster as a whole, if there is something to say.
    """

    def __init__(self, client: Any, cluster: Any = None, active: int | None = None) -> None:
        self._client = client
        self._cluster = cluster
        self._losses: deque[float] = deque(maxlen=LOSSES)  # of the scheduler, with a cluster of our own
        self._gone = False  # it is not started again
        self._active = active  # with a cluster of our own: workers that take new runs; one more is the spare
        self._spare: str | None = None if active is None else str(active)
        self._placing = asyncio.Lock()
        self._names: dict[str, str] = {}  # of all workers there ever were, by address
        self._handles: weakref.WeakSet[LiveHandle] = weakref.WeakSet()
        self._tasks = [self._spawn(self._watch()), self._spawn(self._add_spare())]
        atexit.register(self.close)

    @classmethod
    def connect(cls, address: str | None = None, workers: int | None = None) -> Backend:
        """Connect to a cluster, or start one on this machine. Blocks until a worker is ready.

        Parameters
        ----------
        address : str or None
            Address of a Dask scheduler, ``tcp://host:port``; None: ``BNNVIZ_SCHEDULER``, and without that
            worker processes on this machine.
        workers : int or None
            Worker processes on this machine besides the spare one; None: one for each GPU, or else one
            for each core but one.

        Raises
        ------
        BnnvizError
            If the cluster cannot be reached or started.
        """
        address = scheduler_address(address)
        if address is not None:
            return cls(remote_client(imported_dask("Live runs"), address))
        optional.check("distributed", "Live runs need")
        # Begun before Dask is imported here, which takes as long.
        own = cluster.taken(workers)
        try:
            distributed, answer = imported_dask("Live runs"), own.wait()
            # frames go straight from a worker to the page, not through the scheduler
            client = distributed.Client(answer["address"], direct_to_workers=True)
        except Exception:
            own.close()
            raise
        return cls(client, own, answer["workers"])

    @property
    def notice(self) -> str | None:
        """A sentence if the cluster is not reachable."""
        if self._gone:
            return (
                f"The scheduler was lost {LOSSES} times within a minute and is not started again; restart the server."
            )
        if self._client.status in ("running", "closing", "closed"):
            return None
        return "The connection to the cluster was lost; runs go on when it is back."

    def devices(self) -> list[str]:
        """Return the devices that a spec may name on these workers. Blocks."""
        from bnnviz.engine.cluster import worker

        found = self._client.run(worker.devices, on_error="ignore")
        return sorted({name for names in found.values() for name in names})

    def census(self) -> list[dict[str, Any]]:
        """Return one row for each live run on any worker, whoever started it. Blocks."""
        found = self._client.run(loop.census, on_error="ignore")
        return [row | {"worker": address} for address, rows in found.items() for row in rows]

    def start(
        self,
        spec: Any,
        *,
        play: bool = False,
        lease_s: float | None = LEASE_S,
        factory: str | None = None,
        origin: str | None = None,
    ) -> LiveHandle:
        """Start a live run; returns at once.

        Parameters
        ----------
        spec : Spec or RaceSpec
            What to run.
        play : bool
            Whether it advances as soon as it is ready.
        lease_s : float or None
            Seconds without a pulled frame after which the run ends (after a fifth of them it rests);
            None: it needs nobody.
        factory : str or None
            Dotted path of the run class, ``module:name``; None: the one that the spec names.
        origin : str or None
            The name of a recording on the workers' shelf, whose run goes on and is recorded.
        """
        fixed = {"lease_s": lease_s, "factory": factory or spec.factory, "origin": origin}
        handle = LiveHandle(self, spec, play=play, fixed=fixed)
        handle._begin()
        return handle

    def close(self) -> None:
        """Leave the cluster; one that was started here ends, with its runs."""
        atexit.unregister(self.close)
        for task in self._tasks:
            task.cancel()
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()

    def __enter__(self) -> Backend:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # on the client's loop

    def _spawn(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._client.loop.asyncio_loop)

    async def _watch(self) -> None:
        while True:
            for handle in list(self._handles):
                try:
                    handle._check()
                except Exception:  # without the watcher no lost run would ever be taken up
                    log.exception("live run %s could not be looked after", handle.run_id)
            if self._cluster is not None and self._cluster.ended and not self._gone:
                self._start_again()
            await asyncio.sleep(WATCH_S)

    def _start_again(self) -> None:
        """Start the process of the scheduler again, which has ended; not for ever."""
        now = time.monotonic()
        self._losses.append(now)
        if len(self._losses) == LOSSES and now - self._losses[0] < LOSSES_S:
            self._gone = True
            log.error("%s", self.notice)
            return
        log.warning("the process of the scheduler ended, and is started again")
        self._cluster = self._cluster.again()
        self._tasks.append(self._spawn(self._add_spare()))

    async def _add_spare(self) -> None:
        if self._cluster is not None:
            await asyncio.sleep(SPARE_S)
            self._cluster.scale(self._active + 1)

    async def _workers(self) -> dict[str, str]:
        """Return the addresses of all workers with their names; none while the scheduler is away."""
        try:
            found = await asyncio.wait_for(self._client.scheduler.identity(n_workers=-1), CALL_S)
        except (OSError, TimeoutError):
            return {}
        workers = {address: str(worker["name"]) for address, worker in found["workers"].items()}
        self._names.update(workers)
        return workers

    async def _place(self, handle: LiveHandle, lost: str | None) -> None:
        """Choose the worker that a run is started on, perhaps in place of a lost one."""
        async with self._placing:  # the next one has to see this one's choice
            handle._address = await self._choose(lost)

    async def _choose(self, lost: str | None) -> str:
        end = time.monotonic() + WORKER_S
        while True:
            workers = await self._workers()
            workers.pop(lost, None)
            active = [address for address, name in workers.items() if name != self._spare]
            if workers:
                break
            if time.monotonic() > end:
                raise BnnvizError(f"The cluster has had no worker for {WORKER_S:g} s; start one and try again.")
            await asyncio.sleep(WATCH_S)
        # the spare one is for replacements, or for when it is all there is
        choice = list(workers) if lost or not active else active
        loads = await self._loads(choice)
        address = min(choice, key=loads.__getitem__)
        if address not in active:
            # the worker that is away is the spare one when it is back
            away = [str(i) for i in range(self._active + 1) if str(i) not in workers.values()]
            self._spare = self._names.get(lost) or next(iter(away), None)
        return address

    async def _loads(self, addresses: list[str]) -> dict[str, int]:
        """Return the number of live runs of each worker."""
        own = [handle._address for handle in self._handles if handle.alive]
        loads = {address: own.count(address) for address in addresses}
        if self._cluster is None:  # others may use it too
            found = await asyncio.wait_for(self._client.run(loop.census, workers=addresses, on_error="ignore"), CALL_S)
            for address, rows in found.items():
                loads[address] = max(loads[address], len(rows))
        return loads


class LiveHandle:
    """A live run as the page sees it; made by `Backend.start`.

    Its coroutines can be awaited on any event loop. A worker that is lost is replaced by itself: the run
    goes on from its last checkpoint.

    Attributes
    ----------
    run_id : str
    state : {"starting", "queued", "running", "recovering", "ended", "failed"}
    """

    def __init__(self, backend: Backend, spec: Any, *, play: bool, fixed: dict[str, Any]) -> None:
        self.run_id = uuid.uuid4().hex
        self.state = "starting"
        self.spec = spec
        self._backend = backend
        self._fixed = fixed
        self._carried: dict[str, Any] = {"play": play, "speed": None, "watch": None, "record": fixed["origin"]}
        self._changes: list[tuple[int, dict[str, Any]]] = []
        self._future: Any = None
        self._actor: Any = None
        self._address: str | None = None
        self._up = asyncio.Event()
        self._bringing: Any = None  # the task that starts or recovers it
        self._attempts = 0
        self._replacing = False
        self._held = True  # by the worker, which drops a run that nobody has looked at for long
        self._losses: deque[float] = deque(maxlen=LOSSES)
        self._pulling: asyncio.Task | None = None
        self._line: FrameConnection | None = None  # with the worker, where it is on this machine
        self._answered = time.monotonic()
        self._seen: dict[str, int] = {}
        self._seq = 0
        self._message = ""
        self._field: str | None = None  # the setting that the message is about
        self._said: tuple[str, float] = ("", 0.0)
        self._silence = ""  # what was said of it last

    @property
    def alive(self) -> bool:
        """Whether it may still advance."""
        return self.state in ("starting", "queued", "running", "recovering")

    @property
    def playing(self) -> bool:
        """Whether it plays, as the worker said last."""
        return bool(self._carried["play"])

    @property
    def notice(self) -> str | None:
        """A sentence on what happened to the run, while it matters."""
        text, until = self._said
        if text and time.monotonic() < until:
            return text
        return self._message or None

    async def scene(self) -> dict[str, Any]:
        """Return the scene, as soon as the run is built.

        Raises
        ------
        BnnvizError
            If the run fails or ends before.
        """
        return await self._on_client(self._scene())

    async def frame(self, want: list[str]) -> dict[str, Any] | None:
        """Return a fresh frame with these parts; None if nothing is new or the run is not ready.

        Parameters
        ----------
        want : list of str
            The parts to build.
        """
        return await self._on_client(self._frame(list(want)))

    async def command(self, name: str, **args: Any) -> dict[str, Any]:
        """Have a command executed and return the status after it.

        Parameters
        ----------
        name : {"play", "pause", "proposal", "event", "speed", "change", "watch", "record", "back", "return", "fork", \
"follow", "keep", "stop"}
        **args
            ``value`` (speed), ``settings`` (change), ``chain``, ``plane`` and ``component`` (watch), ``recording``
            (record; None ends it), ``step`` (back; None is the event before), ``branch`` (follow, keep; its letter).

        Raises
        ------
        BnnvizError
            If it is refused, or the worker does not answer.
        """
        if name == "stop":
            await self.stop()
            return {"state": self.state}
        return await self._on_client(self._command(name, args))

    async def stop(self) -> None:
        """End the run at once."""
        await self._on_client(self._stop())

    def sync(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call one of the coroutines above from a script, and wait for its result."""
        return asyncio.run(getattr(self, method)(*args, **kwargs))

    # on the client's loop

    async def _on_client(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return await asyncio.wrap_future(self._backend._spawn(coroutine))

    def _begin(self) -> None:
        self._bringing = self._backend._spawn(self._bring_up(None))

    async def _bring_up(self, lost: str | None) -> None:
        """Start the run, or take it up again after its worker was lost, on as many workers as it takes."""
        self._backend._handles.add(self)  # here and not in `start`: the watcher may be counting them
        try:
            while not await self._launch(lost):
                lost, self._replacing = self._address, True
                if self._doomed():
                    return
        except BnnvizError as error:
            self._give_up(error.sentence)
        except Exception as error:
            log.exception("live run %s could not be started", self.run_id)
            self._give_up(f"This run could not be started on the cluster ({type(error).__name__}: {error}).")

    async def _launch(self, lost: str | None) -> bool:
        """Start the actor and wait until its run is built; False if the worker was lost meanwhile."""
        await self._backend._place(self, lost)
        self._attempts += 1
        self._future = self._backend._client.submit(
            LiveRun,
            self.spec,
            self.run_id,
            **self._carried,
            **self._fixed,
            restore=lost is not None,
            changes=self._changes,
            actor=True,
            key=f"bnnviz-{self.run_id}-{self._attempts}",
            workers=[self._address],
            allow_other_workers=False,
        )
        try:
            with self._backend._client.as_current():  # else the actor takes the process's newest client
                self._actor = await asyncio.wait_for(self._future, START_S)
            reply = await self._ready()
        except LOST:
            if self._address in await self._backend._workers():
                raise
            return False
        self._seen.clear()
        self._take(reply)
        self._line = await FrameConnection.to(reply["socket"])
        self._up.set()
        return True

    async def _ready(self) -> dict[str, Any]:
        """Return the status when the run is built, or queued, or has failed."""
        while True:
            try:
                reply = await self._call("ready")
            except TimeoutError:  # building a run can keep the interpreter busy, but not a lost worker
                if self._address not in await self._backend._workers():
                    raise
                continue
            if reply["state"] != "starting":
                return reply

    def _doomed(self) -> bool:
        """Note the loss of a worker; True if the run has lost so many that it is not started again."""
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

    def _check(self) -> None:
        """Look whether the worker is still there; called by the watcher."""
        lost = self._future is not None and self._future.status not in ("pending", "finished")
        wanted = self.alive or (self._held and self.state == "ended")  # what has been drawn is still looked at
        if not (lost and wanted and self._bringing.done()):
            return
        address, self._address = self._address, None
        log.warning("live run %s lost its worker %s", self.run_id, address)
        self._release()
        self.state, self._replacing = "recovering", True
        self._say("The worker running this was lost; a new one takes it up.", WORKER_S)
        if not self._doomed():
            self._bringing = self._backend._spawn(self._bring_up(address))

    def _release(self) -> None:
        self._up.clear()
        if self._pulling is not None:
            self._pulling.cancel()
        self._hang_up()
        if self._future is not None:
            self._future.release()
        self._future = self._actor = None

    def _hang_up(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()

    async def _call(self, method: str, *args: Any) -> Any:
        """Call a method of the actor; TimeoutError after 2 s, OSError or RuntimeError if it is lost."""
        return await asyncio.wait_for(self._waiting(method, *args), CALL_S)

    async def _waiting(self, method: str, *args: Any) -> Any:
        reply = await getattr(self._actor, method)(*args)
        self._answered = time.monotonic()
        return reply

    async def _patiently(self, method: str, *args: Any) -> Any:
        """Call a method of the actor, and wait on while its worker is there: what it was told it does, if late."""
        calling, end = asyncio.ensure_future(self._waiting(method, *args)), time.monotonic() + PATIENCE_S
        try:
            while not (await asyncio.wait({calling}, timeout=CALL_S))[0]:
                if time.monotonic() > end or self._address not in await self._backend._workers():
                    raise TimeoutError
            return calling.result()
        finally:
            calling.cancel()

    def _take(self, reply: dict[str, Any]) -> None:
        """Learn from what the worker says."""
        self.state = reply["state"]
        if self._replacing and self.state != "queued":
            self._replacing = False
            self._say(_taken_up(reply) if self.state != "failed" else "")
        self._message, self._field = reply["message"], reply["field"]
        self._held = reply["held"]
        self._carried["play"] = reply["playing"]
        self._carried["speed"] = reply["speed"]
        self._carried["record"] = reply["record"] or (self._carried["record"] if reply["state"] == "queued" else None)

    def _say(self, text: str, seconds: float = NOTICE_S) -> None:
        self._said = (text, time.monotonic() + seconds)

    async def _scene(self) -> dict[str, Any]:
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

    async def _frame(self, want: list[str]) -> dict[str, Any] | None:
        if self._pulling is None:
            if not self._up.is_set():
                return None
            self._pulling = asyncio.ensure_future(self._pull(want))
        # Else the worker still owes an answer: asking again would only make it owe two, and what comes late is
        # delivered all the same, since the worker counts it as seen.
        return await self._wait_for_pull()

    async def _wait_for_pull(self) -> dict[str, Any] | None:
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

    async def _pull(self, want: list[str]) -> dict[str, Any] | None:
        seen = min((self._seen.get(part, -1) for part in want), default=-1)
        try:
            reply = pickle.loads(await self._ask(want, seen))
        except LOST:  # the watcher takes care of it
            return None
        self._answered = time.monotonic()
        if self._said[0] == self._silence:
            self._say("")
        self._take(reply)
        frame = reply["frame"]
        if frame is None:
            return None
        self._seen.update(dict.fromkeys(want, reply["version"]))
        self._seq += 1
        return frame | {"seq": self._seq}

    async def _ask(self, want: list[str], seen: int) -> bytes:
        """Return the pickled answer to a pull.

        A run that rests is asked through its actor, which answers even while the worker's thread builds another run.
        """
        if self._line is not None and self.playing:
            try:
                answer = await self._line.ask(Question(self.run_id, want, seen))
            except (OSError, EOFError):  # whether the worker was lost, a call of the actor shows
                self._hang_up()
            else:
                if answer:
                    return answer
        return await self._actor.frame(want, seen)

    async def _command(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        if not self._up.is_set() and not self.alive:
            raise BnnvizError(f"{self._message} Start it again to go on.")
        try:
            await asyncio.wait_for(self._up.wait(), CALL_S)
            reply = await self._patiently("command", name, args)
        except LOST:
            raise BnnvizError(self.notice or f"The worker did not answer to {name!r}; try again.") from None
        self._take(reply)
        if name == "watch":
            self._carried["watch"] = (self._carried["watch"] or {}) | args
        if name == "change":
            # a worker that has taken up a lost run may not have come to the later changes of it
            del self._changes[max(0, reply["changes"] - 1) :]
            self._changes.append((reply["step"], args["settings"]))
        if "log" in reply:
            self._changes = [tuple(change) for change in reply["log"]]
        return reply

    async def _stop(self) -> None:
        self._bringing.cancel()
        if self._actor is not None:
            with contextlib.suppress(*LOST):
                await self._call("stop")
        self.state, self._message = "ended", "This run was stopped."
        self._say("")
        self._release()


def _taken_up(reply: dict[str, Any]) -> str:
    if reply["resumed"]:
        return f"The worker running this was lost; a new one goes on from step {reply['resumed']}."
    return (
        "The worker running this was lost before it had saved anything that a new one can read; "
        "the run starts again and makes the same draws."
    )


def imported_dask(what: str) -> Any:
    """Return the package distributed.

    Parameters
    ----------
    what : str
        What needs it, a plural, as the error begins.

    Raises
    ------
    BnnvizError
        If it is not installed.
    """
    return optional.require("distributed", f"{what} need")


def scheduler_address(address: str | None) -> str | None:
    """Return the address of the scheduler: the given one, or ``BNNVIZ_SCHEDULER``; None: a cluster of this machine."""
    return address or os.environ.get("BNNVIZ_SCHEDULER") or None


def remote_client(distributed: Any, address: str, timeout: float = CONNECT_S) -> Any:
    """Return a client of a scheduler elsewhere; ``timeout``: seconds that it may be away before the client gives up.

    Raises
    ------
    BnnvizError
        If there is no scheduler.
    """
    # A Client that cannot connect is never closed, and when it is collected while another one starts,
    # both wait for each other: so look first.
    with ThreadPoolExecutor(1) as thread:  # this thread may have an event loop that runs
        try:
            found = thread.submit(asyncio.run, _identity(distributed, address)).result()
        except Exception as error:  # something else may listen there, and answer anything
            log.info("no scheduler at %s", address, exc_info=error)
            found = {}
    if found.get("type") != "Scheduler":
        raise BnnvizError(
            f"There is no Dask scheduler at {address}; start one there with dask scheduler, "
            "or unset BNNVIZ_SCHEDULER to run on this machine.",
            "scheduler",
        )
    return distributed.Client(address, timeout=timeout)


async def _identity(distributed: Any, address: str) -> dict[str, Any]:
    security = distributed.Security().get_connection_args("client")
    async with distributed.rpc(address, connection_args=security) as scheduler:
        return await asyncio.wait_for(scheduler.identity(n_workers=0), CONNECT_S)
