"""The notebook in a real JupyterLab: cells run, figures move, pause and step work from cell and button."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from driving import until

from benchmarks.dashboard import free_port

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "01_first_look.ipynb"
RACE = ROOT / "notebooks" / "04_race.ipynb"
VIEWS = {"banana": 4, "fit": 4}
# JupyterLab asks the network for news and updates unless it is told not to.
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}
FLAGS = [
    "--no-browser",
    "--allow-root",
    "--ip=127.0.0.1",
    "--LabApp.extension_manager=readonly",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
]
# A number for each figure in a live view that changes with what is drawn in it.
FIGURES = """(live) => {
  const sums = {}
  for (const view of Bokeh.index) {
    if (view.model.type !== "Figure" || !live.contains(view.el)) { continue }
    let sum = 0, place = 1
    for (const source of view.model.tags) {
      for (const value of source.data.packed ?? []) {
        place += 1
        if (isFinite(value)) { sum += value * (place % 97) }
      }
    }
    sums[view.model.name] = sum
  }
  return sums
}"""


class Served:
    """A JupyterLab of a test's own."""

    def __init__(self, folder: Path) -> None:
        self.root, self.token, self.port = folder / "root", secrets.token_hex(8), free_port()
        self.root.mkdir(parents=True)
        places = {name: folder / name.lower() for name in ("HOME", "IPYTHONDIR")}
        places |= {f"JUPYTER_{name}_DIR": folder / name.lower() for name in ("CONFIG", "DATA", "RUNTIME")}
        places |= {f"JUPYTERLAB_{name}_DIR": folder / name.lower() for name in ("SETTINGS", "WORKSPACES")}
        for name, value in SETTINGS.items():
            path = folder / "settings" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(value))
        command = [sys.executable, "-m", "jupyterlab", *FLAGS, f"--port={self.port}"]
        command += [f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={self.root}"]
        self.log = folder / "log"
        with self.log.open("w") as out:
            environment = os.environ | {name: str(path) for name, path in places.items()}
            child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=ROOT)
        self.process = psutil.Process(child.pid)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}?token={self.token}"

    def notebook(self, path: Path) -> str:
        """The address of a notebook in a workspace of its own: a shared one opens what was open before, too."""
        return self.url(f"lab/workspaces/{path.stem}/tree/{path.name}")

    def wait(self, seconds: float = 60) -> Served:
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.is_running():
            try:
                with urllib.request.urlopen(self.url("api"), timeout=1):
                    return self
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"JupyterLab did not answer:\n{self.log.read_text()}")

    def stop(self) -> None:
        family = [self.process, *self.process.children(recursive=True)]
        self.process.terminate()
        _, alive = psutil.wait_procs(family, timeout=10)
        for process in alive:
            process.kill()
        psutil.wait_procs(alive, timeout=5)


def without_outputs(path: Path) -> str:
    """Return a notebook as it is before its first execution."""
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    return json.dumps(notebook)


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve a JupyterLab that has nothing but the notebooks."""
    served = Served(tmp_path_factory.mktemp("jupyter"))
    try:
        for path in (NOTEBOOK, RACE):
            (served.root / path.name).write_text(without_outputs(path))
        yield served.wait()
    finally:
        served.stop()


class Lab:
    """A notebook in JupyterLab as a user sees it."""

    def __init__(self, page: Any, notebook: Path = NOTEBOOK) -> None:
        self.page = page
        cells = json.loads(notebook.read_text())["cells"]
        self.places = {cell["id"]: place for place, cell in enumerate(cells)}

    def open(self, url: str) -> Lab:
        self.page.goto(url)
        # A cell that is run before the notebook has its kernel is asked which kernel it wants.
        self.page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)
        return self

    def cell(self, name: str) -> Any:
        return self.page.locator(".jp-Notebook .jp-Cell").nth(self.places[name])

    def execute(self, name: str) -> None:
        """Run a cell; a notebook that was just opened may not take the first key."""
        prompt = self.cell(name).locator(".jp-InputArea-prompt")
        before = prompt.inner_text()

        def taken() -> bool:
            prompt.click()
            self.page.keyboard.press("Control+Enter")
            self.page.wait_for_timeout(300)
            return prompt.inner_text() != before

        until(taken, 10, f"the cell {name} did not run")

    def run(self, name: str) -> str:
        """Run a cell and return its last line of output, once it has one."""
        self.execute(name)
        output = self.cell(name).locator(".jp-OutputArea-executeResult")
        output.wait_for(timeout=60_000)
        return output.inner_text().splitlines()[-1]

    def live(self, name: str) -> Any:
        return self.cell(name).locator(".bnnviz-live")

    def painted(self, name: str) -> int:
        return int(self.live(name).get_attribute("data-painted") or 0)

    def figures(self, name: str) -> dict[str, float]:
        return self.live(name).evaluate(FIGURES)

    def steps(self, name: str) -> int:
        text = self.live(name).locator(".line span", has_text="steps").inner_text()
        return int(text.split(" ")[0].replace(",", ""))

    def press(self, name: str, label: str) -> None:
        self.live(name).get_by_role("button", name=label, exact=True).click()

    def rests(self, name: str) -> bool:
        """Whether nothing is drawn for a while, once the frames that were under way have come."""

        def still() -> bool:
            before = self.painted(name), self.figures(name)
            self.page.wait_for_timeout(800)
            return before == (self.painted(name), self.figures(name))

        return until(still, 8, "the figures did not rest")


def test_the_notebook_lives_in_jupyterlab(jupyter: Served, open_page: Callable[..., Any]) -> None:
    lab = Lab(open_page()).open(jupyter.notebook(NOTEBOOK))

    # Figures appear and move.
    lab.execute("banana")
    until(lambda: lab.live("banana").count() and lab.painted("banana") > 0, 60, "no figure was painted")
    before = lab.figures("banana")
    lab.press("banana", "Play")
    assert len(before) == VIEWS["banana"]

    def moved() -> bool:
        now = lab.figures("banana")
        return all(now[name] != before[name] for name in ("trajectory", "thinning"))

    until(moved, 5, "the figures did not move")
    canvas = lab.live("banana").locator("canvas[data-box]")
    assert canvas.count() == VIEWS["banana"]

    # From cells: pause, exactly one step, an event. Every cell is answered, so the kernel is free.
    paused = int(lab.run("pause"))
    assert lab.rests("banana")
    assert lab.steps("banana") == paused
    seen = lab.painted("banana")
    assert int(lab.run("step")) == paused + 1
    until(lambda: lab.steps("banana") == paused + 1, 5, "the step was not shown")
    assert lab.painted("banana") > seen
    event = int(lab.run("event"))
    assert event > paused + 1

    # From buttons.
    until(lambda: lab.steps("banana") == event, 5, "the event was not shown")
    lab.press("banana", "Step proposal")
    until(lambda: lab.steps("banana") == event + 1, 5, "the button made no step")
    assert lab.rests("banana")
    assert lab.steps("banana") == event + 1
    lab.press("banana", "Play")
    until(lambda: lab.steps("banana") > event + 20, 20, "it did not play")
    lab.press("banana", "Pause")
    assert lab.rests("banana")

    # The rest of the notebook, down to the last cell.
    lab.execute("slow")
    lab.cell("change").locator(".jp-InputArea-prompt").click()
    lab.page.get_by_role("menuitem", name="Run", exact=True).click()
    lab.page.get_by_role("menuitem", name="Run Selected Cell and All Below").click()
    until(lambda: lab.cell("arviz").locator(".jp-OutputArea-executeResult").count(), 120, "the last cell did not run")
    errors = lab.page.locator("[data-mime-type='application/vnd.jupyter.error']").all_inner_texts()
    assert not errors
    # Figures out of sight wait until they are looked at.
    lab.live("fit").scroll_into_view_if_needed()
    until(lambda: lab.live("fit").locator(".line", has_text="done").count(), 10, "the end was not shown")
    assert lab.rests("fit")
    drawn = lab.figures("fit")
    assert len(drawn) == VIEWS["fit"]
    assert all(drawn.values())
