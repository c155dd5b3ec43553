"""Warm starts: where chains set out, that a run needs the other one no more, and that first draws are right."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from truth.calibration import KnownAnswers, limit, of_draws

import bnnviz
from bnnviz.engine.recording import reader
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.recording.replay_frames import past_of_run, read_past, take_frames
from bnnviz.engine.recording.resume import resume
from bnnviz.engine.recording.warm_start import StartPoints, of_run, read, resolved
from bnnviz.engine.recording.writer import RecordingWriter
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.samplers.tree import flat
from bnnviz.specs.run import Spec

SOURCE = Spec(target="banana", sampler="hmc", settings={"num_leapfrog_steps": 3}, chains=3, draws=40, warmup=60, seed=1)
WARM = Spec(target="banana", sampler="bps", chains=5, draws=30, warmup=4, seed=2, start={"recording": "source"})


def begun(spec: Spec) -> ViewedRun:
    """Return the run of a spec, its points taken from the recording that it starts from."""
    return ViewedRun(resolved(spec.checked()))


def finished(run: ViewedRun, recorder: RecordingWriter | None = None) -> ViewedRun:
    while not run.finished:
        run.advance(0.1)
        if recorder is not None:
            recorder.note(now=True)
    return run


def recorded(spec: Spec, folder: Path) -> ViewedRun:
    run = begun(spec)
    recorder = RecordingWriter(run, folder)
    finished(run)
    recorder.close()
    return run


@pytest.fixture(scope="module")
def kept_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept") / "source"
    recorded(SOURCE, folder)
    return folder


@pytest.fixture(scope="module")
def warm(kept_source: Path) -> np.ndarray:
    """Return the draws of the warm start, which have nothing to do with the recording's name."""
    return finished(begun(WARM.replace(start={"recording": str(kept_source)}))).draws


@pytest.fixture
def source(kept_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a recording of the name ``source`` on a shelf of its own."""
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path / "home"))
    return Path(shutil.copytree(kept_source, reader.place("source")))


# --- where chains set out


def test_chains_set_out_from_the_last_draws_in_turn(source: Path) -> None:
    run = begun(WARM)
    run.prepare()
    last = Recording(source).read_draws()[:, -1]
    assert np.array_equal(run.state.x.numpy(), last[[0, 1, 2, 0, 1]])
    assert (run.notes[0].code, run.notes[0].values["sampler"]) == ("warm_start", "hmc")
    few = begun(WARM.replace(chains=2))
    few.prepare()
    assert np.array_equal(few.state.x.numpy(), last[:2])


def test_the_same_spec_gives_the_same_draws(source: Path, warm: np.ndarray) -> None:
    assert np.array_equal(finished(begun(WARM)).draws, warm)
    assert not np.array_equal(finished(begun(WARM.replace(start=None))).draws, warm)


def test_draws_are_chosen_by_the_seed_without_replacement(source: Path) -> None:
    pool = Recording(source).read_draws().reshape(-1, 2)
    first, again, other = (read("source", "draws", 100, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.x, again.x)
    assert not np.array_equal(first.x, other.x)
    assert first.sha256 == other.sha256  # of what they are taken from: one start does for a sweep of seeds
    places = [np.flatnonzero((pool == row).all(1)).tolist() for row in first.x]
    assert all(places)
    # HMC rejects, so that a row may be there more than once; of the 120 rows none is taken twice.
    assert len(np.unique(first.x, axis=0)) > 80
    assert len(np.unique(read("source", "draws", 120, 1).x, axis=0)) == len(np.unique(pool, axis=0))
    assert len(read("source", "draws", 200, 1).x) == 200


@pytest.mark.parametrize(
    "name", ["sgld", "psgld", pytest.param("nuts", marks=pytest.mark.slow), "pmcnet_light", "map", "boomerang"]
)
def test_every_family_sets_out_from_the_points(name: str, source: Path) -> None:
    settings = {"steps": 20} if name == "map" else {}
    run = begun(WARM.replace(sampler=name, settings=settings, draws=2, warmup=0, chains=3))
    run.prepare()
    assert np.allclose(run.state.x.numpy(), Recording(source).read_draws()[:, -1], atol=1e-6)
    finished(run)
    assert len(run.notes) == 1 or name == "boomerang"  # which says something of its centre


@pytest.mark.parametrize("name", ["hmc", "nuts"])
@pytest.mark.parametrize("metric", ["diagonal", "low_rank", "dense", "unit"])
def test_step_size_and_metric_are_kept(name: str, metric: str, tmp_path: Path) -> None:
    spec = SOURCE.replace(sampler=name, settings={"metric": metric}, target="gaussian")
    first = recorded(spec, tmp_path / "first")
    place = {"recording": str(tmp_path / "first")}
    again = finished(begun(spec.replace(start=place, seed=2, chains=5)))
    packed = of_run(first, "last", 5, 2).pack()
    same = finished(ViewedRun(spec.replace(start={"recording": None}, start_points=packed, seed=2, chains=5)))
    for run in (again, same):
        ours, theirs = run.state.adaptation, first.state.adaptation
        assert ours.step_size == theirs.step_size
        assert all(map(torch.equal, flat(ours.metric), flat(theirs.metric)))
        assert "kept_adaptation" in [note.code for note in run.notes]
    assert np.array_equal(again.draws, same.draws)
    for other in ({"settings": {"metric": metric, "target_accept": 0.9}}, {"target": "banana"}):
        run = finished(begun(spec.replace(start=place, seed=2, **other)))
        assert run.state.adaptation.step_size != first.state.adaptation.step_size
        assert "kept_adaptation" not in [note.code for note in run.notes]


def test_chains_go_back_to_their_points_when_the_tuning_ends(source: Path) -> None:
    # Chains that took equally many steps are not spread as the target is, however they began.
    run = begun(WARM)
    run.prepare()
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
def test_a_sampler_that_cannot_set_out_from_points_says_so(name: str, source: Path) -> None:
    run = begun(WARM.replace(sampler=name, settings={}))
    run.prepare()
    assert run.notes[-1].code == "other_start"


# --- it needs the recording no more


@pytest.mark.slow
def test_a_recorded_warm_start_goes_on_without_its_source(source: Path, warm: np.ndarray, tmp_path: Path) -> None:
    run = begun(WARM)
    recorder = RecordingWriter(run, tmp_path / "half")
    run.prepare()
    for goal in (0, 15):
        while run.store.counts.min() < goal or run.steps < 20:
            run.take(8)
        recorder.note(now=True)
    del recorder
    reader.delete("source")
    Recording(tmp_path / "half").check()
    assert np.array_equal(finished(resume(tmp_path / "half")).draws, warm)
    with pytest.raises(BnnvizError, match="There is no recording 'source'"):
        begun(WARM)


def test_replay_and_checkpoint_need_no_source(source: Path, tmp_path: Path) -> None:
    quick = WARM.replace(sampler="hmc", settings={"num_leapfrog_steps": 3}, draws=10)
    run = recorded(quick, tmp_path / "warm")
    early = begun(quick)
    saved = early.checkpoint()
    reader.delete("source")
    assert np.array_equal(finished(ViewedRun.restore(saved)).draws, run.draws)
    past = read_past(tmp_path / "warm")
    assert np.array_equal(finished(begun(past.spec)).draws, run.draws)
    assert take_frames(past, 4).scene["title"] == take_frames(past_of_run(run), 4).scene["title"]
    spec = Recording(tmp_path / "warm").spec()
    assert spec == run.spec
    assert spec.start_points == run.spec.start_points


def test_damaged_points_of_a_recording_are_found(source: Path, tmp_path: Path) -> None:
    recorded(WARM.replace(sampler="hmc", settings={"num_leapfrog_steps": 1}, draws=2), tmp_path / "warm")
    path = tmp_path / "warm" / "start.bin"
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    with pytest.raises(BnnvizError, match=r"damaged: start\.bin"):
        Recording(tmp_path / "warm").check()
    path.unlink()
    with pytest.raises(BnnvizError, match=r"damaged: start\.bin"):
        Recording(tmp_path / "warm").spec()


# --- truth

GAUSSIAN = Spec(
    target="gaussian",
    target_settings={"mean_list": "[3, -2]", "spread": 2.0},
    sampler="hmc",
    chains=1500,
    draws=3,
    warmup=60,
    seed=11,
    dtype="float64",
)
LEVEL = 1e-4
# Slow ones, from a mode: had they not set out from the recording, their first draws would be all but one point.
SLOW = {
    "hmc": {"start": "mode", "step_size": 0.02, "num_leapfrog_steps": 1, "metric": "unit"},
    "bps": {"start": "mode", "velocity_sd": 0.02},
}


def worst(spec: Spec) -> tuple[float, float]:
    """Return the largest z of a run's first draws, and what it exceeds with a probability of 1e-4."""
    run = finished(begun(spec))
    tests = of_draws(run.draws, KnownAnswers.of(run.target))
    return max(abs(test.z) for test in tests), limit(LEVEL, len(tests), spec.chains)


@pytest.fixture(scope="module")
def gaussian(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("truth") / "gaussian"
    recorded(GAUSSIAN, folder)
    return str(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("hmc", "last"),
        ("bps", "draws"),
        *(pytest.param(*p, marks=pytest.mark.slow) for p in (("hmc", "draws"), ("bps", "last"))),
    ],
)
def test_the_very_first_draws_of_a_warm_start_are_right(name: str, points: str, gaussian: str) -> None:
    start = {"recording": gaussian, "points": points}
    spec = GAUSSIAN.replace(sampler=name, settings=SLOW[name], warmup=0, draws=2, seed=12, start=start)
    z, most = worst(spec)
    assert z < most
    assert finished(begun(spec.replace(start=None))).draws.var(0).max() < 0.1


@pytest.mark.parametrize(
    ("name", "settings"),
    [("pmcnet_light", {"draws_each": 50}), pytest.param("bps", {"samples": "events"}, marks=pytest.mark.slow)],
)
def test_points_are_chosen_by_their_weights(name: str, settings: dict, tmp_path: Path) -> None:
    spec = Spec(target="banana", sampler=name, settings=settings, chains=40, draws=500, warmup=100, dtype="float64")
    run = recorded(spec, tmp_path / "weighted")
    weights = run.event_weights() if name == "bps" else np.exp(run.log_weights - run.log_weights.max())
    share = weights.ravel() / weights.sum()
    pool = run.draws.reshape(-1, 2)
    found = read(str(tmp_path / "weighted"), "draws", 20_000, 3).x
    mean, variance = share @ pool, share @ (pool - share @ pool) ** 2
    z = (found.mean(0) - mean) / np.sqrt(variance / len(found))
    assert np.abs(z).max() < 4.2  # p < 1e-4 of two
    spread = (found - mean) ** 2
    assert np.abs((spread.mean(0) - variance) / (spread.std(0) / np.sqrt(len(found)))).max() < 4.2
    if name == "bps":  # at events draws are too wide, which the weights undo
        assert pool[:, 1].var() > variance[1] * 1.05


# --- refusals and remarks


@pytest.mark.parametrize(
    "start",
    [
        "source",
        {"points": "last"},
        {"recording": 3},
        {"recording": ""},
        {"recording": "source", "points": "first"},
        {"recording": "source", "sha256": "abc"},
        {"recording": "source", "step": 3},
        {"recording": "nobody"},
        {"recording": "../source"},
        {"recording": None},
        {"recording": "source", "sha256": "0" * 12},
    ],
)
def test_a_start_that_cannot_be_used_is_refused(start: object, source: Path) -> None:
    with pytest.raises(BnnvizError) as caught:
        begun(Spec.from_json({"target": "banana", "start": start}))
    assert caught.value.field == "start"


@pytest.mark.parametrize("wrong", ["damaged", "empty", "folder", "weighted", "dimensions"])
def test_a_recording_that_cannot_be_started_from_is_refused(wrong: str, source: Path) -> None:
    spec = WARM.replace(start={"recording": wrong})
    if wrong == "damaged":
        shutil.copytree(source, reader.place("damaged"))
        chunks = (reader.place("damaged") / "draws.zarr/posterior/x/c").rglob("*")
        chunk = next(path for path in chunks if path.is_file())
        chunk.write_bytes(chunk.read_bytes()[:-5] + b"12345")
    elif wrong == "empty":
        RecordingWriter(begun(SOURCE), reader.place("empty")).close()
    elif wrong == "folder":
        reader.place("folder").mkdir()
    elif wrong == "weighted":
        recorded(Spec(target="banana", sampler="pmcnet_light", chains=3, draws=20, warmup=5), reader.place("weighted"))
    else:
        spec = WARM.replace(target="gaussian", target_settings={"size": 3})
    with pytest.raises(BnnvizError) as caught:
        begun(spec)
    assert caught.value.field == "start"


def test_failed_chains_are_not_started_from(tmp_path: Path) -> None:
    run = begun(SOURCE)
    recorder = RecordingWriter(run, tmp_path / "failing")
    run.prepare()
    run.take(8)
    run.alive[1] = False
    finished(run)
    recorder.close()
    x = read(str(tmp_path / "failing"), "last", 12, 0).x
    assert np.array_equal(x, run.store.buffer[[0, 2], -1].numpy())
    pool = run.draws.reshape(-1, 2)
    assert all((pool == row).all(1).any() for row in read(str(tmp_path / "failing"), "draws", 12, 0).x)
    run.alive[:] = False
    recorder = RecordingWriter(run, tmp_path / "failed")
    recorder.close(summary=False)
    with pytest.raises(BnnvizError, match="All chains of the recording .* failed"):
        read(str(tmp_path / "failed"), "draws", 12, 0)


def test_a_start_that_is_not_quite_as_it_should_be_is_remarked_on(source: Path) -> None:
    assert len(begun(WARM).notes) == 1
    for change in ({"target": "gaussian"}, {"target_settings": {"bend": 2.0}}):
        assert begun(WARM.replace(**change)).notes[1].code == "other_target_start"
    assert begun(WARM.replace(seed=1)).notes[1].code == "same_seed"


def test_points_travel_as_bytes_without_pickles(source: Path) -> None:
    points = read("source", "draws", 4, 1)
    same = StartPoints.unpack(points.pack())
    assert np.array_equal(points.x, same.x)
    assert (points.sha256, points.about, points.chosen) == (same.sha256, same.about, same.chosen)
    packed = points.pack()
    for content in (b"", b"no archive", packed[:100], packed.replace(b"NUMPY", b"NVMPY")):
        with pytest.raises(BnnvizError, match="cannot be read"):
            begun(WARM.replace(start_points=content))


# --- from Python, the command line, scripts, links and sweeps


@pytest.mark.slow
def test_python_starts_from_a_recording_or_a_run(source: Path, warm: np.ndarray) -> None:
    run = bnnviz.sample("banana", "bps", chains=5, draws=30, warmup=4, seed=2, start="source")
    assert np.array_equal(run.draws, warm)
    assert np.array_equal(bnnviz.sample(WARM.replace(start=None), start=source).draws, warm)
    before = bnnviz.sample(SOURCE)
    after = bnnviz.sample("banana", "bps", chains=5, draws=30, warmup=4, seed=2, start=before)
    assert np.array_equal(after.draws, run.draws)
    assert "a run that was not recorded" in after._run.notes[0].values["source"]
    assert "a link cannot contain" in after.spec.shareable()
    chosen = bnnviz.sample("banana", "hmc", draws=3, seed=2, start=before, start_from="draws")
    assert np.array_equal(of_run(before._run, "draws", 4, 2).x, StartPoints.unpack(chosen.spec.start_points).x)
    with pytest.raises(BnnvizError, match="no draws yet"):
        bnnviz.sample("banana", "hmc", start=bnnviz.start(SOURCE, paused=True).stop())
    with pytest.raises(BnnvizError, match="a recording's name or folder"):
        bnnviz.sample("banana", "hmc", start=3)
