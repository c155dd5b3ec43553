"""Measure sweeps on this machine's workers: what a run costs beside itself, what a second worker brings.

The workers are warm: each has done a short sweep before, which imports what recordings and summaries need. Times are of
the clock, so on a machine that does something else too they say little.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bnnviz.benchmarks.suite import Case, Goal, Row, Suite, Tell
from bnnviz.engine.cluster.jobs.scheduling import Cluster
from bnnviz.engine.sweep.sweep import Sweep
from bnnviz.specs.sweep import SweepSpec

RUNS = 24
TINY, LONG = 5, 1000  # draws of a run
OVERHEAD_S = 0.3


def spec_of(draws: int, runs: int = RUNS) -> SweepSpec:
    """Return a sweep of runs that differ in their seeds."""
    base = {"target": "gaussian", "sampler": "hmc", "chains": 2, "draws": draws, "warmup": 2}
    return SweepSpec.from_json({"base": base, "grid": {"seed": list(range(runs))}})


def timed(spec: SweepSpec, workers: int) -> tuple[float, float]:
    """Return the seconds that a sweep takes on so many warm workers, and the sum of its runs' own."""
    with tempfile.TemporaryDirectory(prefix="bnnviz-bench-") as folder, Cluster(workers=workers) as cluster:
        address = cluster.client.scheduler.address
        for name, wanted in (("warm", spec_of(TINY, 4 * workers)), ("timed", spec)):
            with Sweep(wanted, Path(folder) / name, scheduler=address) as sweep:
                list(sweep.events())
                rows = sweep.rows()
    assert all(row["state"] == "done" for row in rows)
    return sweep.wall, sum(row["seconds"] for row in rows)


def _overhead(seconds: float, tell: Tell) -> Iterator[Row]:
    tell(f"{RUNS} runs of {TINY} draws, one after another.")
    wall, busy = timed(spec_of(TINY), 1)
    more = {"note": f"{RUNS} runs in {wall:.1f} s, their own seconds are {busy:.1f}"}
    yield Row("overhead", (wall - busy) / RUNS, "s/run", Goal("<", OVERHEAD_S), more)


def _workers(seconds: float, tell: Tell) -> Iterator[Row]:
    walls = {}
    for workers in (1, 2):
        tell(f"{RUNS} runs of {LONG} draws on {workers} of the workers.")
        walls[workers], busy = timed(spec_of(LONG), workers)
        yield Row(f"wall_{workers}", walls[workers], "s", more={"note": f"their own seconds are {busy:.1f}"})
    yield Row("ratio_1_to_2", walls[1] / walls[2], "", more={"note": "time of one worker by that of two"})


_CASES: dict[str, Case] = {"overhead": _overhead, "workers": _workers}
SUITE = Suite("sweep", "What a run of a sweep costs beside itself, and what a second worker brings.", _CASES)
