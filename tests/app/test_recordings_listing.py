"""The page of recordings: what somebody made up stands there with its sentence, and a file is taken in again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bnnviz.engine.recording import reader
from bnnviz.engine.recording.archive import pack, unpack
from bnnviz_app.components.recordings.listing import RecordingList
from bnnviz_app.components.recordings.text import about, results
from bnnviz_app.pages.recordings import RecordingsPage
from tests.made_up import VALUES, craft, record_half

pytest.importorskip("zarr")


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    return pack(reader.Recording(record_half(folder / "sound")), folder / "half.zip")


@pytest.fixture
def home(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    unpack(packed, "sound")
    yield tmp_path / "recordings"


@pytest.mark.slow
def test_the_list_and_the_texts_go_on_beside_what_was_made_up(home: Path) -> None:
    for number, case in enumerate(VALUES[::3]):
        shutil.copytree(home / "sound", home / f"crafted-{number}")
        craft(home / f"crafted-{number}", *case)
    # Right types, and names that nobody has: it is listed, and its links are left out or said to be.
    for name, path, value in (("far", "spec.sampler", "nobodys"), ("odd", "spec.settings", {"x": [{}]})):
        shutil.copytree(home / "sound", home / name)
        craft(home / name, "header.json", path, value)
    shown = RecordingList(lambda: None)
    shown.fill(list(reader.recordings()), ["sound"])
    assert shown.chosen == ["sound"]
    assert len(shown.found) == 3 + len(VALUES[::3])
    assert sum(wrong is None for _, wrong in shown.found.values()) == 3
    page = RecordingsPage(False, {}, ["sound"])
    try:
        assert "sound" in page._text.object
        for name in ("far", "odd"):
            recording = shown.found[name][0]
            assert name in about([recording], 4, {})
            assert "Traceback" not in results([recording])
            page._reload([name, "sound"])
            assert set(page.list.chosen) == {name, "sound"}
    finally:
        page.close()
