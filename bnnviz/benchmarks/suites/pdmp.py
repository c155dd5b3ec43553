"""Measure the PDMP samplers alone: events, evaluations, path time, effective draws for each CPU second.

Each figure is of a whole run, its draws and counts included, on one thread; nobody looks on. A case is a target; its
rows are named after sampler, bound and number of chains.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bnnviz import diagnostics, optional
from bnnviz.benchmarks.chains import one_thread
from bnnviz.benchmarks.peers import Peer, measure
from bnnviz.benchmarks.suite import Case, Goal, Row, Suite, Tell
from bnnviz.engine.run.run import Run
from bnnviz.specs.run import Spec
from bnnviz.targets import REGISTRY, Target

CHAINS = (1, 16, 64, 256, 4096)
MOST_NUMBERS = 256 * 500 * 321  # chains x data rows x weights of a step: beyond it a step takes seconds
SLICE_S = 0.1
PATIENCE = 4  # times the seconds of a measurement: so long the tuning may last
TARGETS: dict[str, dict[str, Any]] = {
    "gaussian-50": {"target": "gaussian", "target_settings": {"size": 50, "correlation": 0.5}, "dtype": "float64"},
    "banana": {"target": "banana", "dtype": "float64"},
    "toy_a": {"target": "network", "target_settings": {"data": "toy_a", "hidden": "25-10"}},
    "boston": {"target": "network", "target_settings": {"data": "boston"}},
}
KERNELS = (
    ("bps", "grid"),
    ("bps", "interpolated"),
    ("bps", "exact"),
    ("sigma_bps", "grid"),
    ("zigzag", "grid"),
    ("zigzag", "exact"),
    ("boomerang", "grid"),
    ("boomerang", "interpolated"),
)


class Setup(NamedTuple):
    """What is measured: a target of `TARGETS`, a sampler, its bound, the number of chains."""

    target: str
    sampler: str
    bound: str
    chains: int


#: Measured with compiled steps too. The goals are ten times (four times with one chain, and with grid on the Gaussian)
#: the events of the papers' code and of pdmp-jax, a CPU second of a quiet core each.
COMPILED: dict[Setup, Goal | None] = {
    Setup("gaussian-50", "bps", "exact", 1): None,
    Setup("gaussian-50", "bps", "exact", 256): Goal(">=", 470_000),
    Setup("gaussian-50", "bps", "grid", 256): Goal(">=", 188_000),
    Setup("banana", "bps", "grid", 64): None,
    Setup("toy_a", "bps", "interpolated", 1): Goal(">=", 3_440),
    Setup("toy_a", "bps", "interpolated", 64): Goal(">=", 8_500),
    Setup("toy_a", "bps", "grid", 64): None,
    Setup("toy_a", "boomerang", "interpolated", 64): Goal(">=", 3_000),
    Setup("boston", "boomerang", "grid", 16): None,
}


def _case(name: str, seconds: float, tell: Tell) -> Iterator[Row]:
    """Measure every sampler, bound and number of chains on one target."""
    optional.check("arviz_stats", "Effective draws need")
    with one_thread():
        rivals = {}
        for peer in measure(_target(name), seconds, tell):
            rivals[peer.sampler] = peer
            label = f"{peer.name.replace(' ', '_')}_{peer.sampler}".strip("_")
            yield from (
                Row(f"{label}_{what}", value, "1/s", more={"sampler": peer.sampler, "chains": 1, "peer": peer.name})
                for what, value in (("events", peer.events), ("ess", peer.ess))
                if np.isfinite(value)
            )
        for sampler, bound in KERNELS:
            if bound != "exact" or TARGETS[name]["target"] == "gaussian":
                for chains in CHAINS:
                    rows = _measured(Setup(name, sampler, bound, chains), seconds, tell)
                    yield from (_beside(row, rivals.get(sampler)) for row in rows)


def _target(name: str) -> Target:
    spec = Spec(**TARGETS[name], sampler="bps").checked()
    return REGISTRY.get(spec.target)(**spec.target_settings)


def _beside(row: Row, rival: Peer | None) -> Row:
    """Return a row with its ratio to what a peer reached."""
    known = {} if rival is None else {"events": rival.events, "ess": rival.ess}
    peer = known.get(row.metric.rsplit("_", 1)[1])
    if peer is None:
        return row
    ratio = row.value / peer
    notes = [row.more.get("note"), f"{ratio:.3g} times one chain of {rival.name}"]
    more = {"peer": rival.name, "ratio": ratio, "note": "; ".join(filter(None, notes))}
    return replace(row, more=row.more | more)


def _measured(setup: Setup, seconds: float, tell: Tell) -> Iterator[Row]:
    """Measure a setup with each kernel, in turns of a slice, so that a machine's moods strike them alike."""
    runs = [_begun(setup, kernel) for kernel in ("eager", "compiled")[: 1 + (setup in COMPILED)]]
    if setup.chains * runs[0].target.examples * runs[0].target.dim > MOST_NUMBERS:
        return
    tell(f"{setup.sampler}, {setup.bound}, {setup.chains} chains on {setup.target}.")
    for run in runs:
        _tuned(run, PATIENCE * seconds)
    meters = [_RunMeter(run) for run in runs]
    end = time.perf_counter() + seconds * len(runs)
    while time.perf_counter() < end:
        for meter in meters:
            meter.work()
    label, first = f"{setup.sampler}_{setup.bound}_{setup.chains}", meters[0].rates()["events"]
    yield from meters[0].rows(label, setup, None, "")
    for meter in meters[1:]:
        note = f"{meter.rates()['events'] / first:.3g} times eager"
        yield from meter.rows(f"{label}_{meter.run.kernel}", setup, COMPILED[setup], note)


def _begun(setup: Setup, kernel: str) -> Run:
    spec = Spec(
        **TARGETS[setup.target],
        sampler=setup.sampler,
        settings={"bound": setup.bound, "start": "random", "mode_steps": 200},
        chains=setup.chains,
        draws=None,
        warmup=0,
        device="cpu",
        kernel=kernel,
    ).checked()
    run = Run(spec)
    run.wait_for_compile = True
    return run


class _RunMeter:
    """What a run does for each CPU second of its own."""

    def __init__(self, run: Run) -> None:
        self.run, self._used = run, 0.0
        self._path, self._events, self._steps = _path_time(run), run.sampler_stats.events, run.steps

    def work(self) -> None:
        """Work for a slice."""
        used = time.process_time()
        self.run.advance(SLICE_S)
        self._used += time.process_time() - used

    def rates(self) -> dict[str, float]:
        """Return events, evaluations and path time of all chains, and effective draws of the first coordinate."""
        run, draws = self.run, self.run.draws[..., 0]
        done = {
            "events": run.sampler_stats.events - self._events,
            "evaluations": run.spec.chains * (run.steps - self._steps),
            "path": _path_time(run) - self._path,
            "ess": diagnostics.ess(draws) if draws.shape[1] >= 4 else float("nan"),
        }
        return {what: number / self._used for what, number in done.items()}

    def rows(self, label: str, setup: Setup, goal: Goal | None, note: str) -> Iterator[Row]:
        """Return the rates as rows of the suite's table."""
        more = {"sampler": setup.sampler, "bound": setup.bound, "chains": setup.chains, "kernel": self.run.kernel}
        more |= {"tuned": self.run.phase != "tuning"} | ({"note": note} if note else {})
        for what, rate in self.rates().items():
            unit = "time/s" if what == "path" else "1/s"
            yield Row(f"{label}_{what}", rate, unit, goal if what == "events" else None, more)


def _tuned(run: Run, patience: float) -> None:
    """Work until the tuning is done; a run that is not after so many CPU seconds is measured as it is."""
    run.prepare()
    end = time.process_time() + patience
    while run.phase == "tuning" and time.process_time() < end:
        run.advance(SLICE_S)
    if run.phase != "tuning":
        run.step_proposal()  # which waits for a compiled step


def _path_time(run: Run) -> float:
    """Return the path time of all chains together."""
    return float((run.state.clock + run.state.s).sum())


_CASES: dict[str, Case] = {name: partial(_case, name) for name in TARGETS}
SUITE = Suite("pdmp", "Events and effective draws of the PDMP samplers for each CPU second.", _CASES)
