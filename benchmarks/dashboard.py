"""Serve the dashboard in its own process, and measure the CPU time of processes."""

from __future__ import annotations

import itertools
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
from typing import TextIO

import psutil
from distributed import Security

from bnnviz.errors import BnnvizError

HOST = "127.0.0.1"
_START_S = 60.0  # until the server answers
_END_S = 10.0  # until a process ends by itself
# `make serve` does not pass on the second one either: otherwise Python would cache no bytecode.
_NOT_PASSED_ON = {"BNNVIZ_SCHEDULER", "PYTHONDONTWRITEBYTECODE"}


class Dashboard:
    """A dashboard in its own process."""

    def __init__(self, process: psutil.Process, port: int, token: str) -> None:
        self.process, self.port = process, port
        self.url = f"http://{HOST}:{port}/app?token={token}"
        self.begun = time.time()
        self._family = {process}

    def family(self) -> list[psutil.Process]:
        """Return the page's process and all running processes that it has started."""
        with suppress(psutil.NoSuchProcess):  # kept: children of a process that has ended are lost
            self._family.update(self.process.children(recursive=True))
        return [process for process in self._family if process.is_running()]

    def workers(self) -> list[psutil.Process]:
        """Return the processes started by the page's process."""
        return [process for process in self.family() if process != self.process]

    def torch_libraries(self) -> list[str]:
        """Return the libraries of torch that the page's process has loaded."""
        paths = {Path(entry.path) for entry in self.process.memory_maps(grouped=True)}
        return sorted(path.name for path in paths if "libtorch" in path.name or "torch" in path.parts)


@contextmanager
def dashboard() -> Iterator[Dashboard]:
    """Serve the dashboard as ``bnnviz serve`` does, on a free port and with its own workers."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "bnnviz", "serve", "--address", HOST, "--port", str(port), "--no-show"]
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
    security, token = Security.temporary(), secrets.token_urlsafe(32)
    environment |= tls_environment(security) | {"BNNVIZ_TOKEN": token}
    with tempfile.TemporaryFile("w+") as log:
        child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
        served = Dashboard(psutil.Process(child.pid), port, token)
        try:
            _wait(child, served, log)
            yield served
        finally:
            family = served.family()
            child.terminate()
            _, alive = psutil.wait_procs(family, timeout=_END_S)
            end(alive)
            child.wait()


def tls_environment(security: Security) -> dict[str, str]:
    """Return environment variables that configure Dask with these certificates."""
    values = {"REQUIRE_ENCRYPTION": "True", "TLS__CA_FILE": security.tls_ca_file}
    for role, part in itertools.product(("client", "scheduler", "worker"), ("cert", "key")):
        values[f"TLS__{role}__{part}".upper()] = getattr(security, f"tls_{role}_{part}")
    return {f"DASK_DISTRIBUTED__COMM__{name}": value for name, value in values.items()}


def _wait(child: subprocess.Popen, served: Dashboard, log: TextIO) -> None:
    """Wait until the server answers."""
    while True:
        with suppress(OSError), socket.create_connection((HOST, served.port), timeout=1):
            return
        late = time.time() - served.begun > _START_S
        if late or child.poll() is not None:
            log.seek(0)
            lines = [line.strip() for line in log if line.strip()]
            what = f"did not answer within {_START_S:g} s" if late else f"ended with code {child.returncode}"
            raise BnnvizError(f"The dashboard {what} ({lines[-1] if lines else 'without output'}).")
        time.sleep(0.02)


def end(processes: Iterable[psutil.Process]) -> None:
    """Kill these processes."""
    processes = list(processes)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=_END_S)


class Meter:
    """CPU seconds used from now on by named groups of processes, and by everything else on this machine."""

    def __init__(self, groups: dict[str, Callable[[], list[psutil.Process]]]) -> None:
        self._groups = groups
        self._before = self._read()

    def read(self) -> dict[str, float]:
        """Return the CPU seconds of each group, and of the ``others``."""
        now = self._read()
        used = {name: now[name] - self._before[name] for name in now}
        used["others"] = used.pop("") - sum(used.values())
        return used

    def _read(self) -> dict[str, float]:
        machine = psutil.cpu_times()
        # On Linux the time of a guest is included in the user's.
        busy = sum(machine) - machine.idle - getattr(machine, "iowait", 0.0) - getattr(machine, "guest", 0.0)
        return {"": busy} | {name: cpu_seconds(*group()) for name, group in self._groups.items()}


def cpu_seconds(*processes: psutil.Process) -> float:
    """Return the CPU time that running processes have used."""
    total = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            used = process.cpu_times()
            total += used.user + used.system
    return total
