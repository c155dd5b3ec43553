"""How the server starts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest


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
