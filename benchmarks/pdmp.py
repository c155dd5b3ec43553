"""Measure the PDMP samplers: events, gradients and ESS of the first coordinate per CPU second.

A case is a target; a row is a sampler with a bound and a number of chains, eager or compiled. Gaussians are also
sampled by pdmp-jax with the same number of chains; both use one thread and the target's precision.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from importlib import util
from typing import Any, NamedTuple

import numpy as np

from benchmarks import budget, peers
from benchmarks.rows import Case, Goal, Report, Row
from bnnviz import diagnostics
from bnnviz.engine.run.run import Run
from bnnviz.specs.run import Spec
from bnnviz.targets import REGISTRY

CHAINS = (1, 16, 64, 256, 4096)
PEER_CHAINS = (1, 256)
INCLUDES = "sampling and draws; compilation and tuning excluded"
_MOST_NUMBERS = 256 * 500 * 321  # chains x data rows x weights of a step; above it a step takes seconds
_MOST_KEPT = 40_000_000  # maximum size of the draws of a run
_SLICE_S = 0.1
_PATIENCE = 4  # maximum duration of the tuning, relative to the measurement
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
    """A measured setup: a target of `TARGETS`, a sampler, its bound, the number of chains."""

    target: str
    sampler: str
    bound: str
    chains: int


#: Setups with compiled steps. The goals are ten times (four times for one chain, and for grid on the Gaussian) the
#: events per CPU second of the papers' code and of one chain of pdmp-jax, each on an otherwise idle core.
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


def _case(name: str, seconds: float, report: Report) -> Iterator[Row]:
    """Measure every sampler, bound and number of chains on one target."""
    with budget.one_thread():
        rivals = {}
        for row in _peer(name, seconds, report):
            rivals[row.more["sampler"], row.more["chains"]] = row
            yield row
        for sampler, bound in KERNELS:
            if bound != "exact" or TARGETS[name]["target"] == "gaussian":
                for chains in CHAINS:
                    yield from measured(Setup(name, sampler, bound, chains), seconds, report, rivals)


def _peer(name: str, seconds: float, report: Report) -> Iterator[Row]:
    """Measure pdmp-jax, if the target is a Gaussian and the package is installed."""
    spec = Spec(**TARGETS[name], sampler="bps").checked()
    quadratic = REGISTRY.get(spec.target)(**spec.target_settings).quadratic()
    if quadratic is None:
        return
    if util.find_spec("pdmp_jax") is None:
        report("pdmp-jax is not installed, so there are no rows of it: pip install '.[bench]'.")
        return
    mean, precision = (part.double().cpu().numpy() for part in quadratic)
    for kind in ("bps", "zigzag", "boomerang"):
        for chains in PEER_CHAINS:
            report(f"{kind} of pdmp-jax, {chains} chains on {name}.")
            found = peers.pdmp_jax(kind, mean, precision, seconds, chains, spec.dtype)
            if found.compiled:
                report(f"pdmp-jax compiled {found.compiled} programs while the clock ran: its rows are not comparable.")
            events = budget.per(chains * found.draws.shape[1], found.cpu_seconds)
            ess = budget.per(diagnostics.ess(found.draws[..., 0].astype(float)), found.cpu_seconds)
            yield _row(f"pdmp-jax_{kind}_{chains}", events, ess, {"sampler": kind, "chains": chains})


def _row(metric: str, events: float, ess: float, more: dict[str, Any], goal: Goal | None = None) -> Row:
    rates = {"device": "cpu", "events_per_cpu_s": events, "ess_per_cpu_s": ess, "includes": INCLUDES}
    return Row(metric, events, "events/CPU s", goal, rates | more)


def measured(setup: Setup, seconds: float, report: Report, rivals: dict[tuple[str, int], Row]) -> Iterator[Row]:
    """Measure a setup with each kernel in alternating slices, so that other load affects both alike."""
    runs = [_begun(setup, kernel) for kernel in ("eager", "compiled")[: 1 + (setup in COMPILED)]]
    if setup.chains * runs[0].target.examples * runs[0].target.dim > _MOST_NUMBERS:
        return
    report(f"{setup.sampler}, {setup.bound}, {setup.chains} chains on {setup.target}.")
    for run in runs:
        _tune(run, _PATIENCE * seconds)
    meters = [_RunMeter(run) for run in runs]
    end = time.perf_counter() + seconds * len(runs)
    while time.perf_counter() < end and not all(run.finished for run in runs):
        for meter in meters:
            meter.work()
    rival = rivals.get((setup.sampler, setup.chains))
    for meter in meters:
        kernel = meter.run.kernel
        label = f"{setup.sampler}_{setup.bound}_{setup.chains}" + ("" if kernel == "eager" else f"_{kernel}")
        rates = meter.rates()
        more = {**setup._asdict(), "kernel": kernel, "dtype": meter.run.spec.dtype, "path_per_cpu_s": rates["path"]}
        more |= {"grads_per_cpu_s": rates["gradients"], "tuned": meter.run.phase != "tuning"}
        if rival is not None:
            ratio, ess = rates["events"] / rival.value, rates["ess"] / rival.more["ess_per_cpu_s"]
            more |= {"peer": "pdmp-jax", "ratio": ratio, "ess_ratio": ess}
            more["note"] = f"{ratio:.3g} times the events and {ess:.3g} times the ESS of pdmp-jax"
        yield _row(label, rates["events"], rates["ess"], more, None if kernel == "eager" else COMPILED[setup])


def _begun(setup: Setup, kernel: str) -> Run:
    spec = Spec(
        **TARGETS[setup.target],
        sampler=setup.sampler,
        settings={"bound": setup.bound, "start": "random", "mode_steps": 200},
        chains=setup.chains,
        warmup=0,
        device="cpu",
        kernel=kernel,
    ).checked()
    size = REGISTRY.get(spec.target)(**spec.target_settings).dim
    run = Run(spec.replace(draws=min(budget.MOST_DRAWS, max(8, _MOST_KEPT // (setup.chains * size)))))
    run.wait_for_compile = True
    return run


class _RunMeter:
    """Measure a run's work per CPU second."""

    def __init__(self, run: Run) -> None:
        self.run, self._used = run, 0.0
        self._path, self._events, self._steps = _path_time(run), run.sampler_stats.events, run.steps

    def work(self) -> None:
        """Advance the run for a slice, if draws remain."""
        if self.run.finished:
            return
        used = time.process_time()
        self.run.advance(_SLICE_S)
        self._used += time.process_time() - used

    def rates(self) -> dict[str, float]:
        """Return events, gradients and path time of all chains, and ESS of the first coordinate."""
        run, draws = self.run, np.asarray(self.run.draws)[..., 0].astype(float)
        done = {
            "events": run.sampler_stats.events - self._events,
            "gradients": run.spec.chains * (run.steps - self._steps),
            "path": _path_time(run) - self._path,
            "ess": diagnostics.ess(draws) if draws.shape[1] >= 4 else float("nan"),
        }
        return {what: budget.per(number, self._used) for what, number in done.items()}


def _tune(run: Run, patience: float) -> None:
    """Run until the tuning is complete, or for at most ``patience`` CPU seconds."""
    run.prepare()
    end = time.process_time() + patience
    while run.phase == "tuning" and time.process_time() < end:
        run.advance(_SLICE_S)
    if run.phase != "tuning":
        run.step_proposal()  # waits for a compiled step


def _path_time(run: Run) -> float:
    """Return the summed path time of all chains."""
    return float((run.state.clock + run.state.s).sum())


CASES: dict[str, Case] = {name: partial(_case, name) for name in TARGETS}
