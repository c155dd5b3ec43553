"""Execute runs on the workers of a Dask cluster, and give handles to the live runs.

The page's process uses the workers only through this module. It does not import torch or block the event loop of the
page: everything here runs on the loop of the Dask client in a separate thread.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import time
import weakref
from typing import TYPE_CHECKING, Any

from bnnviz.engine.cluster import live_runs
from bnnviz.engine.cluster.live_handle import CALL_S, LiveHandle, spawn
from bnnviz.engine.cluster.local_cluster import (
    WORKER_S,
    imported_dask,
    local_cluster,
    remote_client,
    scheduler_address,
)
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

WATCH_S = 1.0  # between two looks for lost workers

log = logging.getLogger(__name__)


class Backend:
    """Execute live runs on a cluster; created by `connect`."""

    def __init__(self, client: Client, cluster: LocalCluster | None = None) -> None:
        self.client = client
        self._cluster = cluster
        self._placing = asyncio.Lock()
        self.handles: weakref.WeakSet[LiveHandle] = weakref.WeakSet()
        self._watching = spawn(client, self._watch())
        atexit.register(self.close)

    @classmethod
    def connect(cls, address: str | None = None, workers: int | None = None) -> Backend:
        """Connect to a cluster, or start one on this machine. Blocks until it is ready."""
        address = scheduler_address(address)
        if address is not None:
            return cls(remote_client(address))
        cluster = local_cluster(workers)
        try:
            # Frames are sent by the worker to the page, not through the scheduler.
            return cls(imported_dask().Client(cluster, direct_to_workers=True), cluster)
        except Exception:
            cluster.close()
            raise

    @property
    def notice(self) -> str | None:
        """Message if the cluster is not reachable."""
        if self.client.status in ("running", "closing", "closed"):
            return None
        return "The connection to the cluster was lost; runs continue when it is back."

    def devices(self) -> list[str]:
        """Return the devices that a spec may name on these workers. Blocks."""
        from bnnviz.engine.cluster import worker

        found = self.client.run(worker.devices, on_error="ignore")
        return sorted({name for names in found.values() for name in names})

    def census(self) -> list[dict[str, Any]]:
        """Return one row per live run on any worker, of any client. Blocks."""
        found = self.client.run(live_runs.census, on_error="ignore")
        return [row | {"worker": address} for address, rows in found.items() for row in rows]

    def start(
        self,
        spec: Any,
        *,
        play: bool = False,
        factory: str | None = None,
        origin: str | None = None,
        run_id: str | None = None,
    ) -> LiveHandle:
        """Start a live run, or resume one by its id from its checkpoint; returns at once."""
        fixed = {"factory": factory or spec.factory, "origin": origin}
        handle = LiveHandle(self, spec, play=play, fixed=fixed, run_id=run_id)
        handle.begin()
        return handle

    def close(self) -> None:
        """Disconnect from the cluster; a local one ends, with its runs."""
        atexit.unregister(self.close)
        self._watching.cancel()
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

    async def _watch(self) -> None:
        while True:
            for handle in list(self.handles):
                try:
                    handle.check()
                except Exception:  # without this task no lost run would be restarted
                    log.exception("live run %s could not be checked", handle.run_id)
            await asyncio.sleep(WATCH_S)

    async def workers(self) -> set[str]:
        """Return the addresses of all workers; empty while the scheduler is away."""
        if self.client.scheduler is None:  # the client is closed
            return set()
        try:
            found = await asyncio.wait_for(self.client.scheduler.identity(n_workers=-1), CALL_S)
        except (OSError, TimeoutError):
            return set()
        return set(found["workers"])

    async def place(self, handle: LiveHandle, lost: str | None) -> None:
        """Choose the worker with the fewest live runs, perhaps in place of a lost one."""
        async with self._placing:  # the next run has to count this one
            end = time.monotonic() + WORKER_S
            while not (choice := sorted(await self.workers() - {lost})):
                if time.monotonic() > end:
                    raise BnnvizError(f"The cluster has had no worker for {WORKER_S:g} s; start one and try again.")
                await asyncio.sleep(WATCH_S)
            own = [each.address for each in self.handles if each.alive]
            loads = {address: own.count(address) for address in choice}
            if self._cluster is None:  # other clients may use it too
                census = self.client.run(live_runs.census, workers=choice, on_error="ignore")
                for address, rows in (await asyncio.wait_for(census, CALL_S)).items():
                    loads[address] = max(loads[address], len(rows))
            handle.address = min(choice, key=loads.__getitem__)
