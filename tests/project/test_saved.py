"""What an earlier version saved or shared still opens: recordings, checkpoints, films, saved runs and links."""

from __future__ import annotations

import io
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import bnnviz
from bnnviz.engine.recording import archive
from bnnviz.engine.run.run import Run
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec

SAVED = Path(__file__).resolve().parents[1] / "saved"
DRAWS = {"bps": 40, "network": 30, "half": 97}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Take all recordings in."""
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    for name in DRAWS:
        archive.unpack(SAVED / f"{name}.zip", name)
    return tmp_path


@pytest.mark.parametrize("name", DRAWS)
def test_a_recording_is_sound_and_its_spec_runs_today(home: Path, name: str) -> None:
    """Its draws are others today: warm-ups and the grid bound have changed since."""
    recording = bnnviz.recording(name)
    recording.check()
    draws = recording.draws
    assert draws.shape[:2] == (2, DRAWS[name])
    run = ViewedRun(Spec.from_json(recording.header["spec"] | {"draws": DRAWS[name]}).checked())
    while not run.finished:
        run.advance(0.05)
    assert run.draws.shape == draws.shape


def test_a_run_goes_on_from_its_checkpoint(home: Path) -> None:
    before = bnnviz.recording("half").draws
    run = bnnviz.resume("half")
    while run.draws.shape[1] < 120:
        time.sleep(0.01)
    run.stop()
    np.testing.assert_array_equal(run.draws[:, : DRAWS["half"]], before)


with zipfile.ZipFile(SAVED / "checkpoints.zip") as _archive:
    CHECKPOINTS = {name: _archive.read(name) for name in _archive.namelist()}
MADE = np.load(io.BytesIO(CHECKPOINTS.pop("draws.npz")))


#: In the middle of a warm-up that is another one today: it begins anew with what had been learnt.
BEGINS_ANEW = ("nuts64.early", "hmcm.early", "func.early")


#: Under the grid bound, which is another one today.
OTHER_BOUND = tuple(
    f"{name}.{when}" for name in ("bps", "boomadapt", "sigmanet", "held", "batches") for when in ("early", "late")
)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_an_old_checkpoint_goes_on_with_the_draws_of_its_time(name: str) -> None:
    """Of each kind of state, in the warm-up and after it."""
    run = Run.restore(CHECKPOINTS[name])
    known = run.state.adaptation.step_size if name in BEGINS_ANEW else None
    while not run.finished:
        run.advance(0.05)
    made = MADE[name.partition(".")[0]]
    if known is None and name not in OTHER_BOUND:
        np.testing.assert_allclose(run.draws, made, rtol=1e-4, atol=1e-4)
        return
    assert run.draws.shape == made.shape and np.isfinite(run.draws).all()
    assert run.phase == "done" and (known is None or known > 0)


def test_a_run_sets_out_from_a_recording(home: Path) -> None:
    draws = bnnviz.recording("network").draws
    run = bnnviz.sample("network", "hmc", target_settings={"data": "toy_c", "hidden": "3"}, draws=2, start="network")
    assert run.draws.shape[2] == draws.shape[2]


@pytest.mark.parametrize("saved", ["film.npz", "run.nc"])
def test_a_film_and_a_saved_run_become_a_page(saved: str, tmp_path: Path) -> None:
    assert bnnviz.replay(SAVED / saved, tmp_path / "page.html", frames=5).stat().st_size > 1_000_000


def test_a_link_is_read() -> None:
    text = "target=network&sampler=nuts&t.hidden=4&chains=2&draws=1000&seed=3"
    query = {name: [value] for name, _, value in (part.partition("=") for part in text.split("&"))}
    spec, sentences = Spec.from_json({"target": "banana", "sampler": "bps"}).read_query(query)
    assert sentences == []
    assert (spec.target, spec.sampler, spec.target_settings["hidden"], spec.chains, spec.seed) == (
        *("network", "nuts", "4"),
        *(2, 3),
    )
