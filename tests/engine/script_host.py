"""Run scripts, each as a process of its own that ends as a script ends, without importing torch for each anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple, Self

_ROOT = Path(__file__).parents[2]
_SECONDS = 170  # after which a script is ended
# The host has one thread and has computed nothing, so a fork of it is as good as a new process.
_HOST = f"""
import json, os, signal, sys
import arviz_stats, numpy, psutil, scipy.stats, torch, zarr
import tests.engine.interrupted_scripts
torch.set_num_threads(1)
for line in sys.stdin:
    script, folder = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    raise SystemExit
signal.alarm({_SECONDS})
os.chdir(folder)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for number, name in ((1, "out"), (2, "err")):
    os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
exec(compile(script, "script", "exec"))
"""


class Ended(NamedTuple):
    """How a script ended: its exit code, minus a signal's number, what it printed as JSON, and its errors."""

    code: int
    reported: dict[str, Any]
    errors: str


class ScriptHost:
    """A process that runs scripts, one after another."""

    def __init__(self) -> None:
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        environment = os.environ | {"PYTHONPATH": path}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _HOST], stdin=-1, stdout=-1, text=True, cwd=_ROOT, env=environment
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, script: str, folder: Path) -> Ended:
        """Run a script in a folder to its end."""
        print(json.dumps([script, str(folder)]), file=self._process.stdin, flush=True)
        code = int(self._process.stdout.readline())
        printed = (folder / "out").read_text().splitlines()
        return Ended(code, json.loads(printed[-1]) if printed else {}, (folder / "err").read_text())
