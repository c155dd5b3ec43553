"""Time adaptive importance sampling: CPU seconds for each iteration, beside the arithmetic's, on one thread.

Ionosphere's 33-5-1 network with 50 proposals of 100 draws, whose iteration is mostly the density of 5,000 draws under
50 normal laws in 176 dimensions; and Protein's 9-100-100-1 network with 20 proposals of 20 draws, whose iteration is
one epoch of gradient steps on batches and 400 passes over 27,438 rows. Phases are timed one by one; a figure is the
median over iterations.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from bnnviz.benchmarks.chains import one_thread
from bnnviz.benchmarks.suite import Case, Goal, Row, Suite, Tell
from bnnviz.engine.run.run import Run
from bnnviz.samplers.importance.population import PHASES
from bnnviz.specs.run import Spec

#: CPU seconds that an iteration of the authors' code takes, since it evaluates one draw at a time.
REFERENCE_S = {"ionosphere": 12.0}
GOAL_S = {"ionosphere": 0.5}
GOAL_MB = 1000
_LEAST = 3  # iterations
_RUNS: dict[str, tuple[dict[str, Any], str, dict[str, Any], int]] = {
    "ionosphere": (
        {"data": "pmcnet_ionosphere", "hidden": "5", "prior_sd": 2.54, "initial_weights": "published"},
        "pmcnet",
        {"draws_each": 100, "sigma0": 0.1, "start": "random"},
        50,
    ),
    "protein": (
        {"data": "pmcnet_protein", "hidden": "100-100", "activation": "relu", "initial_weights": "published"},
        "pmcnet_light",
        {"draws_each": 20, "sigma0": 1e-3, "start": "random"},
        20,
    ),
}


def _case(name: str, seconds: float, tell: Tell) -> Iterator[Row]:
    """Measure the iterations of one run."""
    target, sampler, settings, chains = _RUNS[name]
    with one_thread():
        run = Run(Spec("network", target, sampler, settings, chains=chains, draws=None, warmup=0))
        run.prepare()
        tell(f"{run.sampler.title}, {chains} proposals of {settings['draws_each']} draws, {run.target.dim:,} weights.")
        run.threads = 1
        spent = _phases(run, seconds)
        yield from _rows(name, run, spent)
        if name in GOAL_S:
            tell("The products of whitening alone, in turns of the same size.")
            floor = _floor(run)
            share = floor / sum(np.median(spent, axis=0))
            yield Row("floor_cpu_s", floor, "s", more={"share": share})
    # Linux counts in kilobytes, macOS in bytes.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
    yield Row("peak_memory", peak, "MB", Goal("<", GOAL_MB) if name in GOAL_S else None)


def _phases(run: Run, seconds: float) -> np.ndarray:
    """Return CPU seconds (iterations, phases) of one iteration after another."""
    begun, spent = time.perf_counter(), []
    while len(spent) < _LEAST or time.perf_counter() - begun < seconds:
        each = []
        for _ in PHASES:
            before = time.process_time()
            run.step_proposal()
            each.append(time.process_time() - before)
        spent.append(each)
    return np.array(spent)


def _rows(name: str, run: Run, spent: np.ndarray) -> Iterator[Row]:
    each = np.median(spent, axis=0)
    total = float(np.median(spent.sum(1)))
    more: dict[str, Any] = {"sampler": run.spec.sampler, "chains": run.spec.chains, "cpu_s_per_iteration": total}
    if name in REFERENCE_S:
        more |= {"peer": "authors' code, measured on another machine", "ratio": REFERENCE_S[name] / total}
    yield Row("iteration_cpu_s", total, "s", Goal("<=", GOAL_S[name]) if name in GOAL_S else None, more)
    for phase, value in zip(PHASES, each, strict=True):
        yield Row(f"{phase}_cpu_s", float(value), "s")


def _floor(run: Run, rounds: int = 5) -> float:
    """Return CPU seconds of products as large as the triangles of all factors times all draws."""
    count, dim = run.spec.chains, run.target.dim
    points = torch.randn(run.state.logs.numel(), dim)
    # Half of a square is as much work as a triangle.
    half = torch.randn(dim, dim // 2)
    out = torch.empty(len(points), dim // 2)
    spent = []
    for _ in range(rounds):
        before = time.process_time()
        for _ in range(count):
            torch.mm(points, half, out=out)
        spent.append(time.process_time() - before)
    return float(np.median(spent))


_CASES: dict[str, Case] = {name: partial(_case, name) for name in _RUNS}
SUITE = Suite("population", "PMCnet: CPU seconds for each iteration, phase by phase, and the arithmetic floor", _CASES)
