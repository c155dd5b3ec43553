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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from bnnviz.errors import BnnvizError

HOST = "127.0.0.1"
_START_S = 60.0  # until the server answers
_END_S = 10.0  # until a process ends by itself
# `make serve` does not pass on the second one either: otherwise Python would cache no bytecode.
_NOT_PASSED_ON = {"BNNVIZ_SCHEDULER", "PYTHONDONTWRITEBYTECODE"}


class Dashboard:
    """A dashboard in its own process: the address of its page, its output, and the certificates of its cluster."""

    def __init__(self, process: psutil.Popen, url: str, log: Path, security: Any) -> None:
        self.process, self.url, self.log, self.security = process, url, log, security
        self.begun = time.time()
        self._family = {process}

    def family(self) -> list[psutil.Process]:
        """Return the page's process and all running processes that it has started."""
        with suppress(psutil.NoSuchProcess):  # kept: children of a process that has ended are lost
            self._family.update(self.process.children(recursive=True))
        return [process for process in self._family if process.is_running()]

    def workers(self) -> list[psutil.Process]:
        """Return the worker processes of the page's process."""
        return workers_of(self.process)

    def torch_libraries(self) -> list[str]:
        """Return the libraries of torch that the page's process has loaded."""
        paths = {Path(entry.path) for entry in self.process.memory_maps(grouped=True)}
        return sorted(path.name for path in paths if "libtorch" in path.name or "torch" in path.parts)

    def stop(self) -> None:
        """End it as Ctrl-C does, and kill whatever is left."""
        family = self.family()
        if self.process.is_running():
            self.process.terminate()
        _, alive = psutil.wait_procs(family, timeout=_END_S)
        end(alive)


def start_dashboard(
    log: Path, env: dict[str, str] | None = None, options: Sequence[str] = ("--no-token",), timeout: float = _START_S
) -> Dashboard:
    """Run ``bnnviz serve`` on a free port with its own workers, and wait until it answers."""
    from distributed import Security

    port, security = free_port(), Security.temporary()
    command = [sys.executable, "-m", "bnnviz", "serve", "--port", str(port), "--no-show", *options]
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as out:
        environment |= tls_environment(security) | (env or {})
        child = psutil.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment)
    # No slash at the end: the address itself is the page, without a redirect.
    served = Dashboard(child, f"http://{HOST}:{port}/app", log, security)
    while True:
        with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return served
        late = time.time() - served.begun > timeout
        if late or child.poll() is not None:
            served.stop()
            what = f"did not answer within {timeout:g} s" if late else f"ended with code {child.returncode}"
            raise BnnvizError(f"The dashboard {what} ({log.read_text().strip() or 'without output'}).")
        time.sleep(0.02)


@contextmanager
def dashboard() -> Iterator[Dashboard]:
    """Serve the dashboard with a token."""
    token = secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory() as folder:
        served = start_dashboard(Path(folder) / "server.log", {"BNNVIZ_TOKEN": token}, options=())
        served.url += f"?token={token}"
        try:
            yield served
        finally:
            served.stop()


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def tls_environment(security: Any) -> dict[str, str]:
    """Return environment variables that configure Dask with these certificates."""
    values = {"REQUIRE_ENCRYPTION": "True", "TLS__CA_FILE": security.tls_ca_file}
    for role, part in itertools.product(("client", "scheduler", "worker"), ("cert", "key")):
        values[f"TLS__{role}__{part}".upper()] = getattr(security, f"tls_{role}_{part}")
    return {f"DASK_DISTRIBUTED__COMM__{name}": value for name, value in values.items()}


def command_of(process: psutil.Process) -> str:
    """Return the command line of a process; empty for one that has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def workers_of(process: psutil.Process) -> list[psutil.Process]:
    """Return the worker processes that a process has started."""
    return [child for child in process.children(recursive=True) if "spawn_main" in command_of(child)]


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
