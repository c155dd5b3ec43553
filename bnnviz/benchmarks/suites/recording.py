"""Measure what a recording costs the run that it is made of.

Two runs of one spec, which make the same steps, in turns, one with its writer and one without: CPU seconds of the
whole process for each step. Each turn is divided by the one beside it, and of these ratios there is the median. The two
change which of them is first, and a first turn of both, in which packages are imported, is not counted.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bnnviz.benchmarks.suite import Case, Goal, Row, Suite, Tell
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.recording.writer import RecordingWriter
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec

LIMIT = 1.05
_TURN_S = 10.0  # some writes long
_TURNS = 6  # of each, at least
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
        recorded, alone = ViewedRun(_SPECS[name]), ViewedRun(_SPECS[name])
        writer = RecordingWriter(recorded, Path(scratch) / "run")
        for run in (recorded, alone):
            run.prepare()
        pair = ((recorded, writer), (alone, None))
        costs: list[list[float]] = []
        end = time.perf_counter() + seconds
        while not recorded.finished and (len(costs) <= _TURNS or time.perf_counter() < end):
            way = 1 if len(costs) % 2 else -1
            costs.append([_turn(*one) for one in pair[::way]][::way])
            tell(f"{name}: {len(costs)} turns, {recorded.steps:,} steps")
        writer.note(now=True)
        size = Recording(writer.folder).size / 1e6
    with_it, without = (statistics.median(turns) for turns in zip(*costs[1:], strict=True))
    ratios = [turns[0] / turns[1] for turns in costs[1:]]
    yield Row("cpu_s_per_step_recorded", with_it, "s")
    yield Row("cpu_s_per_step", without, "s")
    ratio = statistics.median(ratios)
    more = {"ratio": ratio, "peer": "the same run without a writer", "sd": statistics.stdev(ratios)}
    yield Row("ratio", ratio, "", Goal("<=", LIMIT), more)
    yield Row("size", size, "MB", more={"draws": int(recorded.store.counts.min())})


def _turn(run: ViewedRun, writer: RecordingWriter | None) -> float:
    """Let a run go on for a turn, and return the CPU seconds of each step."""
    begun, first, end = time.process_time(), run.steps, time.perf_counter() + _TURN_S
    while not run.finished and time.perf_counter() < end:
        run.advance(_SLICE_S)
        if writer is not None:
            writer.note()
    return (time.process_time() - begun) / max(run.steps - first, 1)


_CASES: dict[str, Case] = {name: partial(_overhead, name) for name in _SPECS}
SUITE = Suite("recording", "what recording costs a run", _CASES)
