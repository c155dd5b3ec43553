"""Films: the schedule, the frames of a run that is done again, the codec, and what is no film."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bnnviz.engine.recording.arviz import save
from bnnviz.engine.recording.replay_frames import PastRun, ReplayFrames, copied, read_past, take_frames
from bnnviz.engine.recording.writer import RecordingWriter
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from tests.driven import finished

SPEC = Spec(target="banana", sampler="bps", chains=2, draws=30, warmup=5, device="cpu").checked()
# What a clock has a part in.
TIMED = {"table", "seq"}


def same(a: object, b: object) -> bool:
    """Tell whether two values are the same to the bit, and of the same types."""
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (isinstance(a, float) and np.isnan(a) and np.isnan(b))


@pytest.fixture(scope="module")
def shot() -> ReplayFrames:
    return take_frames(SPEC, 40)


def test_a_film_ends_where_the_run_ends(shot: ReplayFrames) -> None:
    run = ViewedRun(SPEC)
    run.prepare()
    finished(run)
    assert shot.steps[:14] == list(range(14))
    assert np.all(np.diff(shot.steps) > 0)
    # The last block of a run goes on when its draws are made; a film's does not.
    assert shot.steps[-1] <= run.steps
    assert shot.frames[-1]["status"]["phase"] == "done"
    # How many steps there will be is not known at first: too few frames are left over, never none.
    assert 28 <= len(shot.frames) <= 40


def test_tuning_leaves_frames_for_what_comes_after(shot: ReplayFrames) -> None:
    phases = [frame["status"]["phase"] for frame in shot.frames]
    assert phases.count("sampling") >= len(phases) / 6 and "tuning" in phases


def test_its_frames_are_those_of_a_run_that_is_driven_by_hand(shot: ReplayFrames) -> None:
    run = ViewedRun(SPEC)
    run.prepare()
    scene = copied(run.scene())
    assert same(scene | {"run": ""}, shot.scene | {"run": ""})
    for frame in shot.frames[:-1]:
        while run.steps < frame["status"]["step"]:
            run.step_proposal()
        run.frame([])
        direct = copied(run.frame([part for part in scene["emits"] if part != "selection"]))
        kept = {name: direct["status"][name] for name in frame["status"]}
        if run.store.full().any():
            # What such a chain does is counted until the end of a block.
            break
        for name, part in frame.items():
            if name not in TIMED:
                assert same(part, kept if name == "status" else direct[name]), (name, run.steps)
    # At the end a block may have gone on for some steps when the draws were made; these are the same.
    while not run.finished:
        run.step_proposal()
    run.frame([])
    assert same(copied(run.frame(["trace"]))["trace"], shot.frames[-1]["trace"])


def test_a_run_of_this_process_is_done_again_on_its_own_target() -> None:
    from bnnviz.targets import Callable

    run = ViewedRun(
        Spec(target="own", sampler="hmc", chains=2, draws=8, warmup=2, device="cpu"),
        target=Callable(lambda x: (x**2).sum(1) / 2, 2),
    )
    finished(run)
    reported = take_frames(run, 10)
    assert same(reported.frames[-1]["trace"], copied(run.frame(["trace"]))["trace"])


def test_a_run_without_an_end_ends_at_the_step_that_is_asked_for() -> None:
    assert take_frames(SPEC.replace(draws=None), 20, steps=77).steps[-1] == 77


@pytest.mark.parametrize("frames", [1, 0, 2.5, "many", 5000])
def test_a_number_of_frames_that_makes_no_film_is_refused(frames: object) -> None:
    with pytest.raises(BnnvizError, match="frames"):
        take_frames(SPEC, frames)


# --- the codec


def test_a_film_comes_back_as_it_was(shot: ReplayFrames, tmp_path: Path) -> None:
    path = shot.save(tmp_path / "film")
    assert path.name == "film.npz"
    read = ReplayFrames.load(path)
    assert same(read.scene, shot.scene)
    assert same(read.frames, shot.frames)
    assert same(read.header, shot.header)
    assert [found.name for found in tmp_path.iterdir()] == ["film.npz"]


def test_a_broken_film_is_one_sentence(shot: ReplayFrames, tmp_path: Path) -> None:
    whole, path = shot.pack(), tmp_path / "film.npz"
    rng = np.random.default_rng(0)
    broken = [b"", b"PK", whole[: len(whole) // 2], whole[:-30], bytes(1000), b"{}"]
    for _ in range(20):
        spoilt = bytearray(whole)
        spoilt[int(rng.integers(len(whole) // 2))] ^= 0xFF
        broken.append(bytes(spoilt))
    for content in broken:
        path.write_bytes(content)
        try:
            ReplayFrames.load(path)
        except BnnvizError as error:
            assert error.sentence.count("\n") == 0
    with pytest.raises(BnnvizError, match="cannot be read"):
        ReplayFrames.load(tmp_path / "none.npz")


# --- what a film is taken of


def test_a_spec_a_saved_run_and_a_folder_are_read(tmp_path: Path) -> None:
    run = ViewedRun(SPEC)
    finished(run)
    written = tmp_path / "spec.json"
    written.write_text(json.dumps(SPEC.to_json()))
    assert read_past(written) == PastRun(SPEC)
    saved = save(run, tmp_path / "run.nc")
    folder = tmp_path / "recording"
    RecordingWriter(run, folder).close()
    for path in (saved, folder):
        assert read_past(path) == PastRun(SPEC, [], run.steps, "cpu")


def test_a_run_whose_settings_were_changed_is_done_again_with_its_changes(tmp_path: Path) -> None:
    run = ViewedRun(SPEC.replace(draws=None))
    run.prepare()
    for rate in (0.5, 3.0):
        run.take(40)
        run.change({"refresh_rate": rate})
    run.take(30)
    RecordingWriter(run, tmp_path / "recording").close()
    past = read_past(tmp_path / "recording")
    assert past == PastRun(run.begun, run.changes, run.steps, "cpu")
    assert past.spec.settings["refresh_rate"] not in (0.5, 3.0)
    again = take_frames(past, frames=10)
    assert again.steps[-1] == run.steps
    assert same(again.frames[-1]["events"], copied(run.frame(["events"])["events"]))
