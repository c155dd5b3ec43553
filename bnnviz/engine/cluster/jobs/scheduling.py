"""Do jobs on a Dask cluster of this machine or of others: each on one worker, and again where that is lost.

A worker that goes while it has a job costs the job only what it had not kept: the job is done again on another one. A
job that fails by itself is said to have failed, and the others go on. One that loses more than `LOSSES` workers is
given up: it kills them itself.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

from bnnviz.engine.cluster import backend
from bnnviz.engine.cluster import local_cluster as cluster
from bnnviz.engine.cluster.jobs import worker as job_worker
from bnnviz.errors import BnnvizError
from bnnviz.version import VERSION

LOSSES = 5  # workers that one job may lose
AWAY_S = 30.0  # that a scheduler may be out of reach
STOP_S = 30.0  # that jobs have to write what they have
LOOK_S = 0.5
RESULT_S = 60.0
CONFIG = {
    "distributed.scheduler.allowed-failures": 1000,  # the jobs count for themselves: waiting ones are not to blame
    "distributed.scheduler.work-stealing": True,
}
LOST, WAITING = "lost", "waiting"

log = logging.getLogger(__name__)


class Event(NamedTuple):
    """Say what happened to a job.

    ``kind`` is began, told, lost (its worker, and it is done again), done, failed or stopped; or waiting, with number
    -1 and a sentence on what the cluster has to be given. ``value`` is the worker, what the job told, the times that
    it was lost, its result, why it failed, or what a stopped one gave.
    """

    number: int
    kind: str
    value: Any = None


class Job(NamedTuple):
    """Describe a call ``function(report, *args)`` on a worker, which has a GPU where ``gpu`` says so."""

    args: tuple[Any, ...]
    gpu: bool = False


class Cluster:
    """Hold the workers that jobs are done on; a context that ends those which it has started."""

    def __init__(self, address: str | None = None, workers: int | None = None, *, insecure: bool = False) -> None:
        distributed = backend.imported_dask("Runs on a cluster")
        self.address = backend.scheduler_address(address)
        self._own = None
        if self.address is not None and workers is not None:
            raise BnnvizError(
                "The workers of a scheduler elsewhere are started there; leave out --workers or --scheduler.", "workers"
            )
        if self.address is not None:
            self.client = backend.remote_client(distributed, self.address, AWAY_S, insecure=insecure)
            try:
                self._compare()
            except BnnvizError:
                self.client.close()
                raise
            return
        gpus = cluster.gpus_here()
        self._own = cluster.local_cluster(distributed, workers or cluster.usual_workers(gpus), gpus, CONFIG)
        self.client = distributed.Client(self._own)

    def _compare(self) -> None:
        """Refuse workers that would do something else."""
        found = self.client.run(job_worker.version, on_error="return")
        for worker, version in found.items():
            if isinstance(version, Exception):
                raise BnnvizError(
                    f"The worker {worker} cannot use bnnviz ({version}); install bnnviz {VERSION} where it runs.",
                    "scheduler",
                )
            if version != VERSION:
                raise BnnvizError(
                    f"The worker {worker} has bnnviz {version}, and this is {VERSION}; install the same there.",
                    "scheduler",
                )

    def slots(self, gpu: bool = False) -> int:
        """Return how many jobs can be done at a time now."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        able = [worker for worker in workers if not gpu or worker["resources"].get(cluster.GPU, 0) >= 1]
        return sum(1 if gpu else worker["nthreads"] for worker in able)

    @property
    def own(self) -> bool:
        """Whether its workers are of this machine and end with it."""
        return self._own is not None

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        self.client.close()
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Jobs:
    """Have jobs done on a cluster."""

    def __init__(self, cluster: Cluster, function: Callable[..., Any], jobs: list[Job]) -> None:
        self._cluster, self._client, self._function, self._jobs = cluster, cluster.client, function, jobs
        self._topic = f"bnnviz-{uuid.uuid4().hex}"
        self._futures: dict[int, Any] = {}
        self._orphans: set[int] = set()  # whose scheduler was away
        self._began = [0] * len(jobs)
        self._killed = [0] * len(jobs)
        self._heard: queue.SimpleQueue[tuple[int, str, Any]] = queue.SimpleQueue()
        self._open = set(range(len(jobs)))
        self._stop_by: float | None = None
        self._waiting = False

    def stop(self) -> None:
        """Tell all jobs to stop: those that have begun give what they have, the others are not begun."""
        if self._stop_by is not None:
            return
        self._stop_by = time.monotonic() + STOP_S
        for number in sorted(self._open):
            if not self._began[number]:
                self._drop(number)
        self._tell_workers(job_worker.stop, self._topic)

    def events(self, stopped: Callable[[], bool] = lambda: False) -> Iterator[Event]:
        """Have the jobs done, and yield what happens to them."""
        try:
            self._send(range(len(self._jobs)))
            while self._open:
                if stopped():
                    self.stop()
                yield from self._next()
        finally:
            for number in list(self._futures):
                self._drop(number)
            if self._client.status == "running":
                self._client.unsubscribe_topic(self._topic)

    def _send(self, numbers: Any) -> None:
        self._client.subscribe_topic(self._topic, self._hear)
        for number in numbers:
            job = self._jobs[number]
            future = self._client.submit(
                job_worker.perform,
                self._function,
                self._topic,
                number,
                job.args,
                key=f"{self._topic}-{number}-{self._killed[number]}-{uuid.uuid4().hex[:8]}",
                resources={cluster.GPU: 1} if job.gpu else None,
                pure=False,
            )
            self._futures[number] = future
            self._await(number, future)

    def _await(self, number: int, future: Any) -> None:
        future.add_done_callback(lambda ended: self._heard.put((number, "ended", ended)))

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        message = event[1]
        self._heard.put((message["number"], message["kind"], message["value"]))

    def _next(self) -> Iterator[Event]:
        self._look()
        if self._stop_by is not None and time.monotonic() > self._stop_by:
            yield from [Event(number, job_worker.STOPPED) for number in sorted(self._open)]
            self._open.clear()
            return
        try:
            number, kind, value = self._heard.get(timeout=LOOK_S)
        except queue.Empty:
            yield from self._waited()
            return
        if number not in self._open:
            return
        if kind == job_worker.BEGAN:
            yield from self._begin(number, value)
        elif kind == job_worker.TOLD:
            yield Event(number, kind, value)
        elif value is self._futures.get(number):
            yield from self._end(number, value)

    def _begin(self, number: int, worker: str) -> Iterator[Event]:
        self._began[number] += 1
        if self._began[number] > LOSSES:
            self._tell_workers(job_worker.stop, self._topic, number)
            yield self._given_up(number)
            return
        if self._began[number] > 1:
            yield Event(number, LOST, self._began[number] - 1)
        yield Event(number, job_worker.BEGAN, worker)

    def _given_up(self, number: int) -> Event:
        self._open.discard(number)
        self._drop(number)
        return Event(
            number,
            job_worker.FAILED,
            f"The worker running it was lost {LOSSES} times, so it is not started again; it may need more memory than"
            " there is: try fewer chains or a smaller network.",
        )

    def _end(self, number: int, future: Any) -> Iterator[Event]:
        if future.status == "cancelled":
            self._orphan(number)
            return
        if future.status == "error":
            yield from self._raised(number, future.exception())
            return
        try:
            kind, value = future.result(timeout=RESULT_S)
        except Exception as error:  # its worker went before it had handed the result over: Dask makes it again
            log.info("the result of job %d is not to be had yet", number, exc_info=error)
            if future.status == "cancelled":
                self._orphan(number)
            else:
                self._await(number, future)
            return
        self._open.discard(number)
        self._drop(number)
        yield Event(number, kind, value)

    def _raised(self, number: int, error: Exception) -> Iterator[Event]:
        """Take up a job that Dask gave up because its workers died, maybe of another one; else say what it raised."""
        from distributed.scheduler import KilledWorker

        if not isinstance(error, KilledWorker):
            self._open.discard(number)
            self._drop(number)
            yield Event(number, job_worker.FAILED, f"It could not be started ({type(error).__name__}: {error}).")
            return
        self._killed[number] += 1
        if self._killed[number] >= LOSSES or self._began[number] >= LOSSES:
            yield self._given_up(number)
            return
        self._send([number])

    def _orphan(self, number: int) -> None:
        if self._stop_by is None:
            self._orphans.add(number)
        else:
            self._open.discard(number)

    def _look(self) -> None:
        """Send again what was lost with the connection, once that is back."""
        if self._client.status == "closed":
            raise BnnvizError(
                f"The scheduler at {self._cluster.address or 'this machine'} is gone; what is done is kept, and the"
                " same command goes on when it is back.",
                "scheduler",
            )
        if self._orphans and self._client.status == "running":
            again, self._orphans = sorted(self._orphans), set()
            self._send(again)

    def _waited(self) -> Iterator[Event]:
        """Say once what the cluster is without."""
        if self._waiting or self._client.status != "running":
            return
        gpu = any(self._jobs[number].gpu for number in self._open)
        if not self._cluster.slots():
            self._waiting = True
            yield Event(-1, WAITING, "The cluster has no worker yet; the runs wait for one.")
        elif gpu and not self._cluster.slots(gpu=True):
            self._waiting = True
            yield Event(
                -1,
                WAITING,
                "No worker of the cluster has a GPU to offer, and the runs wait for one; start workers with"
                f' --resources "{cluster.GPU}=1", or choose the device cpu.',
            )

    def _drop(self, number: int) -> None:
        future = self._futures.pop(number, None)
        if future is not None and future.status == "pending":
            future.cancel()
        if self._stop_by is not None and not self._began[number]:
            self._open.discard(number)

    def _tell_workers(self, function: Callable[..., None], *args: Any) -> None:
        """Call a function on all workers without waiting for one that does not answer."""

        def call() -> None:
            try:
                self._client.run(function, *args, on_error="ignore")
            except Exception as error:  # what cannot be told is found out by whoever takes its place
                log.info("the workers could not be told", exc_info=error)

        threading.Thread(target=call, name="bnnviz-jobs", daemon=True).start()
