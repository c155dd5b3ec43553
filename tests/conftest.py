"""What the tests share: a browser that forgives nothing, a served dashboard, no process left behind."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import re
import runpy
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from hypothesis import HealthCheck, settings

from benchmarks.chromium import BROWSER_FLAGS, REMEDY, find_chromium
from benchmarks.dashboard import Dashboard, command_of, start_dashboard

# One thread for each process: the tests start worker processes of their own, and two cores are
# shared by all of them. Set before torch is imported anywhere, and inherited by those processes.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Machines are shared and the first example imports torch: how long examples take says nothing. Where the tests decide
# whether a change is taken, the same change meets the same examples.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", settings.get_profile("patient"), derandomize=True)
settings.load_profile("repeatable" if os.environ.get("BNNVIZ_REQUIRE_BROWSER") else "patient")

ROOT = Path(__file__).resolve().parent.parent
# No test asks another machine for anything, nor does a process that it starts.
OFFLINE = ROOT / "tests" / "offline"
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(OFFLINE), os.environ.get("PYTHONPATH")]))
runpy.run_path(str(OFFLINE / "sitecustomize.py"))

ARTIFACTS = ROOT / "tests" / "artifacts"
VIEWPORT = {"width": 1400, "height": 900}


# --- what runs and what is skipped


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the derivatives of perceptrons, so that no test computes with PyTorch because another is first."""
    if not hasattr(session.config, "workerinput") and not session.config.option.collectonly:
        from bnnviz.targets import mlp_native

        mlp_native.library(waits=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of tests/browser (the walk and one of kept runs are quick); skip what lacks data or a GPU."""
    for item in items:
        if item.path.parent.name == "browser":
            item.add_marker(pytest.mark.browser)
            if item.path.name not in ("test_walk.py", "test_kept_runs.py"):
                item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("data") and not os.environ.get("BNNVIZ_DATA"):
            item.add_marker(pytest.mark.skip(reason="BNNVIZ_DATA names no folder of the published data sets"))
        if item.get_closest_marker("gpu") and not _has_gpu():
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


def pytest_collection_finish() -> None:
    """Keep what all tests share out of Python's search for cycles, which a run that ends asks for."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine function in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**given))
    return True


@pytest.fixture(scope="session")
def published_folder() -> str:
    """Return the folder of the published data sets."""
    return os.environ["BNNVIZ_DATA"]


#: Where everything must be shown a missing compiler fails the tests; elsewhere they are skipped.
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "clang++"))) and not os.environ.get("BNNVIZ_REQUIRE_BROWSER"),
    reason="needs a C++ compiler",
)


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


@pytest.fixture(scope="session", autouse=True)
def no_process_left() -> Iterator[None]:
    """Fail the session if a worker, a server or a browser outlives the tests that started it."""
    yield
    left = psutil.Process().children(recursive=True)
    # The tracker of multiprocessing's semaphores lives as long as this process, by design.
    left = [process for process in left if "resource_tracker" not in command_of(process)]
    _, alive = psutil.wait_procs(left, timeout=5)
    names = [f"{process.pid}: {command_of(process)[:120]}" for process in alive]
    for process in alive:
        process.kill()
    assert not names, "processes outlived the tests:\n" + "\n".join(names)


# --- the dashboard, served as a user serves it

# A shell has its jobs in the background ignore Ctrl-C, and so would the servers that are started here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Dashboard]]:
    """Return ``serve(env={...})``, which serves a dashboard of the test's own; all end with the test."""
    running: list[Dashboard] = []

    def serve(env: dict[str, str] | None = None, **how: Any) -> Dashboard:
        served = start_dashboard(tmp_path / f"server-{len(running)}.log", env=env, **how)
        running.append(served)
        return served

    yield serve
    for served in running:
        served.stop()


@pytest.fixture(scope="module")
def own_dashboard(request: pytest.FixtureRequest) -> Iterator[Dashboard]:
    """Serve a dashboard for the tests of one module."""
    served = start_dashboard(ARTIFACTS / f"{Path(request.node.name).stem}-server.log")
    yield served
    served.stop()


@pytest.fixture(scope="session")
def dashboard() -> Iterator[Dashboard]:
    """Serve the dashboard of all modules."""
    served = start_dashboard(ARTIFACTS / f"server-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}.log")
    yield served
    served.stop()


# --- the browser


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of a Chromium; without one skip, or fail where a browser is required."""
    path = find_chromium()
    if path is None:
        sentence = f"no Chromium found: {REMEDY}"
        if os.environ.get("BNNVIZ_REQUIRE_BROWSER") == "1":
            pytest.fail(sentence)
        pytest.skip(sentence)
    return path


# A module at a time: Playwright keeps an event loop running in the main thread as long as it
# lives, and no other test could run one of its own.
@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """Run one headless Chromium for the tests of a module."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=BROWSER_FLAGS)
        yield running
        running.close()


def _is_local(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("data", "blob", "about", "file") or parts.hostname == "127.0.0.1"


class Watch:
    """What went wrong on the pages of one test."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def attach(self, page: Any) -> None:
        """Note every error of a page and every request that leaves this machine."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"uncaught: {error}"))
        page.on("request", lambda request: self._request(request.url))
        page.on("websocket", lambda socket: self._request(socket.url))
        page.on("crash", lambda page: self.problems.append(f"crashed: {page.url}"))

    def allow(self, pattern: str) -> None:
        """Drop the problems so far that match: for a test that breaks something on purpose."""
        self.problems = [problem for problem in self.problems if not re.search(pattern, problem)]

    def _console(self, message: Any) -> None:
        if message.type == "error":
            self.problems.append(f"console: {message.text} ({message.location.get('url', '')})")

    def _request(self, url: str) -> None:
        if not _is_local(url):
            self.problems.append(f"left 127.0.0.1: {url}")


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Fail the test on anything that went wrong on one of its pages."""
    watching = Watch()
    yield watching
    assert not watching.problems, "in the browser:\n" + "\n".join(watching.problems)


@pytest.fixture
def open_page(browser: Any, watch: Watch, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a watched page in a context of its own, with options of ``new_context``."""
    contexts = []

    def open_page(url: str | None = None, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": VIEWPORT, **options})
        contexts.append(context)
        page = context.new_page()
        watch.attach(page)
        if url is not None:
            page.goto(url)
        return page

    yield open_page
    pages = [page for context in contexts for page in context.pages]
    if getattr(request.node, "failed", False):
        for number, page in enumerate(pages):
            save_screenshot(page, f"failed-{request.node.name}-{number}")
    for context in contexts:
        context.close()


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Any:
    """Return one watched, empty page of 1400x900."""
    return open_page()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """Note on a test that it failed, so that its pages are photographed before they close."""
    report = yield
    item.failed = getattr(item, "failed", False) or report.failed
    return report


def save_screenshot(page: Any, name: str) -> Path:
    """Keep a picture of a page under tests/artifacts and return its path."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    path = ARTIFACTS / (re.sub(r"[^\w.-]+", "-", name) + ".png")
    page.screenshot(path=path)
    return path


# --- pages without a server


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Give pages a document and a backend that never comes."""
    import panel as pn
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from bnnviz_app.session import Session

    monkeypatch.setattr(Session, "open", lambda self: None)
    monkeypatch.setitem(pn.state.cache, "backend", Future())
    with set_curdoc(Document()) as doc:
        yield doc
