"""The Recordings in a real browser: list, compare, rename, send, replay, delete."""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from driving import OVERFLOW, Lab, until

from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.recording.writer import RecordingWriter
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec

NAMES = ("one", "two")


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """Make a shelf with two recordings, a broken one and a foreign file."""
    shelf = tmp_path / "home" / "recordings"
    for name, seed in zip(NAMES, (1, 2), strict=True):
        run = ViewedRun(Spec(target="banana", sampler="hmc", chains=2, draws=60, seed=seed))
        recorder = RecordingWriter(run, shelf / name)
        while not run.finished:
            run.advance(0.1)
        recorder.close()
    shutil.copytree(shelf / "one", shelf / "broken")
    (shelf / "broken" / "progress.json").write_text("{}")
    (shelf / "notes.txt").write_text("<b>mine</b>")
    return shelf


@pytest.fixture
def open_recordings(serve: Callable[..., Any], open_page: Callable[..., Any], recordings: Path) -> Callable[..., Any]:
    """Return a function that opens the page by the rest of its address; pages close before their server."""
    served = serve(env={"BNNVIZ_HOME": str(recordings.parent)})

    def opened(query: str = "", **options: Any) -> Any:
        page = open_page(f"{served.url}?page=recordings{query}", **options)
        page.get_by_text("recordings", exact=False).first.wait_for(timeout=60_000)
        radio(page, "one").wait_for(timeout=30_000)
        return page

    return opened


def chosen(page: Any) -> list[str]:
    """Return what the address says of the chosen recording."""
    return parse_qs(page.evaluate("location.search").removeprefix("?")).get("open", [])


def radio(page: Any, name: str) -> Any:
    """Return the radio button of a recording, whose label begins with its name."""
    return page.get_by_role("radio", name=re.compile(rf"^{re.escape(name)}\b"))


def test_recordings_are_listed_searched_and_opened(open_recordings):
    page = open_recordings(viewport={"width": 1280, "height": 720})
    assert page.get_by_text("is damaged: progress.json").is_visible()
    assert page.get_by_text("is not a recording").is_visible()
    until(lambda: chosen(page) == ["two"], 30, "the newest is not open")
    assert page.evaluate(OVERFLOW) == [0, 0]
    radio(page, "one").check()
    until(lambda: chosen(page) == ["one"], 30, "the address does not say what is chosen")
    # A pair, a trace, a density and an autocorrelation.
    until(lambda: page.locator(".bk-Figure").count() == 4, 30, "nothing was drawn")
    assert page.get_by_role("link", name="Run it again in Lab").is_visible()
    radio(page, "two").check()
    page.get_by_label("Search").fill("two")
    until(lambda: not radio(page, "one").is_visible(), 10, "the search finds everything")
    page.get_by_label("Search").fill("nothing has this")
    until(lambda: page.get_by_text("No recording has all of these words").is_visible(), 10, "nothing is said")
    assert chosen(page) == ["two"], "the search has closed the recording"


def test_a_recording_is_renamed_sent_and_deleted(open_recordings, recordings, tmp_path):
    page = open_recordings("&open=one&theme=dark")
    name = page.get_by_label("Name", exact=True)
    until(lambda: name.is_visible() and name.input_value() == "one", 20, "the recording is not open")
    name.fill("../two")
    page.get_by_role("button", name="Rename").click()
    until(lambda: page.get_by_text("cannot name a recording").is_visible(), 10, "a bad name was not refused")
    name.fill("first")
    page.get_by_role("button", name="Rename").click()
    until(lambda: chosen(page) == ["first"], 10, "it has the old name")
    assert {path.name for path in recordings.iterdir()} == {"first", "two", "broken", "notes.txt"}
    with page.expect_download() as sent:
        page.get_by_role("button", name="Download", exact=True).click()
    sent.value.save_as(tmp_path / "sent.zip")
    assert zipfile.is_zipfile(tmp_path / "sent.zip")
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("button", name="Keep it").click()
    assert (recordings / "first").is_dir()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("button", name="Delete it for good").click()
    until(lambda: not (recordings / "first").exists(), 10, "it was not deleted")
    until(lambda: chosen(page) == ["two"], 10, "what is gone is still chosen")


def test_a_run_of_the_lab_is_recorded_and_goes_on(open_recordings, open_page, recordings):
    page = open_recordings()
    base = page.url.split("?")[0]
    lab = Lab(open_page(f"{base}?page=lab&target=banana&sampler=bps&seed=3")).ready()
    lab.press("Record")
    until(lambda: "is kept as bps-banana" in lab.statement(), 20, "nothing says that it is recorded")
    lab.press("Play")
    folder = recordings / "bps-banana"
    until(lambda: Recording(folder).progress["steps"] > 300, 30, "it does not get on")
    lab.press("Stop recording")
    until(lambda: not (folder / ".lock").exists(), 20, "it is recorded still")
    lab.page.close()
    recording = Recording(folder)
    recording.check()
    steps = recording.progress["steps"]
    page.get_by_text("Refresh").click()
    radio(page, "bps-banana").check()
    page.get_by_role("link", name="Resume in the Lab").click()
    Lab(page).ready()  # it plays by itself
    until(lambda: Recording(folder).progress["steps"] > steps + 200, 30, "it does not go on")
    Lab(page).press("Stop recording")
    until(lambda: not (folder / ".lock").exists(), 30, "the recording was not finished")
    page.close()
    Recording(folder).check()
