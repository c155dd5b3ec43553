"""Every way of ending while a live run is recorded: no process stays, nothing that was on the disk is lost.

`docs/security.md` has the table that this fills in; ``BNNVIZ_REPEATS`` says how often each kill is done.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from benchmarks.dashboard import workers_of
from bnnviz.engine.recording import reader
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.recording.resume import resume
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from tests.driven import until

pytest.importorskip("zarr")
pytest.importorskip("distributed")

REPEATS = int(os.environ.get("BNNVIZ_REPEATS", "1"))
GONE_S = 30.0  # until the last process of a server has ended
SERVER = """
import asyncio, sys, time
from bnnviz.engine.cluster.backend import Backend
from bnnviz.specs.run import Spec

if __name__ == "__main__":
    backend = Backend.connect(workers=1)
    handle = backend.start(Spec.from_json(sys.argv[1]), play=True)
    asyncio.run(handle.scene())
    asyncio.run(handle.command("record", recording="mine"))
    try:
        while True:
            time.sleep(0.1)
            handle.address and handle.state
    except KeyboardInterrupt:
        backend.close()
"""
#: What is ended, by which signal, and whether the run goes on by itself.
ENDINGS = {
    "server, SIGTERM": ("server", signal.SIGTERM, False),
    "server, SIGINT": ("server", signal.SIGINT, False),
    "server, SIGKILL": ("server", signal.SIGKILL, False),
    "worker, SIGKILL": ("worker", signal.SIGKILL, True),
    "worker, SIGTERM": ("worker", signal.SIGTERM, True),
    "worker, SIGINT": ("worker", signal.SIGINT, True),
    "whole group, SIGKILL": ("group", signal.SIGKILL, False),
}


def steps_of(folder: Path) -> int:
    """Return how many steps the recording acknowledges; 0 where it cannot be read yet."""
    try:
        return Recording(folder).progress["steps"] if (folder / reader.PROGRESS).exists() else 0
    except BnnvizError:
        return 0


def chosen(server: psutil.Process, which: str) -> list[psutil.Process]:
    """Return the processes of a server that are to be ended."""
    family = server.children(recursive=True)
    if which == "server":
        return [server]
    if which == "group":
        return [server, *family]
    return workers_of(server)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("repeat", range(REPEATS))
@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_left_and_nothing_is_lost(
    ending: str, repeat: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    which, number, goes_on = ENDINGS[ending]
    folder, rng = tmp_path / "recordings" / "mine", random.Random(f"{ending}{repeat}")
    (tmp_path / "server.py").write_text(SERVER)
    spec = Spec(target="banana", sampler="bps", chains=2, draws=None, warmup=4, seed=repeat)
    command = [sys.executable, str(tmp_path / "server.py"), json.dumps(spec.to_json())]
    with (
        (tmp_path / "statement").open("w") as statement,
        subprocess.Popen(command, stdout=statement, stderr=statement) as process,
    ):
        server = psutil.Process(process.pid)
        family = []
        try:
            until(lambda: steps_of(folder) > 0)
            time.sleep(rng.uniform(0.0, 2.0))
            family = [server, *server.children(recursive=True)]
            ended = chosen(server, which)
            assert ended
            acknowledged = steps_of(folder)
            for one in ended:
                one.send_signal(number)
            if goes_on:
                until(lambda: steps_of(folder) > acknowledged)
                family = [*family, *server.children(recursive=True)]
                server.send_signal(signal.SIGTERM)
            _, left = psutil.wait_procs(family, timeout=GONE_S)
            assert not left, [" ".join(one.cmdline()) for one in left]
        finally:
            for one in [*family, server]:
                if one.is_running():
                    one.kill()
    recording = Recording(folder)
    recording.check()
    assert recording.progress["steps"] >= acknowledged
    again = ViewedRun(spec)
    again.wait_for_compile = False
    again.prepare()
    while again.steps < recording.progress["steps"]:
        again.take(min(16, recording.progress["steps"] - again.steps))
    np.testing.assert_array_equal(resume(folder).draws, again.draws)
    live = tmp_path / "live"
    assert not live.exists() or all(path.stat().st_mode & 0o077 == 0 for path in [live])
