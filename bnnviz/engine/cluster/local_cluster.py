"""Start the cluster of this machine: Dask's scheduler and workers, for the dashboard in a process of its own.

That process begins before the page's has imported anything, and leaves it its interpreter. It ends with whoever
started it, however that ends: then nobody holds the other end of its standard input.
"""

from __future__ import annotations

import contextlib
import json
import logging
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker
from typing import IO, Any

from bnnviz.engine.cluster.certificates import ClusterKey
from bnnviz.errors import BnnvizError

PRELOAD = "bnnviz.engine.cluster.worker"
GPU = "GPU"  # the resource that a worker with one advertises
LEAST_MEMORY = 2 * 2**30
CONFIG = {
    # looking at itself a hundred times a second would take the interpreter from the samplers and the page
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.worker.memory.monitor-interval": "1s",
    # actors are not data: nothing here can be spilled, moved or copied
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.work-stealing": False,
    # their pages have no password: nothing is there to be asked, and the ports are closed
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
FAREWELL_S = 10.0  # for the workers to save their runs
# A process that has these is what workers are forked from, so that each but the first is there at once.
FORKED_WITH = ["torch", "distributed", "bnnviz.engine.viewed_run", "bnnviz.engine.cluster.actor"]
# What Dask gives the processes of workers. Libraries read it when they are imported: before the fork.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# From so many cores on, the page and its browser have one each beside what begins ahead of them.
AHEAD_CORES = 3

log = logging.getLogger(__name__)


class ClusterProcess:
    """Hold a process with a scheduler and workers of this machine; it begins at once."""

    def __init__(self, workers: int | None = None, port: int = 0, key: ClusterKey | None = None) -> None:
        self._workers, self._port, self._key = workers, port, key
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a terminal sends Ctrl-C to all processes of a session
        )
        self._say({"path": sys.path, "workers": workers, "port": port, "key": key})
        self._answer: dict[str, Any] | None = None

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def wait(self) -> dict[str, Any]:
        """Return the scheduler's ``address``, its ``key`` and the number of ``workers``, when these are there."""
        if self._answer is None:
            line = self._process.stdout.readline()
            self._answer = json.loads(line) if line else {"error": "The worker processes could not be started."}
        if "error" in self._answer:
            raise BnnvizError(self._answer["error"])
        self._workers, self._port = self._answer["workers"], int(self._answer["address"].rpartition(":")[2])
        self._key = self._answer["key"] = ClusterKey(*self._answer["key"])
        return self._answer

    def again(self) -> ClusterProcess:
        """Return another one with the same workers, port and key, in the place of this one, which has ended."""
        self.close()
        return ClusterProcess(self._workers, self._port, self._key)

    def scale(self, workers: int) -> None:
        """Have so many workers."""
        self._say({"scale": workers})

    def close(self) -> None:
        """End the workers and the scheduler."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(FAREWELL_S)
        except subprocess.TimeoutExpired:
            log.warning("the workers did not end within %g s and are killed", FAREWELL_S)
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _say(self, what: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # it has ended, which whoever waits for it or calls it notices
            self._process.stdin.write(json.dumps(what) + "\n")
            self._process.stdin.flush()


_ahead: ClusterProcess | None = None


def start_ahead() -> None:
    """Start the process that `taken` will return, where there are cores enough."""
    global _ahead
    if (os.cpu_count() or 1) >= AHEAD_CORES:
        _ahead = ClusterProcess()


def taken(workers: int | None = None) -> ClusterProcess:
    """Return the process that was started ahead, or a new one where there is none, or with so many workers."""
    global _ahead
    if _ahead is None or workers is not None:
        return ClusterProcess(workers)
    ahead, _ahead = _ahead, None
    return ahead


def usual_workers(gpus: list[str]) -> int:
    """Return how many workers this machine has: one for each GPU, or else one for each core but one."""
    return len(gpus) or max(1, (os.cpu_count() or 1) - 1)


def local_cluster(
    distributed: Any,
    count: int,
    gpus: list[str],
    config: dict[str, Any] | None = None,
    port: int = 0,
    key: ClusterKey | None = None,
) -> Any:
    """Start worker processes on this machine, which take a GPU each where there are any.

    Nobody gets in without the key: all of their ports speak TLS.
    """
    import dask

    config = CONFIG | (config or {})

    # Read when a worker is lost: on a busy machine a new one imports torch for longer than the 15 s after
    # which the cluster would strike it off, for good.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})
    security = (key or ClusterKey.of_this_run()).security()
    memory = int(0.9 * distributed.system.MEMORY_LIMIT / (count + 1))
    try:
        with dask.config.set(config), _deaf_to_interrupts():
            cluster = distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                host="127.0.0.1",
                scheduler_port=port,
                security=security,
                # no dashboard; the port that Dask opens all the same is closed below
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                memory_limit=max(LEAST_MEMORY, memory),
                preload=[PRELOAD],
                env={"BNNVIZ_GPUS": ",".join(gpus)},
                config=config,
                **({"resources": {GPU: 1}} if gpus else {}),
            )
            cluster.loop.add_callback(cluster.scheduler.http_server.stop)
            return cluster
    except (OSError, RuntimeError) as error:
        raise BnnvizError(
            f"The worker processes could not be started ({error}); in a script, do it under if __name__ == '__main__'."
        ) from error


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Keep Ctrl-C from what is started in here: a terminal sends it to the workers too, which would die of it.

    Threads and processes inherit the mask, those that replace a lost worker later included; whoever
    started the cluster ends the workers in order.
    """
    # Python starts this helper with the first process, and lets interrupts through again when it does.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
        log.warning("nvidia-smi does not answer, so this machine's GPUs are not used: %s", error)
        return []
    return [line.split()[1].rstrip(":") for line in listed.splitlines() if line.startswith("GPU ")]


# In the process itself


def _main() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    # Whatever workers print must not pass for an answer.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    begin = json.loads(sys.stdin.readline())
    sys.path[:] = begin["path"]
    gpus = gpus_here()
    workers = begin["workers"] or usual_workers(gpus)
    method = _method(gpus)
    with _deaf_to_interrupts():
        if method == "forkserver":
            _start_forkserver()
        # While the other process reads torch.
        import dask
        import distributed

        # For good: the spare worker, and those in the place of lost ones, are started later.
        dask.config.set({"distributed.worker.multiprocessing-method": method})
        try:
            key = ClusterKey.of_this_run() if begin["key"] is None else ClusterKey(*begin["key"])
            cluster = local_cluster(distributed, workers, gpus, port=begin["port"], key=key)
        except BnnvizError as error:
            _tell(answers, {"error": error.sentence})
            return
        with cluster:
            _tell(answers, {"address": cluster.scheduler_address, "workers": workers, "key": key})
            for line in sys.stdin:
                cluster.scale(json.loads(line)["scale"])


def _method(gpus: list[str]) -> str:
    """Return how workers are started: CUDA and the frameworks of macOS do not outlive a fork for certain."""
    return "forkserver" if sys.platform == "linux" and not gpus else "spawn"


def _start_forkserver() -> None:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    multiprocessing.get_context("forkserver").set_forkserver_preload(FORKED_WITH)
    forkserver.ensure_running()


def _tell(answers: IO[str], what: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # nobody is there any more, which ends this process
        print(json.dumps(what), file=answers, flush=True)


if __name__ == "__main__":
    _main()
