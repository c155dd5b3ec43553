"""A run belongs to the browser session: whoever leaves a page, loses the socket or the server finds the run again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from driving import Lab, until

CHIP = "a[title='Open this run']"


def playing(open_page: Callable[..., Any], url: str, least: int = 5) -> Lab:
    lab = Lab(open_page(f"{url}?page=lab&target=banana&sampler=bps&play=1")).ready()
    until(lambda: lab.number("step") >= least, 60, "it does not play")
    return lab


def reaches(lab: Lab, step: float) -> None:
    lab.ready()
    until(lambda: lab.number("step") >= step, 60, f"the run is not at step {step:g}")


def test_reload_back_and_the_chip_find_the_run(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = playing(open_page, dashboard.url)
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
    lab.press("End run")
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
def test_a_run_that_ended_without_viewers_resumes_from_its_checkpoint(
    open_page: Callable[..., Any], dashboard: Any
) -> None:
    lab = playing(open_page, dashboard.url, 200)
    lab.page.goto(f"{dashboard.url}?page=papers")
    time.sleep(60)
    lab.page.locator(CHIP).click(timeout=30_000)
    lab.ready()
    until(lambda: "checkpoint at step" in lab.statement() or lab.number("step") > 10, 60, "it was not resumed")
    step = lab.number("step")
    lab.press("Play")
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
