"""Run the processes of a benchmark: the served dashboard, and the CPU time that each part uses."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from bnnviz.engine.cluster import local_cluster as cluster
from bnnviz.engine.cluster.backend import Backend
from bnnviz.engine.cluster.certificates import FILE_VARIABLE, ClusterKey
from bnnviz.errors import BnnvizError

HOST = "127.0.0.1"
CLUSTER_S = 30.0  # the workers start after the page answers
PATIENCE_S = 60.0  # for the server to answer
FAREWELL_S = 10.0  # for a process to end after it has been asked to
# The second variable `make serve` does not pass on either: with it nothing that Python compiles would be kept.
_NOT_PASSED_ON = {"BNNVIZ_SCHEDULER", "PYTHONDONTWRITEBYTECODE"}


class Dashboard:
    """A dashboard served by a process of its own.

    Parameters
    ----------
    process : psutil.Process
        The page's process.
    port : int
        Where it listens.
    token : str
        That lets a browser in.
    key : ClusterKey
        That lets into its cluster.
    student : str
        The token of a class's students.

    Attributes
    ----------
    page : str
        The page's address, without a token.
    url : str
        The page's address, with the token.
    begun : float
        When the process was started, in seconds since the epoch.
    """

    def __init__(self, process: psutil.Process, port: int, token: str, key: ClusterKey, student: str = "") -> None:
        self.process = process
        self.port = port
        self.token, self.student = token, student
        self.page = f"http://{HOST}:{port}/app"
        self.url = f"{self.page}?token={token}"
        self._key = key
        self.begun = time.time()
        self._family = {process}

    def family(self) -> list[psutil.Process]:
        """Return the page's process and all that it has started and that still runs."""
        # Kept, because the children of a process that has ended are nobody's.
        with suppress(psutil.NoSuchProcess):
            self._family.update(self.process.children(recursive=True))
        return [process for process in self._family if process.is_running()]

    def workers(self) -> list[psutil.Process]:
        """Return what the page's process has started."""
        return [process for process in self.family() if process != self.process]

    def torch_libraries(self) -> list[str]:
        """Return the libraries of torch that the page's process has loaded."""
        paths = {Path(entry.path) for entry in self.process.memory_maps(grouped=True)}
        return sorted(path.name for path in paths if "libtorch" in path.name or "torch" in path.parts)

    def worker_at(self, address: str) -> psutil.Process:
        """Return the worker process that listens at an address such as ``tls://127.0.0.1:1234``."""
        port = int(address.rsplit(":", 1)[1])
        return next(process for process in self.workers() if port in _listening(process))

    @contextmanager
    def cluster(self) -> Iterator[Backend]:
        """Look into the cluster that the page has started, as another client of its scheduler."""
        until = time.monotonic() + CLUSTER_S
        while (backend := self._connect()) is None:
            if time.monotonic() > until:
                raise BnnvizError("The dashboard has started no workers here; unset BNNVIZ_SCHEDULER and try again.")
            time.sleep(0.2)
        with backend:
            yield backend

    def _connect(self) -> Backend | None:
        """Return a client of the scheduler; None while the workers are starting."""
        found = [process for process in self.workers() if cluster.__name__ in " ".join(process.cmdline())]
        for port in sorted(port for process in found for port in _listening(process)):
            try:
                return Backend.connect(f"tls://{HOST}:{port}", key=self._key)
            except BnnvizError:  # it listens for something else there
                continue
        return None


@contextmanager
def dashboard(classroom: bool = False) -> Iterator[Dashboard]:
    """Serve the dashboard as ``bnnviz serve`` does, on a free port and with workers of its own.

    Parameters
    ----------
    classroom : bool
        Whether it serves a class.
    """
    port = _free_port()
    command = [sys.executable, "-m", "bnnviz.cli", "serve", "--address", HOST, "--port", str(port), "--no-show"]
    command += ["--class"] if classroom else []
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
    key, (token, student) = ClusterKey.make(), (secrets.token_urlsafe(32) for _ in range(2))
    with tempfile.TemporaryFile("w+") as log, tempfile.TemporaryDirectory(prefix="bnnviz-bench-") as folder:
        file = Path(folder) / "key.pem"
        key.write(file)
        environment |= {FILE_VARIABLE: str(file), "BNNVIZ_TOKEN": token, "BNNVIZ_STUDENT_TOKEN": student}
        child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
        served = Dashboard(psutil.Process(child.pid), port, token, key, student)
        try:
            _wait(child, served, log)
            yield served
        finally:
            _stop(child, served)


def _wait(child: subprocess.Popen, served: Dashboard, log: Iterable[str]) -> None:
    while not _answers(served.port):
        late = time.time() - served.begun > PATIENCE_S
        if late or child.poll() is not None:
            log.seek(0)
            lines = [line.strip() for line in log if line.strip()]
            what = f"did not answer within {PATIENCE_S:g} s" if late else f"ended with code {child.returncode}"
            raise BnnvizError(f"The dashboard {what} ({lines[-1] if lines else 'it said nothing'}).")
        time.sleep(0.02)


def _stop(child: subprocess.Popen, served: Dashboard) -> None:
    """Ask the server to end, and end by force what does not follow."""
    family = served.family()
    child.terminate()
    _, alive = psutil.wait_procs(family, timeout=FAREWELL_S)
    end(alive)
    child.wait()


def end(processes: Iterable[psutil.Process]) -> None:
    """End these processes, by force."""
    processes = list(processes)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=FAREWELL_S)


class Meter:
    """CPU seconds of named groups of processes, and of everything else on this machine.

    Parameters
    ----------
    groups : dict
        By name, functions that return the processes of a group as they are then.
    """

    def __init__(self, groups: dict[str, Callable[[], list[psutil.Process]]]) -> None:
        self._groups = groups
        self._before = self._read()

    def read(self) -> dict[str, float]:
        """Return the CPU seconds since the beginning, for each group, and for the "others"."""
        now = self._read()
        used = {name: now[name] - self._before[name] for name in now}
        used["others"] = used.pop("") - sum(used.values())
        return used

    def _read(self) -> dict[str, float]:
        machine = psutil.cpu_times()
        # On Linux the time of a guest is in the user's already.
        busy = sum(machine) - machine.idle - getattr(machine, "iowait", 0.0) - getattr(machine, "guest", 0.0)
        return {"": busy} | {name: cpu_seconds(*group()) for name, group in self._groups.items()}


def cpu_seconds(*processes: psutil.Process) -> float:
    """Return the CPU time that processes have used; one that has ended counts no more."""
    total = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            used = process.cpu_times()
            total += used.user + used.system
    return total


def _listening(process: psutil.Process) -> set[int]:
    connections = process.net_connections("tcp")
    return {connection.laddr.port for connection in connections if connection.status == psutil.CONN_LISTEN}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def _answers(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True
