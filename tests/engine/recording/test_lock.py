"""A recording that somebody takes away while it is written: that is said at once, and nothing is made anew."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from bnnviz.engine.host import Host
from bnnviz.engine.recording import reader
from bnnviz.engine.recording.lock import RecordingGone, RecordingLock
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.recording.writer import RecordingWriter
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec

pytest.importorskip("zarr")

SPEC = Spec(target="banana", sampler="bps", chains=2, draws=None, warmup=4)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    return tmp_path / "recordings"


@pytest.fixture
def writer(home: Path) -> RecordingWriter:
    run = ViewedRun(SPEC.checked())
    run.prepare()
    made = RecordingWriter(run, home / "mine")
    run.take(20, 1.0)
    made.note(now=True)
    return made


@pytest.mark.parametrize("now", [True, False], ids=["at a write", "between writes"])
@pytest.mark.parametrize("end", ["renamed", "removed", "replaced"])
def test_a_writer_whose_folder_is_taken_away_writes_no_more(
    end: str, now: bool, writer: RecordingWriter, home: Path
) -> None:
    steps = writer.run.steps
    if end == "removed":
        shutil.rmtree(home / "mine")
    else:
        (home / "mine").rename(home / "other")
    if end == "replaced":
        (home / "mine").mkdir()
    time.sleep(0.3)
    with pytest.raises(RecordingGone):
        writer.note(now=now)
    writer.run.take(20, 1.0)
    assert writer.run.steps > steps
    with pytest.raises(RecordingGone):
        writer.close()
    assert (home / "mine").exists() == (end == "replaced")
    assert not any((home / "mine").iterdir() if end == "replaced" else ())
    if end != "removed":
        kept = Recording(home / "other")
        kept.check()
        assert kept.progress["steps"] == steps
        RecordingLock(home / "other").release()  # another writer may resume it


def test_a_live_run_reports_it_once_and_continues(home: Path) -> None:
    host = Host(ViewedRun(SPEC.checked()))
    host.run.prepare()
    host.keep_in(home / "mine")
    shutil.rmtree(home / "mine")
    time.sleep(0.3)
    for _ in range(2):
        host.keep()
        assert host.record is None
    assert "mine" in host.message and len([note for note in host.run.notes if "mine" in str(note)]) == 1
    assert not list(home.iterdir())


def test_a_recording_that_is_written_is_neither_deleted_nor_renamed(writer: RecordingWriter, home: Path) -> None:
    for refused in (lambda: reader.delete("mine"), lambda: reader.rename("mine", "other")):
        with pytest.raises(BnnvizError, match="mine"):
            refused()
    writer.note(now=True)
    writer.close()
    reader.rename("mine", "other")
    reader.delete("other")
    assert not list(home.iterdir())


def test_a_recording_has_one_writer(writer: RecordingWriter, home: Path) -> None:
    with pytest.raises(BnnvizError, match="being written by another process"):
        RecordingWriter(writer.run, home / "mine")
    writer.close()
    RecordingLock(home / "mine").release(remove=True)


def test_what_a_killed_process_left_of_a_new_recording_is_removed(home: Path) -> None:
    (home / ".mine.abcd").mkdir(parents=True)
    (home / ".mine.abcd" / "header.json").write_text("{}")
    RecordingWriter(ViewedRun(SPEC.checked()), home / "mine").close()
    assert [path.name for path in home.iterdir()] == ["mine"]
    Recording(home / "mine").check()
