"""Start a Dask cluster on this machine, or connect to one elsewhere.

A Dask scheduler runs whatever a client sends it, and every account of the machine reaches a port of 127.0.0.1. So the
scheduler, workers and clients of a local cluster share a temporary certificate, or the one in Dask's configuration
(``distributed.comm.tls``), and refuse all other connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnnviz import optional
from bnnviz.errors import BnnvizError
from bnnviz.version import VERSION

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

PRELOAD = "bnnviz.engine.cluster.worker"
GPU = "GPU"  # the resource that a worker with a GPU advertises
LEAST_MEMORY = 2 * 2**30
CONNECT_S = 4.0  # looking for a remote scheduler
HEARTBEAT_S = 10.0  # between two reports of a worker; a lost connection is noticed at once
WORKER_S = 60.0  # waiting for a worker: a new process imports torch
CONFIG = {
    # The profiler would take the interpreter from the sampler and the page a hundred times a second.
    "distributed.worker.profile.enabled": False,
    # An idle server should cost nothing: fewer statistics, which only Dask's own pages show.
    "distributed.admin.tick.interval": "2s",
    "distributed.admin.tick.cycle": "1m",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.client.scheduler-info-interval": "1m",
    "distributed.scheduler.work-stealing-interval": "10s",
    "distributed.worker.memory.monitor-interval": "5s",
    # Actors cannot be spilled or moved.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.scheduler.active-memory-manager.start": False,
    # Dask's own pages have no password.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # On a busy machine a new worker imports torch for longer than the default of 15 s.
    "distributed.deploy.lost-worker-timeout": "1h",
}

log = logging.getLogger(__name__)


def imported_dask() -> Any:
    """Return the package distributed."""
    return optional.require("distributed", "Live runs and sweeps need")


def local_cluster(workers: int | None = None) -> LocalCluster:
    """Start a scheduler in this process and worker processes on this machine, each with a GPU if available."""
    distributed = imported_dask()
    optional.check("cryptography", "Worker processes need")
    import dask

    gpus = gpus_here()
    count = workers or len(gpus) or max(1, (os.cpu_count() or 1) - 1)
    dask.config.set(CONFIG)
    configured = distributed.Security()
    try:
        with _workers_ignore_ctrl_c():
            cluster = distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                host="127.0.0.1",
                security=configured if configured.require_encryption else distributed.Security.temporary(),
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                memory_limit=max(LEAST_MEMORY, int(0.9 * distributed.system.MEMORY_LIMIT / (count + 1))),
                preload=[PRELOAD],
                env={"BNNVIZ_GPUS": ",".join(gpus)},
                config=CONFIG,
                scheduler_kwargs={"dashboard": False},
                scheduler_sync_interval="1m",
                **({"resources": {GPU: 1}} if gpus else {}),
            )
    except (OSError, RuntimeError) as error:
        raise BnnvizError(
            f"The worker processes could not be started ({error}); in a script, do it under if __name__ == '__main__'."
        ) from error
    # Workers report every 10 s instead of .5 s, and nothing here asks about idleness.
    scheduler = cluster.scheduler
    heartbeat = scheduler.handlers["heartbeat_worker"]
    scheduler.handlers["heartbeat_worker"] = lambda **report: {**heartbeat(**report), "heartbeat-interval": HEARTBEAT_S}
    for name in ("idle-timeout", "no-workers-timeout"):
        scheduler.loop.add_callback(scheduler.periodic_callbacks[name].stop)
    return cluster


@contextlib.contextmanager
def _workers_ignore_ctrl_c() -> Iterator[None]:
    """Block SIGINT in new threads and processes, so that a worker ignores a terminal's Ctrl-C from its start."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # its start would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def connected(address: str | None = None, workers: int | None = None, *, insecure: bool = False) -> Iterator[Client]:
    """Yield a client of the scheduler elsewhere, or of a local cluster that ends with the context."""
    address = scheduler_address(address)
    if address is None:
        with local_cluster(workers) as cluster, cluster.get_client() as client:
            yield client
        return
    if workers is not None:
        raise BnnvizError("--workers refers to this machine. Omit --workers or --scheduler.", "workers")
    with remote_client(address, insecure=insecure) as client:
        try:
            client.wait_for_workers(1, timeout=WORKER_S)
        except TimeoutError:
            raise BnnvizError(f"The cluster at {address} has had no worker for {WORKER_S:g} s.", "scheduler") from None
        for worker, version in client.run(_version, on_error="return").items():
            if version != VERSION:
                raise BnnvizError(f"The worker {worker} has bnnviz {version}; install {VERSION} there.", "scheduler")
        yield client


def _version() -> str:
    return VERSION


def scheduler_address(address: str | None) -> str | None:
    """Return the given address, or ``BNNVIZ_SCHEDULER``, or None; a scheduler file (.json) contains its address."""
    address = address or os.environ.get("BNNVIZ_SCHEDULER") or None
    if address is None or not address.endswith(".json"):
        return address
    try:
        return str(json.loads(Path(address).read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BnnvizError(f"The scheduler file {address} cannot be read ({error}).", "scheduler") from None


def remote_client(address: str, *, insecure: bool = False) -> Client:
    """Return a client of a scheduler elsewhere, with the certificates of Dask's configuration."""
    insecure = insecure or os.environ.get("BNNVIZ_INSECURE", "0") not in ("", "0")
    if not insecure and not address.startswith("tls://"):
        raise BnnvizError(
            f"The scheduler at {address} has no TLS: any client can run code on its workers. Give its tls://"
            " address, or accept this with --insecure or BNNVIZ_INSECURE=1.",
            "scheduler",
        )
    distributed = imported_dask()
    security = distributed.Security()

    async def kind() -> Any:
        arguments = security.get_connection_args("client")
        async with distributed.rpc(address, connection_args=arguments, timeout=CONNECT_S) as scheduler:
            return (await asyncio.wait_for(scheduler.identity(n_workers=0), CONNECT_S))["type"]

    # A Client that fails to connect blocks for 8 s when it is collected, so look first. This thread may have a loop.
    with ThreadPoolExecutor(1) as thread:
        try:
            found = thread.submit(asyncio.run, kind()).result()
        except Exception as error:  # another program may listen there and send anything
            log.info("no scheduler at %s", address, exc_info=error)
            found = None
    if found != "Scheduler":
        raise BnnvizError(
            f"There is no Dask scheduler at {address} that accepts this client; start one there with dask scheduler, or"
            " unset BNNVIZ_SCHEDULER to run on this machine.",
            "scheduler",
        )
    return distributed.Client(address, timeout=CONNECT_S, security=security)


def gpus_here() -> list[str]:
    """Return the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them, without torch."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [gpu.strip() for gpu in visible.split(",") if gpu.strip() not in ("", "-1")]
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    try:
        listed = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("nvidia-smi failed, so this machine's GPUs are not used: %s", error)
        return []
    return [line.split()[1].rstrip(":") for line in listed.splitlines() if line.startswith("GPU ")]
