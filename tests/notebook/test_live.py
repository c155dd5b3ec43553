"""Runs that are paused, stepped and watched from Python, and the widget that shows them in a notebook."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from typing import Any

import pytest

import bnnviz
from bnnviz.figures.live.view import View
from bnnviz.notebook.widget import Live


@pytest.fixture
def run():
    """Give a run without an end that waits for its first step."""
    run = bnnviz.start("banana", "bps", draws=None, seed=1, paused=True)
    until(lambda: run.phase != "start", "the run found no start")
    yield run
    run.stop()


def until(condition, otherwise: str, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{otherwise} within {seconds:g} s"
        time.sleep(0.01)


class Page:
    """What a browser does with a widget: asks, and keeps the answers."""

    def __init__(self, live: Live, name: str = "page", dark: bool = False) -> None:
        self.live, self.name = live, name
        self.messages: list[tuple[dict[str, Any], list[bytes]]] = []
        live.send = lambda content, buffers=None: self.messages.append((content, buffers or []))
        self.tell(do="open", dark=dark)

    def tell(self, **content: Any) -> None:
        self.live._handle_custom_msg({"sight": self.name, **content}, [])

    def ask(self) -> dict[str, Any] | None:
        """Ask for a frame; return it if it came at once."""
        before = len(self.messages)
        self.tell(do="frame")
        return self.messages[-1][0] if len(self.messages) > before else None

    def last(self) -> dict[str, Any]:
        return self.messages[-1][0]

    def settle(self) -> None:
        """Ask until there is nothing new."""
        until(lambda: self.ask() is None, "there was always something new")


def steps(run: bnnviz.Run) -> int:
    return run.stats["steps"]


# The run.


def test_a_run_that_starts_paused_finds_its_start_and_waits(run):
    assert steps(run) == 0
    assert not run.playing
    assert run.running


def test_a_step_is_one_step_and_a_pause_lasts(run):
    run.play()
    until(lambda: steps(run) > 0, "it did not play")
    run.pause()
    before = steps(run)
    time.sleep(0.2)
    assert steps(run) == before
    assert steps(run.step()) == before + 1
    assert run.stats["steps"] < steps(run.step_event())
    run.play().step()
    assert not run.playing


def test_a_run_that_has_ended_takes_no_orders():
    run = bnnviz.sample("gaussian", "bps", draws=5, warmup=0)
    for order in (run.play, run.step, run.step_event, lambda: run.change(refresh_rate=2.0)):
        with pytest.raises(bnnviz.BnnvizError, match="has ended"):
            order()
    assert run.wait() is run


def test_the_last_step_ends_the_run():
    run = bnnviz.start("gaussian", "bps", draws=1, warmup=0, chains=1, paused=True)
    while run.phase != "done":
        run.step()
    run.wait(20)
    assert not run.running


@pytest.mark.slow
def test_python_ends_in_peace_while_a_run_plays():
    code = "import bnnviz, time; run = bnnviz.start('gaussian', 'bps', draws=None); time.sleep(0.3); print('left')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (0, "left\n", "")


# The widget.


def test_the_page_gets_figures_that_move(run):
    page = Page(run.live())
    opened = page.last()
    names = ["trajectory", "thinning", "trace", "acf"]
    assert opened["names"] == names
    figures = [root["attributes"]["name"] for root in json.loads(opened["doc"])["roots"]]
    assert figures == names
    assert set(opened["heads"]) == set(names)
    run.step_event()
    frame = page.ask()
    assert json.loads(frame["patch"])["events"]
    assert len(frame["ids"]) == len(page.messages[-1][1]) > 0
    assert [f"{steps(run):,}", "steps"] in frame["status"]
    assert not frame["playing"]


def test_figures_move_at_full_speed(run):
    page = Page(run.live())
    run.play()
    until(lambda: [page.ask() for _ in range(5)] and page.last().get("frame", 0) > 20, "too few frames came")
    assert page.last()["playing"]
    shown = int(page.last()["status"][2][0].replace(",", ""))
    until(lambda: page.ask() and int(page.last()["status"][2][0].replace(",", "")) > shown, "the steps did not rise")


def test_the_buttons_do_what_the_run_does(run):
    page = Page(run.live())
    page.tell(do="step")
    assert steps(run) == 1
    page.tell(do="speed", value=10.0)
    assert run.speed == 10.0
    page.tell(do="speed", value=0.0)
    assert run.speed is None
    page.tell(do="play")
    assert run.playing
    page.tell(do="pause")
    assert not run.playing
    before = steps(run)
    page.tell(do="step_event")
    assert steps(run) > before
    run.stop()
    page.tell(do="play")
    assert page.last()["statement"].startswith("This run has ended")


def test_a_failure_is_shown():
    def fails(x):
        raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        bnnviz.start(fails, "bps", dim=2).live()
    calls = []

    def fails_later(x):
        # A figure's curve has more points than there are chains: the sampler must be the one that meets it.
        if len(x) <= 16:
            calls.append(1)
            if len(calls) > 200:
                raise RuntimeError("out of luck")
        return 0.5 * (x**2).sum(-1)

    run = bnnviz.start(fails_later, "bps", dim=1, draws=None, paused=True)
    page = Page(run.live())
    run.play()
    until(lambda: not run.running, "it did not fail")
    page.settle()
    assert [content for content, _ in page.messages if "frame" in content][-1]["statement"] == "out of luck"


def test_a_run_without_an_end_pauses_when_its_last_figures_are_closed(run):
    first, second = Page(run.live(), "first"), Page(run.live(), "second")
    run.play()
    first.tell(do="close")
    assert run.playing
    second.tell(do="close")
    assert not run.playing
    finite = bnnviz.start("gaussian", "bps", draws=100_000)
    Page(finite.live()).tell(do="close")
    assert finite.playing
    finite.stop()


def test_a_figure_that_fails_does_not_end_the_run(run, monkeypatch, caplog):
    page = Page(run.live())
    page.settle()

    def fails(self, frame):
        raise RuntimeError("no ink")

    monkeypatch.setattr(View, "update", fails)
    with caplog.at_level(logging.CRITICAL):
        run.play()
        until(lambda: "no ink" in page.last().get("statement", ""), "it was not told")
    before = steps(run)
    until(lambda: steps(run) > before, "the run has ended")
