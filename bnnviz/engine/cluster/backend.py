"""Execute runs on a cluster of worker processes, of this machine or of others, and give handles to the live runs.

The page's process talks to the workers through this module only, and neither imports torch nor blocks its
event loop: everything here runs on the loop of the one Dask client, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import time
import weakref
from collections import deque
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bnnviz import optional
from bnnviz.engine.cluster import local_cluster as cluster
from bnnviz.engine.cluster import loop
from bnnviz.engine.cluster.certificates import ClusterKey
from bnnviz.engine.cluster.live_handle import CALL_S, LOSSES, LOSSES_S, WORKER_S, LiveHandle
from bnnviz.engine.cluster.slot import LEASE_S
from bnnviz.engine.cluster.tls_connector import register_tls_connector
from bnnviz.errors import BnnvizError

CONNECT_S = 4.0  # looking for a remote scheduler
SPARE_S = 10.0  # importing torch takes a core for a while: the spare worker leaves it to the first page
WATCH_S = 0.1  # lost workers are noticed so soon

log = logging.getLogger(__name__)


class Backend:
    """Execute live runs on a cluster; made with `connect`."""

    def __init__(self, client: Any, cluster: Any = None, active: int | None = None) -> None:
        self.client = client
        self._cluster = cluster
        self._losses: deque[float] = deque(maxlen=LOSSES)  # of the scheduler, with a cluster of our own
        self._gone = False  # it is not started again
        self._active = active  # with a cluster of our own: workers that take new runs; one more is the spare
        self._spare: str | None = None if active is None else str(active)
        self._placing = asyncio.Lock()
        self._names: dict[str, str] = {}  # of all workers there ever were, by address
        self.handles: weakref.WeakSet[LiveHandle] = weakref.WeakSet()
        self._tasks = [self.spawn(self._watch()), self.spawn(self._add_spare())]
        atexit.register(self.close)

    @classmethod
    def connect(
        cls,
        address: str | None = None,
        workers: int | None = None,
        *,
        insecure: bool = False,
        key: ClusterKey | None = None,
    ) -> Backend:
        """Connect to a cluster, or start one on this machine. Blocks until a worker is ready."""
        address = scheduler_address(address)
        if address is not None:
            return cls(remote_client(imported_dask("Live runs"), address, insecure=insecure, key=key))
        optional.check(("distributed", "cryptography"), "Live runs need")
        # Begun before Dask is imported here, which takes as long.
        own = cluster.taken(workers)
        try:
            distributed, answer = imported_dask("Live runs"), own.wait()
            # frames go straight from a worker to the page, not through the scheduler
            security = answer["key"].security()
            # it looks for a lost scheduler as long as a new one may take
            client = distributed.Client(answer["address"], timeout=WORKER_S, security=security, direct_to_workers=True)
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
        if self.client.status in ("running", "closing", "closed"):
            return None
        return "The connection to the cluster was lost; runs go on when it is back."

    def devices(self) -> list[str]:
        """Return the devices that a spec may name on these workers. Blocks."""
        from bnnviz.engine.cluster import worker

        found = self.client.run(worker.devices, on_error="ignore")
        return sorted({name for names in found.values() for name in names})

    def census(self) -> list[dict[str, Any]]:
        """Return one row for each live run on any worker, whoever started it. Blocks."""
        found = self.client.run(loop.census, on_error="ignore")
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
        """Start a live run; returns at once."""
        fixed = {"lease_s": lease_s, "factory": factory or spec.factory, "origin": origin}
        handle = LiveHandle(self, spec, play=play, fixed=fixed)
        handle.begin()
        return handle

    def close(self) -> None:
        """Leave the cluster; one that was started here ends, with its runs."""
        atexit.unregister(self.close)
        for task in self._tasks:
            task.cancel()
        try:
            self.client.close()
        finally:
            if self._cluster is not None:
                self._cluster.close()

    def __enter__(self) -> Backend:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # on the client's loop

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Have a coroutine run on the client's loop; return its future."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.client.loop.asyncio_loop)

    async def _watch(self) -> None:
        while True:
            for handle in list(self.handles):
                try:
                    handle.check()
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
        self._tasks.append(self.spawn(self._add_spare()))

    async def _add_spare(self) -> None:
        if self._cluster is not None:
            await asyncio.sleep(SPARE_S)
            self._cluster.scale(self._active + 1)

    async def workers(self) -> dict[str, str]:
        """Return the addresses of all workers with their names; none while the scheduler is away."""
        try:
            found = await asyncio.wait_for(self.client.scheduler.identity(n_workers=-1), CALL_S)
        except (OSError, TimeoutError):
            return {}
        workers = {address: str(worker["name"]) for address, worker in found["workers"].items()}
        self._names.update(workers)
        return workers

    async def place(self, handle: LiveHandle, lost: str | None) -> None:
        """Choose the worker that a run is started on, perhaps in place of a lost one."""
        async with self._placing:  # the next one has to see this one's choice
            handle.address = await self._choose(lost)

    async def _choose(self, lost: str | None) -> str:
        end = time.monotonic() + WORKER_S
        while True:
            workers = await self.workers()
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
        own = [handle.address for handle in self.handles if handle.alive]
        loads = {address: own.count(address) for address in addresses}
        if self._cluster is None:  # others may use it too
            found = await asyncio.wait_for(self.client.run(loop.census, workers=addresses, on_error="ignore"), CALL_S)
            for address, rows in found.items():
                loads[address] = max(loads[address], len(rows))
        return loads


def imported_dask(what: str) -> Any:
    """Return the package distributed."""
    distributed = optional.require("distributed", f"{what} need")
    register_tls_connector()
    return distributed


def scheduler_address(address: str | None) -> str | None:
    """Return the address of the scheduler: the given one, or ``BNNVIZ_SCHEDULER``; None: a cluster of this machine."""
    return address or os.environ.get("BNNVIZ_SCHEDULER") or None


def remote_client(
    distributed: Any,
    address: str,
    timeout: float = CONNECT_S,
    *,
    insecure: bool = False,
    key: ClusterKey | None = None,
) -> Any:
    """Return a client of a scheduler elsewhere; ``timeout``: seconds that it may be away before the client gives up."""
    _refuse_without_tls(address, insecure)
    security = distributed.Security() if key is None else key.security()
    # A Client that cannot connect is never closed, and when it is collected while another one starts,
    # both wait for each other: so look first.
    with ThreadPoolExecutor(1) as thread:  # this thread may have an event loop that runs
        try:
            found = thread.submit(asyncio.run, _identity(distributed, address, security)).result()
        except Exception as error:  # something else may listen there, and answer anything
            log.info("no scheduler at %s", address, exc_info=error)
            found = {}
    if found.get("type") != "Scheduler":
        raise BnnvizError(
            f"There is no Dask scheduler at {address} that lets this user in; start one there with dask scheduler, "
            "or unset BNNVIZ_SCHEDULER to run on this machine.",
            "scheduler",
        )
    return distributed.Client(address, timeout=timeout, security=security)


def _refuse_without_tls(address: str, insecure: bool) -> None:
    """Refuse a scheduler that anybody can use, unless the user has said that this is no matter."""
    if insecure or os.environ.get("BNNVIZ_INSECURE", "0") not in ("", "0") or address.startswith("tls://"):
        return
    raise BnnvizError(
        f"The scheduler at {address} has no TLS, so that whoever reaches it can run code as you on its workers and read"
        " and change what is sent: give its tls:// address, or use it as it is with --insecure or BNNVIZ_INSECURE=1.",
        "scheduler",
    )


async def _identity(distributed: Any, address: str, security: Any) -> dict[str, Any]:
    async with distributed.rpc(address, connection_args=security.get_connection_args("client")) as scheduler:
        return await asyncio.wait_for(scheduler.identity(n_workers=0), CONNECT_S)
