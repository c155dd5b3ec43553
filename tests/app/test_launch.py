"""How the server starts: its route and options, its workers, and the fixes of Bokeh and Panel."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from bokeh.document import Document
from bokeh.server.views.ws import WSHandler
from panel.io import document as panel_document

from bnnviz.errors import BnnvizError
from bnnviz_app import bokeh_fixes, launch, server


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the applications and the options of servers, which are not run."""
    servers: list[tuple[dict[str, Any], dict[str, Any]]] = []

    class Server:
        port, address, prefix, _tornado = 5006, None, "", MagicMock(prefix="")

        def __init__(self, applications: dict[str, Any], **options: Any) -> None:
            servers.append((applications, options))

        def run_until_shutdown(self) -> None:
            pass

    monkeypatch.setattr("bokeh.server.server.Server", Server)
    # The command sets up the process's log, which is pytest's here.
    monkeypatch.setattr("bokeh.command.subcommands.serve.basicConfig", lambda **options: None)
    monkeypatch.setattr("bokeh.command.subcommands.serve.logging", SimpleNamespace(getLogger=lambda name: Mock()))
    monkeypatch.setenv("DASK_DISTRIBUTED__LOGGING__BOKEH", "warning")
    return servers


def test_the_page_is_at_its_route_whatever_its_folder_is_called(launched: list[Any], tmp_path: Path) -> None:
    (tmp_path / "main.py").touch()
    given = list(sys.argv)
    launch.launch(tmp_path, "/app", 5123, "0.0.0.0", secret=None)
    ((applications, options),) = launched
    assert list(applications) == ["/app"]
    assert sys.argv == given
    assert (options["port"], options["address"]) == (5123, "0.0.0.0")
    assert options["unused_session_lifetime_milliseconds"] == launch.SESSION_LIFETIME_MS
    assert options["check_unused_sessions_milliseconds"] == launch.SESSION_CHECK_MS


def test_a_script_that_cannot_be_read_is_a_sentence(launched: list[Any], tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("def")
    with pytest.raises(BnnvizError, match=r"(?s)The dashboard cannot be served: .*Invalid syntax in 'main.py'"):
        launch.launch(tmp_path, "/app", 5123, "127.0.0.1", secret=None)
    assert launched == []


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what was asked of the workers, which are not started."""
    asked: list[str] = []
    monkeypatch.setattr(server, "gc", SimpleNamespace(freeze=lambda: None, enable=lambda: None))
    monkeypatch.setattr(server, "_COMES_S", 0.1)
    monkeypatch.setattr(server.Backend, "connect", lambda: asked.append("connected"))
    monkeypatch.setattr(server.pn.state, "cache", {server.GATE: None})
    return asked


def test_workers_that_were_never_started_are_not_waited_for(started: list[str]) -> None:
    async def leave() -> None:
        server.on_server_loaded(None)
        server.on_server_unloaded(None)
        await asyncio.sleep(0.2)

    asyncio.run(leave())
    assert not started


def test_what_is_written_while_the_browser_takes_something_else_is_sent_too(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []

    async def write() -> None:
        taken = asyncio.get_running_loop().create_future()
        monkeypatch.setattr(panel_document, "_dispatch_msgs", bokeh_fixes._dispatch_all)
        monkeypatch.setattr(panel_document, "dispatch_tornado", lambda connection, msg: sent.append(msg) or [taken])
        document = Document()
        protocol = SimpleNamespace(create=lambda kind, events: events[0])
        connection = Mock(_socket=WSHandler.__new__(WSHandler), protocol=protocol)
        panel_document.schedule_write_events(document, [connection], ["first"])
        await asyncio.sleep(0)
        taken.set_result(None)
        panel_document.schedule_write_events(document, [connection], ["second"])
        await asyncio.sleep(0.05)
        assert document not in panel_document._WRITE_BLOCK, "what comes next would wait, too"

    asyncio.run(write())
    assert sent == ["first", "second"]


def test_panel_serve_opens_the_pages_behind_a_gate(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "panel", "serve", "app", "--port", str(port)]
    environment = os.environ | {"BNNVIZ_HOME": str(tmp_path)}
    root = Path(__file__).parents[2]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(command, cwd=root, env=environment, stdout=log, stderr=subprocess.STDOUT) as server_process,
    ):
        try:
            address = f"http://127.0.0.1:{port}/app"
            for _ in range(600):
                try:
                    status = urllib.request.urlopen(address, timeout=30).status
                    break
                except urllib.error.URLError:
                    time.sleep(0.1)
            assert status == 200
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(urllib.request.Request(address, headers={"Host": "evil.example"}), timeout=30)
        finally:
            server_process.terminate()
