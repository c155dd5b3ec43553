"""The PDMP samplers alone: events, evaluations, path time and effective draws for each CPU second.

Each figure is of a whole run, its draws and counts included, on one thread; nobody looks on. A case is a target; its
rows are named after sampler, bound and number of chains.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.bench.chains import one_thread
from bnnviz.bench.peers import Peer, measure
from bnnviz.bench.suite import Case, Goal, Row, Suite, Tell
from bnnviz.engine.run import Run
from bnnviz.spec import Spec
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
#: Ten times (four times with grid on the Gaussian) the events of the papers' code and of pdmp-jax, a CPU second of a
#: quiet core each.
GOALS = {
    ("toy_a", "bps", "interpolated", 64): Goal(">=", 8_500),
    ("toy_a", "boomerang", "interpolated", 64): Goal(">=", 3_000),
    ("gaussian-50", "bps", "exact", 256): Goal(">=", 470_000),
    ("gaussian-50", "bps", "grid", 256): Goal(">=", 188_000),
}


def _case(name: str, seconds: float, tell: Tell) -> Iterator[Row]:
    """Measure every sampler, bound and number of chains on one target."""
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
                    rows = _measured(name, sampler, bound, chains, seconds, tell)
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
    more = {"peer": rival.name, "ratio": ratio, "note": f"{ratio:.3g} times one chain of {rival.name}"}
    return replace(row, more=row.more | more)


def _measured(name: str, sampler: str, bound: str, chains: int, seconds: float, tell: Tell) -> Iterator[Row]:
    spec = Spec(
        **TARGETS[name],
        sampler=sampler,
        settings={"bound": bound, "start": "random", "mode_steps": 200},
        chains=chains,
        draws=None,
        warmup=0,
        device="cpu",
    ).checked()
    run = Run(spec)
    if chains * run.target.examples * run.target.dim > MOST_NUMBERS:
        return
    tell(f"{sampler}, {bound}, {chains} chains on {name}.")
    _tuned(run, PATIENCE * seconds)
    before, events, steps = _path_time(run), run.tally.events, run.steps
    used, end = time.process_time(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        run.advance(SLICE_S)
    used = time.process_time() - used
    more = {"sampler": sampler, "bound": bound, "chains": chains, "tuned": run.phase != "tuning"}
    label, goal = f"{sampler}_{bound}_{chains}", GOALS.get((name, sampler, bound, chains))
    yield Row(f"{label}_events", (run.tally.events - events) / used, "1/s", goal, more)
    yield Row(f"{label}_evaluations", chains * (run.steps - steps) / used, "1/s", more=more)
    yield Row(f"{label}_path", (_path_time(run) - before) / used, "time/s", more=more)
    draws = run.draws[..., 0]
    ess = diagnostics.ess(draws) if draws.shape[1] >= 4 else float("nan")
    yield Row(f"{label}_ess", ess / used, "1/s", more=more)


def _tuned(run: Run, patience: float) -> None:
    """Work until the tuning is done; a run that is not by then is measured as it is."""
    run.prepare()
    end = time.perf_counter() + patience
    while run.phase == "tuning" and time.perf_counter() < end:
        run.advance(SLICE_S)


def _path_time(run: Run) -> float:
    """Return the path time of all chains together."""
    return float((run.state.clock + run.state.s).sum())


_CASES: dict[str, Case] = {name: partial(_case, name) for name in TARGETS}
SUITE = Suite("pdmp", "Events and effective draws of the PDMP samplers for each CPU second.", _CASES)
