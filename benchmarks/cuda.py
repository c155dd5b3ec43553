"""Measure samplers on a GPU: throughput of eager, compiled and captured steps.

Every case also runs on the CPU with reduced sizes, as a test; each row names its device. Times are medians: wall-clock
times on a GPU, with an empty queue before and after, and CPU times of one thread on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from benchmarks.budget import medians, one_thread
from benchmarks.rows import Case, Report, Row
from bnnviz.engine.compilation.captured_step import CapturedKernel
from bnnviz.engine.compilation.compiled_step import Compilation
from bnnviz.engine.run.run import Run
from bnnviz.specs.run import Spec

#: The network of one input, 50 tanh units and one output.
NETWORK: dict[str, Any] = {"target": "network", "target_settings": {"data": "toy_c", "hidden": "50"}}
SAMPLERS: dict[str, dict[str, Any]] = {
    "nuts": {"step_size": 0.01, "metric": "unit"},
    "bps": {"start": "random"},
}


class Sizes(NamedTuple):
    """Sizes for a device: chains, and chains with compiled steps."""

    chains: tuple[int, ...]
    compiled: tuple[int, ...]


SIZES = {
    "cpu": Sizes((1, 16), (16,)),
    "cuda": Sizes((1, 4, 16, 64, 256, 1024, 4096, 16_384), ()),
}


def device() -> torch.device:
    """Return the measured device: a GPU if available."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def chains(seconds: float, report: Report) -> Iterator[Row]:
    """Measure steps of the network with 1 to 16,384 chains: eager, compiled or captured.

    The result is the time of one gradient of every chain, including its part of a step.
    """
    sizes = SIZES[device().type]
    with one_thread():
        for sampler in SAMPLERS:
            for count in sizes.chains:
                report(f"{sampler}, {count} chains on {device().type}.")
                yield from _steps(sampler, count, count in sizes.compiled, seconds, report)


def _steps(sampler: str, count: int, compiles: bool, seconds: float, report: Report) -> Iterator[Row]:
    """Measure steps for one number of chains with each method, in turns."""
    run = _tuned(sampler, count)
    ways: dict[str, Callable[[], object]] = {"eager": _StepCall(run, run.sampler)}
    if compiles:
        compilation = Compilation(run.sampler, run.state, 1)
        compilation.wait()
        if compilation.kernel is None:
            report(str(compilation.error))
        else:
            ways["compiled"] = _StepCall(run, compilation.kernel)
    try:
        ways["captured"] = _StepCall(run, CapturedKernel(run.sampler, run.state, run.numbers))
    except RuntimeError as error:
        report(f"A step of {sampler} could not be captured ({str(error).splitlines()[0]}).")
    each = run.sampler.gradients_per_step / run.target.examples
    used = medians(list(ways.values()), seconds, run.device)
    for way, took in zip(ways, used, strict=True):
        more = {"sampler": sampler, "chains": count, "includes": "steps alone; compilation and tuning excluded"}
        yield _row(f"{sampler}_{count}_{way}", 1e6 * took / each, "us/gradient", **more)


class _StepCall:
    """Take a step at each call, continuing from the last one."""

    def __init__(self, run: Run, kernel: Any) -> None:
        self._numbers, self._state, self._kernel = run.numbers, run.state, kernel

    def __call__(self) -> None:
        self._state, _ = self._kernel.step(self._numbers, self._state)


def _spec(sampler: str, count: int) -> Spec:
    spec = Spec(**NETWORK, sampler=sampler, settings=SAMPLERS[sampler], chains=count, draws=None, warmup=0)
    return spec.replace(device=device().type).checked()


def _tuned(sampler: str, count: int) -> Run:
    """Return a run that samples; its tuning is cut short, since the timing does not depend on it."""
    run = Run(_spec(sampler, count))
    run.prepare()
    if run.phase == "tuning":
        run.state = run.sampler.freeze(run.numbers, run.sampler.end_window(run.numbers, run.state, True))
    return run


def _row(metric: str, value: float, unit: str, **more: Any) -> Row:
    return Row(metric, value, unit, more={"device": _name(), **more})


def _name() -> str:
    """Return the name of the device in rows."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


CASES: dict[str, Case] = {"chains": chains}
