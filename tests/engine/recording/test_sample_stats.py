"""Statistics of the moves that led to the draws: kept by a run, its checkpoints, recordings and exports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bnnviz.engine.recording import export
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.recording.resume import resume
from bnnviz.engine.recording.writer import RecordingWriter
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec
from tests.driven import finished


def spec(sampler: str = "nuts", **changes: object) -> Spec:
    return Spec(target="gaussian", sampler=sampler, chains=3, **{"draws": 30, "warmup": 5, **changes})


@pytest.fixture(scope="module")
def whole() -> ViewedRun:
    return finished(ViewedRun(spec()))


def test_they_are_of_the_moves_that_led_to_the_draws() -> None:
    """Where HMC rejects the draw is the one before, and what it reports of each move is what is kept."""
    run, reported = ViewedRun(spec("hmc", warmup=0, settings={"step_size": 0.9})), []
    run.listeners.append(
        lambda batch: reported.append(batch.column("acceptance_rate")) if run.phase != "tuning" else None
    )
    finished(run)
    kept = run.sample_stats["acceptance_rate"]
    assert np.array_equal(kept, np.concatenate([part.numpy() for part in reported])[:30].T)
    assert kept.min() < 0.9 and kept.shape == run.draws.shape[:2]


def test_a_recording_holds_them_and_goes_on_with_them(tmp_path: Path, whole: ViewedRun) -> None:
    run = ViewedRun(spec())
    writer = RecordingWriter(run, tmp_path)
    run.prepare()
    while run.store.common(run.alive) < 10:
        run.take(20, 0.5)
    writer.note(now=True)
    del writer
    run = resume(tmp_path)
    writer = RecordingWriter(run, tmp_path)
    finished(run)
    writer.close(summary=False)
    found = Recording(tmp_path).read_sample_stats()
    assert set(found) == set(whole.sample_stats)
    for name, values in whole.sample_stats.items():
        np.testing.assert_array_equal(found[name], values)
    tree = export.to_arviz(Recording(tmp_path))
    assert tree["sample_stats"]["diverging"].dtype == bool
    np.testing.assert_array_equal(tree["sample_stats"]["n_steps"], whole.sample_stats["n_steps"])
