"""Frames that a recording keeps: they are what the run showed, go on with it, and replay it where it cannot be done."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import bnnviz
from bnnviz.cli.main import main
from bnnviz.engine.recording import reader, recorded_frames, replay_frames
from bnnviz.engine.recording.archive import pack, unpack
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.recording.resume import resume
from bnnviz.engine.recording.writer import RecordingWriter
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.files import sealed, unsealed
from bnnviz.replays.timeline import ReplayTimeline
from bnnviz.specs.run import Spec

BANANA = Spec(target="banana", sampler="bps", chains=2, draws=40, warmup=5, seed=3)


def eager(patch: pytest.MonkeyPatch) -> None:
    """Take every frame that strides allow, whatever a clock says."""
    policy = recorded_frames.POLICY._replace(rate=1e9, at_once=1e9)
    patch.setattr(recorded_frames, "POLICY", policy)


def on(run: ViewedRun, recorder: RecordingWriter, goal: int | None = None) -> None:
    """Advance to a step or to the end; all frames and files come at steps that no clock chooses."""
    run.prepare()
    while not run.finished and (goal is None or run.steps < goal):
        run.take(1)
        recorder.note(now=run.steps % 50 == 0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[ViewedRun, Path]:
    folder = tmp_path_factory.mktemp("recordings") / "run"
    with pytest.MonkeyPatch.context() as patch:
        eager(patch)
        run = ViewedRun(BANANA)
        recorder = RecordingWriter(run, folder, every_s=1e9)
        on(run, recorder)
        recorder.close()
    return run, folder


@pytest.fixture
def recorded(made: tuple[ViewedRun, Path], tmp_path: Path) -> tuple[ViewedRun, Recording]:
    return made[0], Recording(Path(shutil.copytree(made[1], tmp_path / "run")))


def same(first: dict, second: dict) -> bool:
    """Compare two frames but for the numbers that only say in which order frames were asked for."""
    np.testing.assert_equal({**first, "seq": 0}, {**second, "seq": 0})
    return True


def test_what_was_recorded_is_what_the_run_shows(recorded: tuple[ViewedRun, Recording]) -> None:
    run, recording = recorded
    found = recorded_frames.shown(recording, most=2000)
    assert found.steps[0] == 1
    assert found.steps[-1] == run.steps
    assert found.header["spec"] == BANANA.checked().to_json()
    again = ViewedRun(BANANA)
    again.prepare()
    scene = again.scene()
    assert {**scene, "run": 0}.keys() == {**found.scene, "run": 0}.keys()
    for frame in found.frames[:30]:
        while again.steps < frame["status"]["step"]:
            again.take(1)
        again.frame([])
        now = replay_frames.copied(replay_frames.timeless(again.frame(["status", "path", "envelope"])))
        same({name: frame[name] for name in now}, now)


def test_the_page_gets_the_same_frames_beside_a_recording() -> None:
    runs = [ViewedRun(BANANA.replace(draws=None)) for _ in range(2)]
    for run in runs:
        run.prepare()
    want = replay_frames.parts(runs[0].scene())
    for _ in range(8):
        for run in runs:
            goal = run.steps + 40
            while run.steps < goal:
                run.take(goal - run.steps, 1.0)
        for part in want:
            runs[0].aside(part, 40)
        recorded, alone = (replay_frames.copied(replay_frames.timeless(run.frame(want))) for run in runs)
        assert recorded["seq"] == alone["seq"]
        assert recorded["caption"]["kind"] == alone["caption"]["kind"] == "summary"
        for frame in (recorded, alone):
            # A status has what was measured last: of what is asked aside that is a frame earlier.
            frame["status"].update(ess=None, rhat=None)
        for part in ("status", "path", "trace"):
            if part in recorded and part in alone:
                np.testing.assert_equal(recorded[part], alone[part])


def test_strides_grow_and_begin_anew_at_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    eager(monkeypatch)
    run = ViewedRun(BANANA.replace(draws=None))
    recorder = RecordingWriter(run, tmp_path / "run", every_s=1e9)
    on(run, recorder, 700)
    run.change({"refresh_rate": 3.0})
    on(run, recorder, 760)
    recorder.close()
    steps = np.array(recorded_frames.shown(Recording(tmp_path / "run"), most=2000).steps)
    strides = np.diff(steps)
    assert np.all(strides[steps[1:] <= 81] == 1)
    assert strides[steps[1:] < 700][-1] >= 6
    assert np.all(strides[(steps[1:] > 702) & (steps[1:] < 760)] == 1)


def test_a_run_that_goes_on_adds_to_its_frames(recorded: tuple[ViewedRun, Recording], tmp_path: Path) -> None:
    run, recording = recorded
    middle = run.steps // 2
    again = resume(recording.folder, step=middle)
    begun = again.steps
    before = recorded_frames.shown(recording, most=2000, step=begun)
    recorder = RecordingWriter(again, recording.folder, every_s=1e9)
    assert recorded_frames.shown(Recording(recording.folder), most=2000).steps == before.steps
    on(again, recorder)
    recorder.close()
    after = Recording(recording.folder)
    after.check()
    found = recorded_frames.shown(after, most=2000)
    assert found.steps[: len(before.steps)] == before.steps
    assert found.steps == sorted(set(found.steps))
    assert found.steps[-1] == run.steps
    assert all(same(*pair) for pair in zip(found.frames, before.frames, strict=False))
    index = after.progress["frames"]
    named = {index["scene"]["file"], *(piece["file"] for piece in index["pieces"])}
    assert named == {path.name for path in recording.folder.glob("frames-*")}


def test_a_replay_shows_it_where_the_run_cannot_be_done_again(
    recorded: tuple[ViewedRun, Recording], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    _, recording = recorded
    path = recording.folder / reader.HEADER
    header = unsealed(path.read_bytes())
    path.write_bytes(sealed(header | {"device": "cuda:7"}))
    found = recorded_frames.frames_of(recording.folder, 50)
    assert len(found.frames) == 50
    assert "frames were recorded as the run went; 50 of them are shown" in found.header["notes"][0]
    assert ReplayTimeline(found).views
    assert "which is not here" in recorded_frames.frames_of(recording.folder, 10, recorded=False).header["notes"][0]
    with pytest.raises(SystemExit) as end:
        main(["replay", str(recording.folder), "--html", str(tmp_path / "page.html"), "--frames", "40"])
    assert end.value.code == 0
    assert "40 of them are shown" in capsys.readouterr().err
    assert (tmp_path / "page.html").stat().st_size < 3_000_000


def test_who_asks_gets_what_was_recorded(recorded: tuple[ViewedRun, Recording], tmp_path: Path) -> None:
    run, recording = recorded
    assert (
        recorded_frames.frames_of(recording.folder, 5).steps
        != recorded_frames.frames_of(recording.folder, 5, recorded=True).steps
    )
    early = recorded_frames.frames_of(recording.folder, 300, steps=100, recorded=True)
    assert early.steps[-1] <= 100 < run.steps
    assert len(bnnviz.replay(recording.folder, tmp_path / "page", recorded=True, frames=20).read_bytes()) < 3_000_000


@pytest.mark.parametrize(
    "broken",
    [
        {"scene": None, "pieces": [{"file": "frames-1-0123456789ab"}]},
        {"scene": {"file": "../x", "sha256": "", "size": 1}, "pieces": []},
        {"pieces": 3},
        [1],
        {"scene": {"file": "frames-scene-0123456789ab", "sha256": "0", "size": -1}, "pieces": [{}]},
    ],
)
def test_an_index_is_not_believed(recorded: tuple[ViewedRun, Recording], broken: object) -> None:
    _, recording = recorded
    path = recording.folder / reader.PROGRESS
    path.write_bytes(sealed(unsealed(path.read_bytes()) | {"frames": broken}))
    with pytest.raises(BnnvizError, match="is damaged"):
        Recording(recording.folder).check()


def test_damaged_and_missing_frames_are_found(
    recorded: tuple[ViewedRun, Recording], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    _, recording = recorded
    for number, path in enumerate(sorted(recording.folder.glob("frames-*"))[::3]):
        packed = pack(recording, tmp_path / f"{number}.zip")
        content = path.read_bytes()
        path.write_bytes(content[:-9])
        with pytest.raises(BnnvizError, match=path.name):
            Recording(recording.folder).check()
        path.unlink()
        with pytest.raises(BnnvizError, match="is damaged"):
            Recording(recording.folder).check()
        path.write_bytes(content)
    assert unpack(packed, "sent")
