"""Who may use a cluster of this machine: whoever has its certificate, and nobody else."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bnnviz.engine.cluster.backend import Backend
from bnnviz.engine.cluster.local_cluster import scheduler_address
from bnnviz.errors import BnnvizError

distributed = pytest.importorskip("distributed")

SECONDS = 3.0
KINDS = {"Scheduler", "Worker", "Nanny"}


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BNNVIZ_HOME", str(tmp_path_factory.mktemp("home")))
        patch.delenv("BNNVIZ_SCHEDULER", raising=False)
        with Backend.connect(workers=1) as made:
            yield made


def family() -> list[psutil.Process]:
    return [psutil.Process(), *psutil.Process().children(recursive=True)]


def ports() -> list[int]:
    """Return the ports on which this process and its children listen."""
    found = [one for process in family() for one in process.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    assert {one.laddr.ip for one in found} == {"127.0.0.1"}
    return sorted({one.laddr.port for one in found})


async def call(address: str, security: Any) -> str:
    """Return the kind of Dask server at an address, or the error of the call."""
    try:
        async with distributed.rpc(
            address, connection_args=security.get_connection_args("client"), timeout=SECONDS
        ) as remote:
            return (await asyncio.wait_for(remote.identity(), SECONDS))["type"]
    except Exception as error:  # noqa: BLE001
        return type(error).__name__


def answers(scheme: str, security: Any) -> set[str]:
    async def all_ports() -> set[str]:
        return set(await asyncio.gather(*(call(f"{scheme}://127.0.0.1:{port}", security) for port in ports())))

    return asyncio.run(all_ports())


def test_only_a_client_with_the_certificate_is_answered(backend: Backend) -> None:
    assert answers("tls", backend._cluster.security) >= KINDS
    for scheme, security in (
        ("tcp", distributed.Security()),
        ("tls", distributed.Security.temporary()),
        ("tls", distributed.Security(require_encryption=True)),
    ):
        assert not KINDS & answers(scheme, security)


def test_the_key_is_on_no_command_line_and_in_no_environment(backend: Backend) -> None:
    secret = backend._cluster.security.tls_client_key.split()[5]
    for process in family():
        assert secret not in " ".join(process.cmdline())
        assert secret not in " ".join(process.environ().values())


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root becomes another user")
def test_another_user_of_this_machine_runs_nothing(backend: Backend) -> None:
    address = backend.client.scheduler.address.replace("tls://", "tcp://")
    script = (
        "import distributed, os\n"
        f"client = distributed.Client({address!r}, timeout={SECONDS})\n"
        "print('ran as', client.submit(os.geteuid).result(timeout=10))\n"
    )
    become = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-c"]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": os.pathsep.join(sys.path)}
    how = {"env": environment, "capture_output": True, "text": True, "cwd": "/", "timeout": 60}
    if subprocess.run([*become, "import distributed"], **how).returncode:
        pytest.skip("the other user cannot read this environment")
    done = subprocess.run([*become, script], **how)
    assert "ran as" not in done.stdout and done.returncode


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense"])
def test_an_unreachable_scheduler_is_named(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BNNVIZ_INSECURE", "1")
    with pytest.raises(BnnvizError, match=address) as refused:
        Backend.connect(address)
    assert refused.value.field == "scheduler"


def test_a_scheduler_without_tls_is_used_only_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BNNVIZ_INSECURE", raising=False)
    with pytest.raises(BnnvizError, match="--insecure"):
        Backend.connect("tcp://127.0.0.1:9")
    monkeypatch.setenv("BNNVIZ_INSECURE", "1")
    with pytest.raises(BnnvizError, match="There is no Dask scheduler"):
        Backend.connect("tcp://127.0.0.1:9")


def test_a_scheduler_file_gives_the_address(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text('{"type": "Scheduler", "address": "tls://host:8786"}')
    assert scheduler_address(str(file)) == "tls://host:8786"
    file.write_text("[]")
    with pytest.raises(BnnvizError, match="scheduler.json"):
        scheduler_address(str(file))
