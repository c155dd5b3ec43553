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
from unittest.mock import Mock

import pytest
from bokeh.document import Document
from bokeh.server.views.ws import WSHandler
from panel.io import document as panel_document

from bnnviz_app import bokeh_fixes


async def test_what_is_written_while_the_browser_takes_something_else_is_sent_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[str] = []
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
