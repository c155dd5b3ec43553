"""Recordings: what is written is what was drawn, a run goes on wherever it ended, nothing in a folder is believed."""

from __future__ import annotations

import contextlib
import json
import pickle
import random
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from families import QUICK, fitting, target_of

import bnnviz
from bnnviz import samplers
from bnnviz.cli.main import main
from bnnviz.engine.automatic.tables import Limit
from bnnviz.engine.monitor import remedies
from bnnviz.engine.recording import arrays, reader
from bnnviz.engine.recording.archive import pack, unpack
from bnnviz.engine.recording.export import FORMS, export, to_arviz
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.recording.resume import resume
from bnnviz.engine.recording.writer import RecordingWriter
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.files import sealed, unsealed
from bnnviz.specs.run import Spec

SAMPLERS = [cls.registered for cls in samplers.REGISTRY]
BANANA = Spec(target="banana", sampler="bps", chains=3, draws=150, warmup=10, seed=4)


def spec_of(name: str) -> Spec:
    target, target_settings = target_of(name)
    settings = QUICK.get(name, {}) | fitting(name, iterations=8, proposals=4, draws=4)
    return Spec(
        target=target, target_settings=target_settings, sampler=name, settings=settings, chains=2, draws=24, warmup=4
    )


def finished(run: ViewedRun, recorder: RecordingWriter | None = None, seconds: float = 0.02) -> ViewedRun:
    while not run.finished:
        run.advance(seconds)
        if recorder is not None:
            recorder.note()
    return run


def step_to(run: ViewedRun, step: int) -> None:
    while run.steps < step:
        run.take(min(16, step - run.steps))


def recorded(spec: Spec, folder: Path) -> ViewedRun:
    """Record a run with checkpoints at steps that no clock chooses, so that there are always as many."""
    run = ViewedRun(spec)
    recorder = RecordingWriter(run, folder, every_s=1e9)
    run.prepare()
    for goal in range(100, 10**9, 100):
        while run.steps < goal and not run.finished:
            run.take(min(16, goal - run.steps))
        recorder.note(now=True)
        if run.finished:
            break
    recorder.close()
    return run


def halfway(spec: Spec, folder: Path) -> ViewedRun:
    """Leave a run amid its draws, as if its process had ended a while after the last write."""
    run = ViewedRun(spec)
    recorder = RecordingWriter(run, folder)
    run.prepare()
    while run.store.counts.min() < spec.draws / 2:
        run.take(8)
        if run.steps % 5 == 0:
            recorder.note(now=True)
    recorder.note(now=True)
    run.take(5)
    return run


@pytest.mark.parametrize("steps", [0, 200])
def test_a_resumed_run_keeps_its_time_limit(tmp_path: Path, steps: int) -> None:
    run = ViewedRun(BANANA.replace(draws=10**6))
    Limit(run, 0.5)
    recorder = RecordingWriter(run, tmp_path / "run")
    if steps:  # else it was killed before it began
        run.prepare()
        run.take(steps)
    recorder.note(now=True)
    recorder.close()
    again = resume(tmp_path / "run")
    again.prepare()
    finished(again)
    assert run.steps < again.steps < 10**6
    assert again.device_seconds < 2
    assert remedies.more(again)[0].options.keys() == {"minutes"}
    made = again.store.common(again.alive)
    again.extend(5)
    assert finished(again).store.common(again.alive) == made + 5
    assert remedies.more(again)[0].options.keys() == {"draws"}


def test_a_pickled_run_keeps_its_time_limit() -> None:
    run = bnnviz.start("gaussian", "hmc", draws=10**6, chains=2, minutes=0.01, paused=True)
    again = pickle.loads(pickle.dumps(run))
    run.stop()
    again.play()
    assert again.wait().draws.shape[1] < 10**6


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "recordings"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ViewedRun]:
    folder = tmp_path_factory.mktemp("recordings") / "whole"
    return folder, recorded(BANANA, folder)


@pytest.fixture
def copy(whole: tuple[Path, ViewedRun], tmp_path: Path) -> Path:
    shutil.copytree(whole[0], tmp_path / "copy")
    return tmp_path / "copy"


# --- what is written


def test_a_recording_is_the_run(whole: tuple[Path, ViewedRun]) -> None:
    folder, run = whole
    recording = Recording(folder)
    recording.check()
    assert np.array_equal(recording.read_draws(), run.draws)
    assert recording.names() == list(run.target.names())
    assert recording.header["spec"] == run.spec.to_json()
    assert recording.progress["finished"]
    assert recording.whole == run.draws.shape[1]
    assert {path.name.split("-")[0] for path in recording.files()} >= {"header.json", "progress.json", "checkpoint"}


def test_arviz_opens_the_folder_itself(whole: tuple[Path, ViewedRun]) -> None:
    import xarray

    folder, run = whole
    tree = xarray.open_datatree(folder / arrays.DRAWS, engine="zarr", consolidated=False)
    assert np.array_equal(tree["posterior"].x.values, run.draws)
    assert list(tree["posterior"].coordinate.values) == ["x1", "x2"]


# --- a run that goes on


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_run_that_goes_on_makes_the_same_draws(name: str, tmp_path: Path) -> None:
    spec = spec_of(name)
    halfway(spec, tmp_path / "run")
    run = resume(tmp_path / "run")
    recorder = RecordingWriter(run, tmp_path / "run")
    finished(run, recorder, seconds=0.05)
    recorder.close()
    whole = finished(ViewedRun(spec))
    found = Recording(tmp_path / "run")
    found.check()
    np.testing.assert_array_equal(found.read_draws(), whole.draws)
    if whole.log_weights is not None:
        np.testing.assert_array_equal(found.read_log_weights(), whole.log_weights)


@pytest.mark.slow
def test_a_run_without_an_end_keeps_its_draws_through_changes(tmp_path: Path) -> None:
    run = ViewedRun(BANANA.replace(draws=None))
    recorder = RecordingWriter(run, tmp_path / "run")
    run.prepare()
    for rate in (0.5, 2.0):
        for _ in range(60):
            run.take(8)
        run.change({"refresh_rate": rate})
        recorder.note(now=True)
    while run.store.counts.min() < 20:
        run.take(8)
    recorder.note(now=True)
    before = Recording(tmp_path / "run")
    assert [change[1] for change in before.progress["changes"]] == [{"refresh_rate": 0.5}, {"refresh_rate": 2.0}]
    assert before.header["spec"]["settings"]["refresh_rate"] != 2.0
    assert before.read_draws() is None
    with pytest.raises(BnnvizError, match="checkpoint"):
        before.check_written()
    assert np.array_equal(to_arviz(before).posterior.x.values, run.draws)
    recorder.close()
    assert np.array_equal(Recording(tmp_path / "run").read_draws(), run.draws)
    again = resume(tmp_path / "run")
    recorder = RecordingWriter(again, tmp_path / "run")
    step_to(run, run.steps + 150)
    step_to(again, run.steps)
    recorder.close()
    assert np.array_equal(Recording(tmp_path / "run").read_draws(), run.draws)
    assert again.changes == run.changes


@pytest.mark.slow
def test_python_records_and_goes_on(home: Path, tmp_path: Path) -> None:
    whole = bnnviz.sample(BANANA)
    run = bnnviz.start(BANANA, record="one", callback=lambda run: run.progress > 0.3 and run._stop.set())
    with contextlib.suppress(BnnvizError):
        run.wait()
    assert not run.recording.progress["finished"]
    assert bnnviz.recording("one").folder == home / "one" == run.recording.folder
    with pytest.raises(BnnvizError, match="already"):
        bnnviz.start(BANANA, record="one")
    again = bnnviz.resume("one").wait()
    assert np.array_equal(again.draws, whole.draws)
    assert np.array_equal(bnnviz.recording("one").to_arviz().posterior.x.values, whole.draws)
    assert bnnviz.recording("one").progress["finished"]
    assert bnnviz.sample(BANANA, record=tmp_path / "two").recording.name == "two"
    with pytest.raises(BnnvizError, match="no recording 'three'"):
        bnnviz.recording("three")


# --- exports


def test_every_export_has_the_draws(tmp_path: Path) -> None:
    spec = Spec(
        target="network", target_settings={"data": "toy_c", "hidden": "4"}, sampler="sghmc", chains=2, draws=6, warmup=2
    )
    run = recorded(spec, tmp_path / "run")
    forms = [form for form in FORMS if form != "onnx"]
    out = {form: export(Recording(tmp_path / "run"), form, tmp_path / f"out.{form}") for form in forms}
    import xarray

    flat = run.draws.reshape(-1, run.target.dim)
    assert np.array_equal(xarray.open_datatree(out["netcdf"])["posterior"].x.values, run.draws)
    assert np.array_equal(xarray.open_datatree(out["zarr"], consolidated=False)["posterior"].x.values, run.draws)
    assert np.array_equal(np.load(out["npz"])["draws"], run.draws)
    rows = np.genfromtxt(out["csv"], delimiter=",", skip_header=1)
    np.testing.assert_array_equal(rows[:, 2:].astype(np.float32), flat)
    public = bnnviz.recording(tmp_path / "run").export("npz", tmp_path / "public.npz")
    assert np.array_equal(np.load(public)["draws"], run.draws)
    saved = torch.load(out["torch"], weights_only=True)
    module = run.target.module
    inputs = run.target.seen(run.target.x[:5])
    for draw, state in zip(run.store.view(run.alive).flatten(0, 1), saved["state_dicts"], strict=True):
        module.load_state_dict(state)
        torch.testing.assert_close(module(inputs), run.target.outputs(draw[None], run.target.x[:5])[0])


# --- what is not believed


def parts(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_flipped_bit_or_a_cut_is_found_or_does_no_harm(whole: tuple[Path, ViewedRun], copy: Path) -> None:
    rng, draws = random.Random(0), whole[1].draws
    found = 0
    for trial in range(150):
        path = rng.choice(parts(copy))
        content = path.read_bytes()
        broken = bytearray(content)
        if trial % 3 and content:
            broken[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        else:
            del broken[rng.randrange(len(content) + 1) :]
        path.write_bytes(broken)
        try:
            recording = Recording(copy)
            recording.check()
            assert np.array_equal(recording.read_draws(), draws), path
        except BnnvizError as error:
            found += 1
            assert str(copy) in str(error)
        path.write_bytes(content)
    assert found > 100
    Recording(copy).check()


def test_a_missing_part_is_named(copy: Path) -> None:
    for path in parts(copy):
        if path.parent == copy and path.name != reader.SUMMARY:
            moved = path.rename(copy.with_name("aside"))
            with pytest.raises(BnnvizError, match=path.name):
                Recording(copy).check()
            moved.rename(path)
    chunk = next((copy / arrays.DRAWS / "posterior" / "x" / "c").rglob("0"))
    shutil.rmtree(chunk) if chunk.is_dir() else chunk.unlink()
    with pytest.raises(BnnvizError, match="damaged"):
        Recording(copy).read_draws()


@pytest.mark.parametrize("axis", ["chain", "coordinate"])
def test_damaged_labels_of_an_axis_are_found(axis: str, copy: Path) -> None:
    (copy / arrays.DRAWS / "posterior" / axis / "c" / "0").write_bytes(b"")
    with pytest.raises(BnnvizError, match="damaged"):
        Recording(copy).check()


def test_a_made_up_size_is_refused_before_memory_is_taken(copy: Path, whole: tuple[Path, ViewedRun]) -> None:
    meta = copy / arrays.DRAWS / "posterior" / "x" / "zarr.json"
    statement = json.loads(meta.read_text())
    progress = copy / reader.PROGRESS
    kept = progress.read_bytes()
    for huge in (10**9, 10**15):
        statement["shape"][1] = huge
        meta.write_text(json.dumps(statement))
        progress.write_bytes(sealed(unsealed(kept) | {"counts": [huge] * 3}))
        begun = time.perf_counter()
        with pytest.raises(BnnvizError, match="damaged"):
            Recording(copy).read_draws()
        assert np.array_equal(resume(copy).draws, whole[1].draws)  # its checkpoint says how many there are
        assert time.perf_counter() - begun < 10
    statement["chunk_grid"]["configuration"]["chunk_shape"][1] = 10**9
    meta.write_text(json.dumps(statement))
    with pytest.raises(BnnvizError, match="damaged"):
        Recording(copy).read_draws()


def test_no_link_is_followed(copy: Path, tmp_path: Path, home: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    target = copy / arrays.DRAWS / "posterior" / "x" / "c" / "0" / "0"
    moved = next(target.rglob("*")) if target.is_dir() else target
    moved.rename(outside / "chunk")
    moved.symlink_to(outside / "chunk")
    with pytest.raises(BnnvizError, match="link"):
        Recording(copy).check()
    home.mkdir(parents=True)
    (home / "away").symlink_to(outside)
    assert [wrong is not None for _, wrong in reader.recordings()] == [True]
    reader.delete("away")
    assert (outside / "kept").read_text() == "kept"


def test_a_name_may_have_letters_of_any_script(home: Path) -> None:
    run = bnnviz.sample("banana", "hmc", draws=5, warmup=5, chains=1, record="größe 数据")
    np.testing.assert_array_equal(bnnviz.recording("größe 数据").draws, run.draws)


@pytest.mark.parametrize(
    "name", ["../up", "a/b", "", ".hidden", "a\x00b", "a\nb", "x" * 200, "数" * 100, "..", "end.", "-rf"]
)
def test_names_that_are_no_names_are_refused(name: str, home: Path) -> None:
    for ask in (reader.place, reader.delete, lambda n: reader.rename("a", n)):
        with pytest.raises(BnnvizError, match="cannot name a recording"):
            ask(name)


# --- one file


def test_a_packed_recording_is_taken_in(whole: tuple[Path, ViewedRun], home: Path, tmp_path: Path) -> None:
    packed = pack(Recording(whole[0]), tmp_path / "sent.zip")
    assert not [name for name in zipfile.ZipFile(packed).namelist() if "lock" in name]
    taken = unpack(packed)
    assert taken == home / "sent"
    assert np.array_equal(Recording(taken).read_draws(), whole[1].draws)
    assert unpack(packed).name == "sent-2"
    with pytest.raises(BnnvizError, match="already"):
        unpack(packed, "sent")


def archive(path: Path, members: dict[str, bytes], *, link: bool = False) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o120777 if link else 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(info, content)
    return path


@pytest.mark.parametrize(
    "make",
    [
        lambda path: archive(path, {"../evil": b"x"}),
        lambda path: archive(path, {"/tmp/evil-recording": b"x"}),
        lambda path: archive(path, {"a/../../evil": b"x"}),
        lambda path: archive(path, {"header.json": b"/etc/passwd"}, link=True),
        lambda path: archive(path, {"bomb": bytes(300_000_000)}),
        lambda path: archive(path, {"header.json": b"{}"}),
        lambda path: path.write_bytes(b"no zip") and path,
    ],
    ids=["up", "absolute", "through", "link", "bomb", "no recording", "no zip"],
)
def test_a_file_that_is_no_packed_recording_leaves_nothing(
    make: Callable[[Path], Path], home: Path, tmp_path: Path
) -> None:
    packed = make(tmp_path / "sent.zip")
    before = set(tmp_path.iterdir())
    with pytest.raises(BnnvizError):
        unpack(packed)
    assert set(tmp_path.iterdir()) - {tmp_path / "home"} == before
    assert not any(home.iterdir()) if home.exists() else True
    assert not Path("/tmp/evil-recording").exists()


# --- the command line


def command(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    return end.value.code


def test_the_command_line_records_lists_exports_and_goes_on(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--target", "banana", "--sampler", "hmc", "--chains", "2", "--draws", "40", "--json"]
    assert command("sample", *words, "--record", "one") == 0
    figures = json.loads(capsys.readouterr().out)
    assert command("sample", *words, "--record", "one") == 2
    assert "already" in capsys.readouterr().err
    assert command("recordings", "list", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["draws"], row["finished"], row["wrong"]) == ("one", 40, True, None)
    assert command("recordings", "list") == 0
    assert "one" in capsys.readouterr().out
    assert command("resume", "one", "--json") == 0
    assert json.loads(capsys.readouterr().out)["mean"] == figures["mean"]
    assert command("export", "one", "--format", "npz") == 0
    assert (tmp_path / "one.npz").is_file()
    assert command("recordings", "pack", "one") == 0
    assert command("recordings", "unpack", "one.zip", "--name", "two") == 0
    assert command("recordings", "check", "two") == 0
    assert "sound" in capsys.readouterr().out
    assert command("recordings", "rename", "two", "three") == 0
    assert command("recordings", "delete", "three", "--yes") == 0
    assert [path.name for path in home.iterdir()] == ["one"]
    assert command("resume", "nothing") == 2
    assert "no recording 'nothing'" in capsys.readouterr().err
