"""Continue recorded runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

from bnnviz.engine.automatic.tables import Limit
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.run.run import Run
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.samplers import Sampler
from bnnviz.targets import Target

R = TypeVar("R", bound=Run)


def resume(
    folder: str | os.PathLike[str],
    *,
    target: Target | None = None,
    sampler: Sampler | None = None,
    run_class: type[R] = ViewedRun,
) -> R:
    """Restore the run of a recording, which continues with the same draws, up to its time limit if it has one."""
    recording = Recording(Path(folder))
    run = run_class.restore(recording.checkpoint(), target=target, sampler=sampler)
    if run.spec.draws is not None:
        most = int(run.store.counts.max())
        draws, logs, stats = (
            recording.read_draws(most),
            recording.read_log_weights(most),
            recording.read_sample_stats(most),
        )
        if most and (draws is None or draws.shape != (run.spec.chains, most, run.target.dim)):
            raise BnnvizError(f"The recording {folder} lacks draws that its checkpoint refers to.", "run")
        if most:
            run.refill(draws, logs, stats)
    Limit.resume(run)
    return run
