"""The examples of README and documentation run as they stand there, in a folder with the files that they name."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from core_only import ROOT

import bnnviz
from benchmarks.dashboard import free_port

# It needs an exported file: its Python is read and not run.
ELSEWHERE = "docs/manual/tables.md"
#: Words of commands that need a GPU or a download.
ABSENT = re.compile(r"--device cuda|\bmnist\b")
SERVES = re.compile("dashboard is at|Teacher:|address has a token")


#: Pages of contributors have tests of their own, and so have tutorials.
TEXTS = ["README.md"] + sorted(
    str(page.relative_to(ROOT))
    for page in (ROOT / "docs").rglob("*.md")
    if page.parent.name not in ("contributing", "tutorials")
)


def blocks(page: str, language: str = "python") -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[str]:
    """Return the commands of bnnviz; those that install and that start other programs are not run."""
    lines = "".join(blocks(page, "sh")).replace("\\\n", "").splitlines()
    return [line for line in lines if line.startswith("bnnviz ") and not ABSENT.search(line)]


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Yield what the examples may use by name; runs among it are stopped."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["rooms", "area"])
    frame["price"] = frame["rooms"] - 0.5 * frame["area"] + 0.1 * rng.normal(size=60)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path / "home"))
    frame.to_csv("mine.csv", index=False)
    frame.to_csv("houses.csv", index=False)
    frame.drop(columns="price").head(9).to_csv("new.csv", index=False)
    known = {"X": frame[["rooms", "area"]], "y": frame["price"], "X_new": frame[["rooms", "area"]].head(9)}
    yield known
    for value in known.values():
        if isinstance(value, bnnviz.Run):
            value.stop()


@pytest.mark.slow
@pytest.mark.timeout(7200)  # a page of commands takes up to an hour on two busy cores
@pytest.mark.parametrize("page", [page for page in TEXTS if commands(page)])
def test_commands_run(page: str, names: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    Path("sweep.yaml").write_text("".join(blocks("docs/manual/clusters.md", "yaml")), encoding="utf-8")
    home = {
        "HOME": str(tmp_path / "home"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("BNNVIZ_", "XDG_"))}
    for line in commands(page):
        if line.startswith("bnnviz serve"):
            serves(line.partition("#")[0], kept | home)
        else:
            ended = subprocess.run(["bash", "-c", line], env=kept | home, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, f"{line}\n{ended.stdout}{ended.stderr}"


def serves(line: str, environment: dict[str, str]) -> None:
    """Serve on a free port of this machine alone, until the dashboard has printed its address."""
    command = ["bash", "-c", f"exec {line} --no-show --address 127.0.0.1 --port {free_port()}"]
    log = Path("serve.log")
    with (
        log.open("w+", encoding="utf-8") as out,
        subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=out, stderr=out, text=True, start_new_session=True
        ) as process,
    ):
        process.stdin.write("a long password\n" * 2)
        process.stdin.flush()
        while process.poll() is None and not SERVES.search(log.read_text(encoding="utf-8")):
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
    assert SERVES.search(log.read_text(encoding="utf-8")), log.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", [page for page in TEXTS if blocks(page) and page != ELSEWHERE])
def test_examples_run(page: str, names: dict[str, Any]) -> None:
    shapes: dict[str, Any] = {}
    for number, block in enumerate(blocks(page)):
        before = names.get("run")
        exec(compile(block, f"{page}, block {number + 1}", "exec"), names)
        if names.get("run") is not before and before is not None:
            before.stop()
        if page.endswith("densities.md"):
            shapes |= {name: values.shape for name, values in names["run"].parameters().items()}
    if page.endswith("densities.md"):
        of_vectors = {"w": (4, 200, 3), "theta": (4, 200, 8), "z": (4, 200, 8), "x": (4, 200, 3)}
        assert shapes == of_vectors | dict.fromkeys(("mu", "tau"), (4, 200))
    if page == "README.md":
        assert Path("run.nc").exists()


def test_examples_for_an_exported_file_are_python() -> None:
    for block in blocks(ELSEWHERE):
        ast.parse(block)
