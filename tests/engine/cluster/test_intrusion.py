"""Who is let into a cluster of this machine: whoever has its key, and nobody else."""

from __future__ import annotations

import asyncio
import os
import pickle
import re
import shutil
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bnnviz.engine.cluster import frame_socket
from bnnviz.engine.cluster.backend import Backend
from bnnviz.engine.cluster.certificates import FILE_VARIABLE, ClusterKey
from bnnviz.engine.cluster.frame_socket import FrameConnection, FrameServer, Question, SocketAddress
from bnnviz.engine.cluster.jobs.scheduling import Cluster
from bnnviz.engine.cluster.loop import live_loop
from bnnviz.errors import BnnvizError

distributed = pytest.importorskip("distributed")
pytest.importorskip("cryptography")

SECONDS = 3.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BNNVIZ_HOME", str(folder))
        patch.delenv("BNNVIZ_SCHEDULER", raising=False)
        yield folder


@pytest.fixture(scope="module")
def backend(home: Path) -> Iterator[Backend]:
    with Backend.connect(workers=1) as made:
        yield made


def family() -> list[psutil.Process]:
    return [psutil.Process(), *psutil.Process().children(recursive=True)]


def ports() -> list[int]:
    """Return the ports that this process and its children listen at."""
    found = {
        connection.laddr.port
        for process in family()
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    return sorted(found)


async def call(address: str, security: Any) -> str:
    """Ask a port of Dask's who it is; return its kind, or why it does not say."""
    arguments = security.get_connection_args("client")
    try:
        async with distributed.rpc(address, connection_args=arguments, timeout=SECONDS) as remote:
            return (await asyncio.wait_for(remote.identity(), SECONDS))["type"]
    except Exception as error:  # noqa: BLE001
        return type(error).__name__


async def ask_all(found: list[int], scheme: str, security: Any) -> set[str]:
    return set(await asyncio.gather(*(call(f"{scheme}://127.0.0.1:{port}", security) for port in found)))


@pytest.fixture(params=["dashboard", "jobs"])
def key(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ClusterKey:
    """Start a cluster as the dashboard does, or as sweeps, experiments and benchmarks do; return its key."""
    if request.param == "dashboard":
        return request.getfixturevalue("backend")._cluster._key
    made = ClusterKey.make()
    made.write(tmp_path / "key.pem")
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "key.pem"))
    cluster = Cluster(workers=1)
    request.addfinalizer(cluster.close)
    return made


def test_no_port_answers_who_has_not_the_key(key: ClusterKey) -> None:
    found = ports()
    kinds = {"Scheduler", "Worker", "Nanny"}
    assert kinds <= asyncio.run(ask_all(found, "tls", key.security())), "who has the key is let in"
    for scheme, security in (
        ("tcp", distributed.Security()),
        ("tls", ClusterKey.make().security()),
        ("tls", distributed.Security(require_encryption=True)),
    ):
        assert not kinds & asyncio.run(ask_all(found, scheme, security))
    for port in found:
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
            line.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            line.settimeout(SECONDS)
            with pytest.raises((TimeoutError, ConnectionResetError)):
                answer = line.recv(100)
                assert not answer.startswith(b"HTTP"), f"a page of Dask's is at {port}"
                raise ConnectionResetError


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root becomes another user")
def test_another_user_of_this_machine_runs_nothing(backend: Backend) -> None:
    """As it was tried: a plain client of the scheduler on its loopback port runs a function as the owner."""
    address = backend.client.scheduler.address.replace("tls://", "tcp://")
    script = (
        "import distributed, os\n"
        f"client = distributed.Client({address!r}, timeout={SECONDS})\n"
        "print('ran as', client.submit(os.geteuid).result(timeout=10))\n"
    )
    become = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [*become, sys.executable, "-c"]
    able = subprocess.run([*command, "import distributed"], env=environment, capture_output=True, cwd="/", timeout=60)
    if able.returncode:
        pytest.skip("the other user cannot read this environment")
    done = subprocess.run([*command, script], env=environment, capture_output=True, text=True, cwd="/", timeout=60)
    assert "ran as" not in done.stdout, done.stdout
    assert done.returncode != 0 and re.search("OSError|CommClosedError", done.stderr), done.stderr


def test_the_key_is_on_no_command_line_and_in_no_environment(backend: Backend) -> None:
    secret = backend._cluster._key.key.split()[5]
    for process in family():
        assert secret not in " ".join(process.cmdline())
        assert secret not in " ".join(process.environ().values())


def test_sockets_with_a_path_are_this_users(backend: Backend) -> None:
    """Those of frames, and those of the process that workers are forked from."""
    assert all(backend.client.run(lambda: live_loop().socket is not None).values())
    held = {link for process in family() for link in links(process.pid)}
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    listening = [row for row in rows if len(row) == 8 and int(row[3], 16) & 0x10000]
    mine = [row[7] for row in listening if f"socket:[{row[6]}]" in held]
    assert any(path.endswith(frame_socket.SUFFIX) for path in mine)
    for path in mine:
        assert not path.startswith("@"), f"{path} has no owner"
        info, folder = os.stat(path), os.stat(os.path.dirname(path))
        assert info.st_uid == os.getuid() and not stat.S_IMODE(info.st_mode) & 0o077
        assert not stat.S_IMODE(folder.st_mode) & 0o077, f"others look into the folder of {path}"


def links(pid: int) -> list[str]:
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(entry))
        except FileNotFoundError:
            continue
    return found


def test_a_scheduler_without_tls_is_used_only_where_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BNNVIZ_INSECURE", raising=False)
    for refused in (lambda: Backend.connect("tcp://127.0.0.1:9"), lambda: Cluster("127.0.0.1:9")):
        with pytest.raises(BnnvizError, match="has no TLS.*run code as you.*--insecure") as caught:
            refused()
        assert caught.value.field == "scheduler"
    with pytest.raises(BnnvizError, match="There is no Dask scheduler at tcp://127.0.0.1:9"):
        Backend.connect("tcp://127.0.0.1:9", insecure=True)
    monkeypatch.setenv("BNNVIZ_INSECURE", "1")
    with pytest.raises(BnnvizError, match="There is no Dask scheduler"):
        Cluster("tcp://127.0.0.1:9")


# --- the key's file


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    made = ClusterKey.make()
    made.write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ClusterKey.read(path) == made
    with pytest.raises(FileExistsError):
        made.write(path)
    path.chmod(0o640)
    with pytest.raises(BnnvizError, match="is not yours alone; take it from others by chmod 600"):
        ClusterKey.read(path)
    path.chmod(0o600)
    path.write_text("nothing")
    with pytest.raises(BnnvizError, match="holds no key"):
        ClusterKey.read(path)
    with pytest.raises(BnnvizError, match="cannot be read"):
        ClusterKey.read(tmp_path / "none")


def test_without_cryptography_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(BnnvizError, match=r"cryptography; install it with: pip install 'bnnviz\[cluster\]'"):
        ClusterKey.make()


# --- the socket of frames

QUESTION = Question("a", ["trace"], -1)


def sent(line: socket.socket, message: bytes) -> bytes:
    line.sendall(struct.pack("!I", len(message)) + message)
    line.settimeout(SECONDS)
    return line.recv(1000)


@pytest.mark.parametrize(
    "message",
    [
        b'{"run": "a", "want": ["trace"], "seen": -1}',
        b'{"nonce": "a", "proof": "' + b"0" * 64 + b'"}',
        b'{"nonce": 1, "proof": 2}',
        b"[" * 100_000,
        b"null",
    ],
)
def test_a_caller_without_the_key_is_hung_up_on(tmp_path: Path, message: bytes) -> None:
    server = FrameServer(tmp_path)
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(server.path))
            line.sendall(struct.pack("!I", len(message)) + message)
            asked = [question for _ in range(3) for question in server.poll(0.1)]
            assert asked == []
            line.settimeout(SECONDS)
            assert line.recv(1000) == b""
    finally:
        server.close()


def test_a_page_with_the_key_is_answered(tmp_path: Path) -> None:
    server = FrameServer(tmp_path)

    async def page() -> bytes:
        line = await FrameConnection.to(SocketAddress(str(server.path), server.key))
        asking = asyncio.ensure_future(line.ask(QUESTION))
        while not asking.done():
            for caller, question in server.poll(0.01):
                assert question == QUESTION
                caller.answer(b"a frame")
            await asyncio.sleep(0)
        line.close()
        return asking.result()

    try:
        assert asyncio.run(page()) == b"a frame"
    finally:
        server.close()


class Trap:
    """Raises where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("what an impostor has sent was unpickled",)


def test_nothing_of_an_impostor_is_read(tmp_path: Path) -> None:
    """On a node where somebody else listens at the path that a worker of another node has told."""
    path = tmp_path / "worker.sock"
    data = pickle.dumps(Trap())

    async def impostor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for content in (b"0" * 64, data):
            writer.write(struct.pack("!I", len(content)) + content)

    async def main() -> None:
        server = await asyncio.start_unix_server(impostor, str(path))
        line = await FrameConnection.to(SocketAddress(str(path), b"k" * 32))
        with pytest.raises(EOFError):
            await line.ask(QUESTION)
        line.close()
        server.close()

    asyncio.run(main())
