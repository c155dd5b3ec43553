"""Given starting points: where chains begin, that recordings contain them, and that first draws are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from truth.calibration import KnownAnswers, limit, of_draws

import bnnviz
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.recording.replay_frames import read_past, take_frames
from bnnviz.engine.recording.resume import resume
from bnnviz.engine.recording.writer import RecordingWriter
from bnnviz.engine.run.start_points import packed
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from tests.driven import finished

POINTS = np.array([[0.5, 1.0], [-1.0, 0.5], [1.5, -0.5]])
GIVEN = Spec(target="banana", sampler="bps", chains=5, draws=30, warmup=4, seed=2, start_points=packed(POINTS))
QUICK = GIVEN.replace(sampler="hmc", settings={"num_leapfrog_steps": 3}, draws=10)


def prepared(spec: Spec) -> ViewedRun:
    run = ViewedRun(spec)
    run.prepare()
    return run


def recorded(spec: Spec, folder: Path) -> ViewedRun:
    run = ViewedRun(spec)
    recorder = RecordingWriter(run, folder)
    finished(run)
    recorder.close()
    return run


def test_chains_start_at_the_points_in_turn() -> None:
    run = prepared(GIVEN)
    assert np.array_equal(run.state.x.numpy(), POINTS[[0, 1, 2, 0, 1]])
    assert run.notes[0].code == "given_start"
    assert np.array_equal(prepared(GIVEN.replace(chains=2)).state.x.numpy(), POINTS[:2])


@pytest.mark.parametrize(
    "name", ["sgld", "psgld", pytest.param("nuts", marks=pytest.mark.slow), "pmcnet_light", "map", "boomerang"]
)
def test_every_family_starts_at_the_points(name: str) -> None:
    settings = {"steps": 20} if name == "map" else {}
    run = prepared(GIVEN.replace(sampler=name, settings=settings, draws=2, warmup=0, chains=3))
    assert np.allclose(run.state.x.numpy(), POINTS, atol=1e-6)
    finished(run)
    assert len(run.notes) == 1 or name == "boomerang"  # which has a note on its centre


def test_chains_return_to_their_points_when_the_tuning_ends() -> None:
    # Chains that took equally many steps are not spread like the target, whatever their start.
    run = prepared(GIVEN)
    first = run.state.x.clone()
    while run.steps < 40:
        run.take(40 - run.steps)
    assert not torch.equal(run.state.x, first)
    while run.phase == "tuning":
        run.take(50)
    assert torch.equal(run.state.x, first)
    run.take(5)
    path = run.frame(["path"])["path"]
    assert np.allclose([path["x"][0], path["y"][0]], first[0].numpy(), atol=1e-5)  # no line leads there


@pytest.mark.parametrize("name", ["func_hmc", "bbb"])
def test_a_sampler_that_cannot_start_at_points_says_so(name: str) -> None:
    assert prepared(GIVEN.replace(sampler=name, settings={})).notes[-1].code == "other_start"


def test_recordings_replays_and_checkpoints_contain_the_points(tmp_path: Path) -> None:
    run = recorded(QUICK, tmp_path / "given")
    assert np.array_equal(finished(ViewedRun.restore(ViewedRun(QUICK).checkpoint())).draws, run.draws)
    past = read_past(tmp_path / "given")
    assert np.array_equal(finished(ViewedRun(past.spec)).draws, run.draws)
    assert take_frames(past, 4).scene
    spec = Recording(tmp_path / "given").spec()
    assert spec == run.spec
    assert spec.start_points == run.spec.start_points


@pytest.mark.slow
def test_a_recording_resumes_with_the_same_draws(tmp_path: Path) -> None:
    run = prepared(GIVEN)
    recorder = RecordingWriter(run, tmp_path / "half")
    for goal in (0, 15):
        while run.store.counts.min() < goal or run.steps < 20:
            run.take(8)
        recorder.note(now=True)
    del recorder
    Recording(tmp_path / "half").check()
    assert np.array_equal(finished(resume(tmp_path / "half")).draws, finished(ViewedRun(GIVEN)).draws)


def test_damaged_points_of_a_recording_are_found(tmp_path: Path) -> None:
    recorded(QUICK.replace(draws=2), tmp_path / "given")
    path = tmp_path / "given" / "start.bin"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(BnnvizError, match=r"damaged: start\.bin"):
        Recording(tmp_path / "given").check()
    path.unlink()
    with pytest.raises(BnnvizError, match=r"damaged: start\.bin"):
        Recording(tmp_path / "given").spec()


SLOW = {"start": "mode", "velocity_sd": 0.02}  # from a mode the first draws would be almost one point


@pytest.mark.slow
def test_the_first_draws_from_exact_points_are_right() -> None:
    exact = {"target_settings": {"mean_list": "[3, -2]", "spread": 2.0}, "chains": 1500, "dtype": "float64"}
    source = bnnviz.sample("gaussian", "hmc", draws=3, warmup=60, seed=11, **exact)
    begin = {"settings": SLOW, "warmup": 0, "draws": 2, "seed": 12, **exact}
    run = bnnviz.sample("gaussian", "bps", start=source.draws[:, -1], **begin)
    tests = of_draws(run.draws, KnownAnswers.of(run._run.target))
    assert max(abs(test.z) for test in tests) < limit(1e-4, len(tests), 1500)
    assert bnnviz.sample("gaussian", "bps", **begin).draws.var(0).max() < 0.1


@pytest.mark.parametrize("start", ["0" * 64, [1.0, 2.0], {"recording": "mine"}, 3])
def test_a_start_without_its_points_is_refused(start: object) -> None:
    with pytest.raises(BnnvizError) as caught:
        Spec.from_json({"target": "banana", "start": start})
    assert caught.value.field == "start"


def test_points_of_another_checksum_or_dimension_are_refused() -> None:
    for change in ({"start": "0" * 64}, {"target": "gaussian", "target_settings": {"size": 3}}):
        with pytest.raises(BnnvizError) as caught:
            ViewedRun(GIVEN.replace(**change))
        assert caught.value.field == "start"


def test_bytes_that_are_no_points_are_refused() -> None:
    content = packed(POINTS)
    wrong = (packed(each) for each in (POINTS[0], POINTS[:0], POINTS.astype(int), POINTS * np.nan))
    for each in (b"", b"no array", content[:100], content[:-3], *wrong):
        with pytest.raises(BnnvizError, match="cannot be read"):
            ViewedRun(GIVEN.replace(start_points=each))


@pytest.mark.parametrize("start", ["mine", 3, {"recording": "mine"}, [[1.0], [2.0, 3.0]], [[np.inf, 0.0]]])
def test_python_refuses_what_is_no_array_of_points(start: object) -> None:
    with pytest.raises(BnnvizError) as caught:
        bnnviz.sample("banana", "hmc", start=start)
    assert caught.value.field == "start"


def test_a_link_cannot_contain_points() -> None:
    assert "a link cannot contain" in GIVEN.checked().shareable()
