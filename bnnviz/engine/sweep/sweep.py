"""Run a sweep: many runs on the workers of a cluster, each of which becomes a recording in one folder.

The folder has ``sweep.json``, what each run is; a recording under each finished run's name; and ``.runs``, what is not
finished. The same sweep in the same folder goes on where it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Self

from bnnviz import files
from bnnviz.engine.cluster.jobs import worker as job_worker
from bnnviz.engine.cluster.jobs.scheduling import Cluster, Event, Job, Jobs
from bnnviz.engine.recording.warm_start import resolved
from bnnviz.engine.sweep import worker
from bnnviz.errors import BnnvizError
from bnnviz.files import plain_json
from bnnviz.specs.run import Spec
from bnnviz.specs.sweep import SweepSpec

FORMAT = 1
SWEEP = "sweep.json"
_LOCK = ".lock"


class Sweep:
    """Do the runs of a sweep, and keep the folder that they go to; a context."""

    def __init__(
        self,
        spec: SweepSpec,
        out: Path,
        *,
        scheduler: str | None = None,
        workers: int | None = None,
        insecure: bool = False,
    ) -> None:
        self.spec, self.out = spec, Path(out).absolute()
        self.names = list(spec.runs)
        self.wall, self.slots = 0.0, 0
        self._scheduler, self._workers, self._insecure = scheduler, workers, insecure
        self._failed: dict[str, str] = {}
        self._worker_s: dict[str, float] = {}
        self._place = {"out": str(self.out), "token": uuid.uuid4().hex}
        self._sends = False  # whether workers may not see the folder, so that what is unfinished has to be sent
        self.before = [name for name in self.names if worker.finished(self.out / name) is not None]
        # Of who begins the sweep are the recordings that runs start from, which workers may not see.
        self._specs = {name: resolved(spec.runs[name]) for name in self.names if name not in set(self.before)}
        self._lock = _claimed(self.out, spec.runs, self._place["token"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self.out / worker.TOKEN).unlink()
        self._lock.close()

    def events(self, stopped: Callable[[], bool] = lambda: False) -> Iterator[Event]:
        """Do what is left to do, and yield what happens; numbers are those of ``names``."""
        left = [number for number, name in enumerate(self.names) if name not in set(self.before)]
        if not left:
            return
        with Cluster(self._scheduler, self._workers, insecure=self._insecure) as cluster:
            self.slots = cluster.slots()
            seen = {} if cluster.own else cluster.client.run(worker.sees, self._place, on_error="ignore")
            self._sends = not cluster.own and not (seen and all(seen.values()))
            sent = Jobs(cluster, worker.record, [self._job(cluster, self.names[number]) for number in left])
            begun = time.perf_counter()
            try:
                for event in sent.events(stopped):
                    number = left[event.number] if event.number >= 0 else -1
                    yield self._taken(event._replace(number=number))
            finally:
                self.wall = time.perf_counter() - begun

    def _job(self, cluster: Cluster, name: str) -> Job:
        spec, held = self._specs[name], None
        if self._sends and (found := worker.unfinished(self.out / worker.GOING, name)):
            held = worker.pack(found[0])
        given = {"json": spec.to_json(), "attachment": spec.attachment, "start_points": spec.start_points}
        # Where this machine has no GPU the run itself says so.
        gpu = spec.device.startswith("cuda") and (not cluster.own or cluster.slots(gpu=True) > 0)
        return Job((name, given, self._place | {"held": held}), gpu)

    def _taken(self, event: Event) -> Event:
        """Keep what a job gave, and return the event with its row or its sentence."""
        if event.number < 0:
            return event
        name, given = self.names[event.number], event.value
        if event.kind == job_worker.FAILED:
            self._failed[name] = given
        if event.kind == job_worker.STOPPED:
            if given and given.get("packed"):
                self._unpack(name, given["packed"])
            return event._replace(value=None)
        if event.kind != job_worker.DONE:
            return event
        try:
            if given.get("packed"):
                worker.settle(self._unpack(name, given["packed"]), self.out / name)
        except BnnvizError as error:
            self._failed[name] = error.sentence
            return event._replace(kind=job_worker.FAILED, value=error.sentence)
        self._worker_s[name] = given["worker_s"]
        row = given["row"]
        return event if row["error"] is None else event._replace(kind=job_worker.FAILED, value=row["error"])

    def _unpack(self, name: str, packed: bytes) -> Path:
        going = self.out / worker.GOING
        folder = worker.new_folder(going, name)
        worker.unpack(packed, folder)
        worker.clear(going, name, folder)  # it went on from what there was
        return folder

    def rows(self) -> list[dict[str, Any]]:
        """Return name, state, spec, seconds, figures and folder of each run, and why it failed.

        ``state`` is done, failed or left; ``seconds`` are the run's own, ``worker_s`` those that its worker spent on
        it in this sweep, the recording and the summary included.
        """
        return [self._row(name) for name in self.names]

    def _row(self, name: str) -> dict[str, Any]:
        found = worker.finished(self.out / name)
        error = found["error"] if found else self._failed.get(name)
        return {
            "name": name,
            "state": "failed" if error else "done" if found else "left",
            "error": error,
            "spec": self.spec.runs[name].to_json(),
            "seconds": found["seconds"] if found else None,
            "worker_s": self._worker_s.get(name),
            "figures": found["figures"] if found else {},
            "folder": str(self.out / name) if found else None,
        }


def _claimed(out: Path, runs: dict[str, Spec], token: str) -> IO[str]:
    """Make a folder this sweep's, and return the lock on it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / _LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise BnnvizError(f"A sweep is at work in {out}; wait for it, or choose another folder.", "out") from None
    except OSError as error:
        raise BnnvizError(f"{out} cannot be written to ({error.strerror}); choose another folder.", "out") from None
    try:
        _enter(out, runs, token)
    except BnnvizError:
        lock.close()
        raise
    return lock


def _enter(out: Path, runs: dict[str, Spec], token: str) -> None:
    known = _known(out)
    wanted = {name: spec.to_json() for name, spec in runs.items()}
    for name, spec in wanted.items():
        if known.get(name, spec) != spec:
            changed = next(key for key in spec if spec[key] != known[name].get(key))
            raise BnnvizError(
                f"{out} holds another sweep: its run {name} has another {changed}; choose another folder.", "out"
            )
    try:
        runs = json.dumps({"format": FORMAT, "runs": known | wanted})
        files.write_whole(out / SWEEP, runs.encode(), sync=False)
        files.write_whole(out / worker.TOKEN, token.encode(), sync=False)
        (out / worker.GOING).mkdir(exist_ok=True)
    except OSError as error:
        raise BnnvizError(f"{out} cannot be written to ({error.strerror}); choose another folder.", "out") from None


def _known(out: Path) -> dict[str, Any]:
    """Return the specs of the sweep that a folder holds; none where it is new."""
    path = out / SWEEP
    if not path.exists():
        if any(found.name != _LOCK for found in out.iterdir()):
            raise BnnvizError(f"{out} holds something that is no sweep; choose another folder.", "out")
        return {}
    try:
        found = plain_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT or not isinstance(found.get("runs"), dict):
        raise BnnvizError(f"The sweep in {out} cannot be read by this bnnviz; choose another folder.", "out")
    return found["runs"]
