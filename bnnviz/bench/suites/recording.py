"""What a recording costs the run that it is made of.

One run, in turns of some seconds with its recorder and without it: CPU seconds of the whole process for each step, the
medians of the turns divided. A turn with the recorder begins when all that came before is written, which is not its
cost, and ends with what it has to write itself.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bnnviz.bench.suite import Case, Goal, Row, Suite, Tell
from bnnviz.engine.recorder import Recorder
from bnnviz.engine.run import Run
from bnnviz.engine.shelf import Recording
from bnnviz.spec import Spec

LIMIT = 1.05
_TURN_S = 4.0
_TURNS = 6  # of each kind, at least
_SLICE_S = 0.2  # as on the command line
_SPECS = {
    "plane": Spec(target="banana", sampler="bps", chains=4, draws=200_000),
    "network": Spec(target="network", target_settings={"data": "boston"}, sampler="boomerang", draws=20_000),
    "images": Spec(
        target="images",
        target_settings={"data": "mnist", "network": "lenet5", "train_rows": 400},
        sampler="sgld",
        chains=1,
        draws=2_000,
        warmup=0,
    ),
}


def _overhead(name: str, seconds: float, tell: Tell) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="bnnviz-bench-") as scratch:
        tell(f"{name}: finding its start")
        run = Run(_SPECS[name])
        run.prepare()
        recorder = Recorder(run, Path(scratch) / "run")
        _turn(run, None)
        costs: dict[bool, list[float]] = {True: [], False: []}
        end = time.perf_counter() + seconds
        while not run.finished and (len(costs[False]) < _TURNS or time.perf_counter() < end):
            for kept in (True, False):
                costs[kept].append(_turn(run, recorder if kept else None))
            tell(f"{name}: {len(costs[False])} turns, {run.steps:,} steps")
        recorder.note(now=True)
        size = Recording(recorder.folder).size / 1e6
    ratio = statistics.median(costs[True]) / statistics.median(costs[False])
    yield Row("cpu_s_per_step_recorded", statistics.median(costs[True]), "s")
    yield Row("cpu_s_per_step", statistics.median(costs[False]), "s")
    yield Row("ratio", ratio, "", Goal("<=", LIMIT), {"ratio": ratio, "peer": "the same run without a recorder"})
    yield Row("size", size, "MB", more={"draws": int(run.store.counts.min())})


def _turn(run: Run, recorder: Recorder | None) -> float:
    """Let a run go on for a turn, and return the CPU seconds of each step."""
    if recorder is not None:
        recorder.note(now=True)
    listeners, run.listeners = run.listeners, [] if recorder is None else run.listeners
    begun, first, end = time.process_time(), run.steps, time.perf_counter() + _TURN_S
    while not run.finished and time.perf_counter() < end:
        run.advance(_SLICE_S)
        if recorder is not None:
            recorder.note()
    if recorder is not None:
        recorder.note(now=True)
    cost = (time.process_time() - begun) / max(run.steps - first, 1)
    run.listeners = listeners
    return cost


_CASES: dict[str, Case] = {name: partial(_overhead, name) for name in _SPECS}
SUITE = Suite("recording", "what recording costs a run", _CASES)
