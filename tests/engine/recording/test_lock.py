"""A recording that somebody takes away while it is written: that is said at once, and nothing is made anew."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from bnnviz.engine.cluster import slot_recording
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
@pytest.mark.parametrize("end", ["deleted", "renamed", "removed by hand", "replaced"])
def test_what_is_gone_is_said_at_once_and_stays_away(end: str, now: bool, writer: RecordingWriter, home: Path) -> None:
    steps = writer.run.steps
    if end == "deleted":
        reader.delete("mine")
    elif end == "renamed":
        reader.rename("mine", "other")
    elif end == "removed by hand":
        shutil.rmtree(home / "mine")
    else:
        (home / "mine").rename(home / "other")
        (home / "mine").mkdir()
    time.sleep(0.3)
    word = f"renamed to {home / 'other'}" if end in ("renamed", "replaced") else "removed"
    with pytest.raises(RecordingGone, match=word):
        writer.note(now=now)
    writer.run.take(20, 1.0)
    assert writer.run.steps > steps
    with pytest.raises(RecordingGone, match=word):
        writer.close()
    assert (home / "mine").exists() == (end == "replaced")
    assert not any((home / "mine").iterdir() if end == "replaced" else ())
    if end in ("renamed", "replaced"):
        kept = Recording(home / "other")
        kept.check()
        assert kept.progress["steps"] == steps
        again = RecordingLock(home / "other")  # whoever wants to go on with it can
        again.release()


def test_a_live_run_says_it_once_and_goes_on(writer: RecordingWriter, home: Path) -> None:
    slot = SimpleNamespace(writer=writer, record="mine", message="", touched=0)
    slot.touch = lambda: setattr(slot, "touched", slot.touched + 1)
    reader.delete("mine")
    time.sleep(0.3)
    slot_recording.keep(slot)
    assert (slot.writer, slot.record, slot.touched) == (None, None, 1)
    assert "was removed while it was written" in slot.message
    slot_recording.keep(slot)
    assert slot.touched == 1
    assert not list(home.iterdir())


def test_a_recording_has_one_writer(writer: RecordingWriter, home: Path) -> None:
    with pytest.raises(BnnvizError, match="being written by another process"):
        RecordingWriter(writer.run, home / "mine")
    writer.close()
    RecordingLock(home / "mine").release(remove=True)
