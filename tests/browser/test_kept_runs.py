"""A run belongs to the browser session, which finds it again; a page opens on a recorded run until a user runs it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from driving import Lab, until

from benchmarks.dashboard import free_port
from bnnviz.engine.recording.reader import Recording

log = logging.getLogger(__name__)

OUTAGES = 10
MOST_GROWTH = 20 << 20  # bytes
CHIP = "a[title='Open this run']"
LAB = "?page=lab&target=banana&sampler=bps&play=1"
RACE = "?page=race&target=banana&entries=bps,hmc&budget=100000000&play=1"
WELLS = "?page=wells&moves=2000&play=1&speed=10"


class Line:
    """A line to a port of this machine that can be cut: at both ends, or without the server's knowledge."""

    def __init__(self, port: int, there: int) -> None:
        self._up, self._near, self._far = True, set(), set()
        self._there, self._loop = there, asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        server = asyncio.start_server(self._connect, "127.0.0.1", port)
        asyncio.run_coroutine_threadsafe(server, self._loop).result(10)

    def cut(self, seconds: float, both: bool = True) -> None:
        """Break all connections, and accept none for a while."""
        self._up = False
        self._loop.call_soon_threadsafe(self._abort, both)
        time.sleep(seconds)
        self._up = True

    def _abort(self, both: bool) -> None:
        for writer in self._near | (self._far if both else set()):
            writer.transport.abort()

    async def _connect(self, reader: Any, writer: Any) -> None:
        if not self._up:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._there)
        self._near.add(writer)
        self._far.add(far_writer)
        asyncio.ensure_future(self._pass_on(reader, far_writer))
        await self._pass_on(far_reader, writer)

    async def _pass_on(self, reader: Any, writer: Any) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
            writer.close()


def playing(open_page: Callable[..., Any], url: str, least: int = 5, query: str = LAB) -> Lab:
    lab = Lab(open_page(f"{url}{query}")).ready()
    until(lambda: lab.number("step") >= least, 60, "it does not play")
    return lab


def reaches(lab: Lab, step: float) -> None:
    lab.ready()
    until(lambda: lab.number("step") >= step, 60, f"the run is not at step {step:g}")


def test_reload_back_and_the_chip_find_the_run(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = Lab(open_page(dashboard.url + LAB))
    lab.page.reload()  # before its run has begun
    reaches(lab, 20)
    run, step = lab.run(), lab.number("step")
    lab.page.reload()
    reaches(lab, step)
    assert lab.run() == run
    lab.page.goto(f"{dashboard.url}?page=papers")
    lab.page.locator(CHIP).wait_for(timeout=30_000)
    lab.page.go_back()
    reaches(lab, step)
    assert lab.run() == run
    lab.page.goto(f"{dashboard.url}?page=papers")
    lab.page.locator(CHIP).click(timeout=30_000)
    reaches(lab, step)
    assert lab.run() == run
    lab.page.goto(f"{dashboard.url}?page=papers")
    lab.press("End this run")
    until(lambda: not lab.page.locator(CHIP).is_visible(), 30, "the run was not ended")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_survives_twenty_page_changes(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = playing(open_page, dashboard.url)
    run, step = lab.run(), lab.number("step")
    for _ in range(20):
        lab.page.goto(f"{dashboard.url}?page=papers")
        lab.page.locator(CHIP).wait_for(timeout=30_000)
        lab.page.go_back()
        lab.page.wait_for_selector(".step b", timeout=60_000, state="attached")
    reaches(lab, step)
    assert lab.run() == run


@pytest.mark.slow
def test_a_recording_continues_across_a_reload(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = playing(open_page, dashboard.url)
    lab.press("Record")
    time.sleep(2)
    step = lab.number("step")
    lab.page.reload()
    reaches(lab, step + 1)
    lab.press("Stop recording")


@pytest.mark.slow
@pytest.mark.parametrize(("query", "least"), [(LAB, 200), (RACE, 200), (WELLS, 20)])
def test_a_run_that_ended_without_viewers_resumes_from_its_checkpoint(
    open_page: Callable[..., Any], dashboard: Any, query: str, least: int
) -> None:
    lab = playing(open_page, dashboard.url, least, query)
    left = lab.number("step")
    lab.page.goto(f"{dashboard.url}?page=papers")
    time.sleep(60)
    lab.page.locator(CHIP).click(timeout=30_000)
    lab.ready()
    step = lab.number("step")
    assert step >= left, "it began again"
    reaches(lab, step + 1)


@pytest.mark.slow
def test_a_stalled_server_ends_no_run(serve: Callable[..., Any], open_page: Callable[..., Any], watch: Any) -> None:
    served = serve()
    lab = playing(open_page, served.url)
    run, step = lab.run(), lab.number("step")
    os.kill(served.process.pid, signal.SIGSTOP)
    time.sleep(45)
    os.kill(served.process.pid, signal.SIGCONT)
    until(lambda: lab.number("step") > step, 60, "the run does not go on")
    assert lab.run() == run
    watch.allow("WebSocket|Failed to fetch|ERR_")


@pytest.mark.slow
def test_a_page_finds_its_run_on_a_restarted_server(
    serve: Callable[..., Any], open_page: Callable[..., Any], watch: Any, tmp_path: Path
) -> None:
    home = {"BNNVIZ_HOME": str(tmp_path / "home")}
    served = serve(env=home)
    lab = playing(open_page, served.url, 100)
    lab.press("Pause")
    time.sleep(2)  # a pause is saved
    run, step = lab.run(), lab.number("step")
    family = [served.process, *served.process.children(recursive=True)]
    for process in family:
        process.kill()
    psutil.wait_procs(family, timeout=10)
    port = served.url.rpartition(":")[2].partition("/")[0]
    command = [sys.executable, "-m", "bnnviz", "serve", "--port", port, "--no-show", "--no-token"]
    with subprocess.Popen(command, env={**os.environ, **home}) as again:
        try:
            # The page reloads by itself.
            until(lambda: lab.page.locator("[role=alert]").count() == 0, 90, "the page was not loaded again")
            lab.ready()
            assert lab.run() == run
            assert lab.number("step") == step
            lab.press("Play")
            reaches(lab, step + 1)
            lab.page.close()  # before its server
        finally:
            for process in [*psutil.Process(again.pid).children(recursive=True), psutil.Process(again.pid)]:
                process.kill()
    watch.allow("WebSocket|Failed to fetch|ERR_|Lost|not connected")


@pytest.mark.slow
def test_a_run_goes_on_when_its_worker_is_killed(
    serve: Callable[..., Any], open_page: Callable[..., Any], watch: Any
) -> None:
    served = serve()
    lab = playing(open_page, served.url, 50)
    run, step = lab.run(), lab.number("step")
    for worker in served.workers():
        worker.kill()
    until(lambda: lab.number("step") > step, 120, "the run does not go on")
    assert lab.run() == run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_page_returns_after_each_outage(
    serve: Callable[..., Any], open_page: Callable[..., Any], watch: Any, tmp_path: Path
) -> None:
    front = free_port()
    options = ("--no-token", "--allow-host", f"127.0.0.1:{front}")
    served = serve(env={"BNNVIZ_HOME": str(tmp_path)}, options=options)
    line = Line(front, int(served.url.rpartition(":")[2].partition("/")[0]))
    lab = playing(open_page, f"http://127.0.0.1:{front}/app")
    loads: list[Any] = []
    lab.page.on("load", lambda page: loads.append(page))

    def outage(seconds: float, both: bool = True) -> float:
        """Return how long the page needs to come back to its run."""
        run, step, count = lab.run(), lab.number("step"), len(loads)
        line.cut(seconds, both)
        back = time.monotonic()
        until(lambda: lab.page.wait_for_timeout(50) or len(loads) > count, 60, "the page was not loaded again")
        lab.page.wait_for_selector(".step b", timeout=60_000, state="attached")
        until(lambda: lab.number("step") >= step, 60, "the point in time is lost")
        assert lab.run() == run
        return time.monotonic() - back

    lab.pick("Speed", "10 steps/s")
    lab.diagnose()
    lab.settings()
    took = [outage(seconds, both) for both in (True, False) for seconds in (1, 5)]
    assert lab.page.locator(".area-sidebar:visible").count()
    assert lab.page.get_by_role("combobox", name="Follow").is_visible()
    assert lab.select("Speed").inner_text() == "10 steps/s"
    lab.settings(False)
    lab.press("Pause")
    lab.rest()
    step = lab.number("step")
    took.append(outage(2))
    lab.rest()
    assert lab.number("step") == step
    lab.press("Play")
    lab.press("Record")
    time.sleep(2)
    before = [each.memory_info().rss for each in (served.process, *served.workers())]
    for _ in range(OUTAGES):
        took.append(outage(1))
        time.sleep(1)
    after = [each.memory_info().rss for each in (served.process, *served.workers())]
    assert all(now - then < MOST_GROWTH for then, now in zip(before, after, strict=True))
    step = lab.number("step")
    lab.press("Stop recording")
    until(lambda: lab.button("Menu").is_enabled(), 10, "the menu is closed")
    (folder,) = (tmp_path / "recordings").iterdir()
    until(lambda: Recording(folder).progress["steps"] >= step, 20, "steps are missing")
    Recording(folder).check()
    log.info(f"back after {', '.join(f'{each:.1f}' for each in took)} s")
    watch.allow("WebSocket|Failed to fetch|ERR_|Lost|not connected")


# --- recorded runs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "step"),
    [("race", 30_000), ("population", 1000), ("uncertainty", 4000), ("wells", 10)],
)
def test_a_page_opens_on_a_recorded_run_that_a_button_repeats(
    page: str, step: int, open_page: Callable[..., Any], dashboard: Any
) -> None:
    lab = Lab(open_page(f"{dashboard.url}?page={page}"))
    until(lambda: lab.page.locator(".step b").count() and lab.number("step") >= step, 30, "no recorded run is shown")
    assert sum(1 for drawn in lab.figures().values() if drawn) > 1, "the figures are empty"
    assert lab.run() is None, "a run was started"
    lab.button("Run live").click()
    until(lambda: lab.run() is not None and 0 < lab.number("step") < step, 60, "it does not run")
    assert not lab.button("Run live").is_visible()


@pytest.mark.slow
def test_a_step_and_a_reload_leave_the_recorded_run(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = Lab(open_page(f"{dashboard.url}?page=population"))
    until(lambda: lab.page.locator(".step b").count() and lab.number("step") == 1000, 30, "no recorded run is shown")
    lab.press("Next phase")
    until(lambda: 0 < lab.number("step") < 20, 60, "no run was started")
    lab.page.reload()
    until(lambda: lab.page.locator(".step b").count() and 0 < lab.number("step") < 20, 60, "the run is not found again")
