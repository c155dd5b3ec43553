"""Measure samplers on a GPU: launch costs, and throughput of eager, compiled and captured steps.

Every case also runs on the CPU with reduced sizes, as a test; each row names its device. Times are medians: wall-clock
times on a GPU, with an empty queue before and after, and CPU times of one thread on a CPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import util
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks import peers
from benchmarks.budget import medians, one_thread
from benchmarks.rows import Case, Report, Row
from bnnviz.engine.compilation.captured_step import CapturedKernel
from bnnviz.engine.compilation.compiled_step import Compilation
from bnnviz.engine.run.run import Run
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.models import image_network
from bnnviz.specs.run import Spec
from bnnviz.targets import BNN

#: The network of one input, 50 tanh units and one output.
NETWORK: dict[str, Any] = {"target": "network", "target_settings": {"data": "toy_c", "hidden": "50"}}
SAMPLERS: dict[str, dict[str, Any]] = {
    "nuts": {"step_size": 0.01, "metric": "unit"},
    "bps": {"start": "random"},
}
FRAME_S = 0.05
VIEWS = ["status", "trace", "prediction"]
_TINY, _CALLS = 8, 200


class Sizes(NamedTuple):
    """Sizes for a device: chains, chains with compiled steps, chains of LeNet-5, and the side of a matrix."""

    chains: tuple[int, ...]
    compiled: tuple[int, ...]
    lenet: tuple[int, ...]
    matrix: int


SIZES = {
    "cpu": Sizes((1, 16), (16,), (1, 2), 512),
    "cuda": Sizes((1, 4, 16, 64, 256, 1024, 4096, 16_384), (), (1, 4, 16, 64), 8192),
}


def device() -> torch.device:
    """Return the measured device: a GPU if available."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def floor(seconds: float, report: Report) -> Iterator[Row]:
    """Measure a small operation, called directly and within a graph: launches bound the speed of steps."""
    x = torch.ones(_TINY, device=device())
    report(f"{_CALLS} small operations on {x.device.type}.")

    def calls() -> None:
        for _ in range(_CALLS):
            x.mul_(1.0)

    with one_thread():
        (each,) = medians([calls], seconds, x.device)
        yield _row("launch", 1e6 * each / _CALLS, "us")
        if x.is_cuda:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                calls()
            (each,) = medians([graph.replay], seconds, x.device)
            yield _row("launch_in_graph", 1e6 * each / _CALLS, "us")


def peak(seconds: float, report: Report) -> Iterator[Row]:
    """Measure the operations per second of a large matrix product, the reference for shares."""
    side = SIZES[device().type].matrix
    report(f"Products of matrices of {side} rows on {device().type}.")
    for dtype in (torch.float32, torch.float64):
        yield _row(f"matmul_{str(dtype).removeprefix('torch.')}", 1e-9 * _peak(dtype, seconds), "GFLOP/s")


def _peak(dtype: torch.dtype, seconds: float) -> float:
    """Return the floating-point operations per second of a matrix product."""
    side = SIZES[device().type].matrix
    a = torch.ones(side, side, device=device(), dtype=dtype)
    with one_thread():
        (each,) = medians([lambda: a @ a], seconds, device())
    return 2 * side**3 / each


def chains(seconds: float, report: Report) -> Iterator[Row]:
    """Measure steps of the network with 1 to 16,384 chains: eager, compiled or captured.

    The result is the time of one gradient of every chain, including its part of a step.
    """
    most, sizes = _peak(torch.float32, seconds), SIZES[device().type]
    with one_thread():
        for sampler in SAMPLERS:
            for count in sizes.chains:
                report(f"{sampler}, {count} chains on {device().type}.")
                yield from _steps(sampler, count, count in sizes.compiled, most, seconds, report)
    yield from _jax_rows(sizes.chains, seconds, report)


def _steps(sampler: str, count: int, compiles: bool, most: float, seconds: float, report: Report) -> Iterator[Row]:
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
    # For all rows and chains per step: a forward pass and about two backward, with a product and a sum for each weight.
    each = run.sampler.gradients_per_step / run.target.examples
    work = 2 * 3 * each * count * run.target.examples * run.target.row_work
    used = medians(list(ways.values()), seconds, run.device)
    for way, took in zip(ways, used, strict=True):
        share = work / took / most
        more = {"sampler": sampler, "chains": count, "includes": "steps alone; compilation and tuning excluded"}
        more |= {"peak_share": share, "note": f"{100 * share:.2g} % of the matrix product's rate"}
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


def _jax_rows(counts: tuple[int, ...], seconds: float, report: Report) -> Iterator[Row]:
    """Measure leapfrog steps of the same network by JAX, 16 in one call, if it is installed."""
    if util.find_spec("jax") is None:
        report("JAX is not installed, so there are no rows of it: pip install '.[bench]'.")
        return
    import jax

    target = _tuned("nuts", 1).target
    x, y = target.x.cpu().numpy(), target.y.cpu().numpy().reshape(-1)
    # JAX may be installed only for the CPU while PyTorch uses a GPU.
    more = {"device": jax.devices()[0].device_kind, "peer": "JAX", "includes": "leapfrog steps alone, without trees"}
    for count in counts:
        report(f"JAX, {count} chains.")
        yield _row(f"jax_{count}", 1e6 * _jax_leapfrog(x, y, count, seconds), "us/gradient", chains=count, **more)


def _jax_leapfrog(x: np.ndarray, y: np.ndarray, count: int, seconds: float, steps: int = 16) -> float:
    """Return the median seconds of one leapfrog step of all chains in single precision."""
    import jax

    jnp, size, units = jax.numpy, 0.01, 50

    def potential(theta: Any) -> Any:
        hidden = jnp.tanh(x @ theta[:units].reshape(1, units) + theta[units : 2 * units])
        output = hidden @ theta[2 * units : 3 * units] + theta[-1]
        return 0.5 * jnp.sum((y - output) ** 2) + 0.5 * jnp.sum(theta**2)

    slope = jax.vmap(jax.grad(potential))

    def leapfrog(state: Any, _: Any) -> Any:
        theta, momentum, gradient = state
        momentum = momentum - 0.5 * size * gradient
        theta = theta + size * momentum
        gradient = slope(theta)
        return (theta, momentum - 0.5 * size * gradient, gradient), None

    take = jax.jit(lambda state: jax.lax.scan(leapfrog, state, None, length=steps)[0])
    with peers.precision("float32"):
        theta = jax.random.normal(jax.random.key(0), (count, 3 * units + 1))
        state = theta, theta[::-1], slope(theta)
        on = torch.device("cpu" if jax.default_backend() == "cpu" else "cuda")
        (each,) = medians([lambda: jax.block_until_ready(take(state))], seconds, on)
    return each / steps


BATCH = 100  # images


def lenet5_target() -> BNN:
    """Return the posterior of LeNet-5 on one batch of random images."""
    rng, shape = np.random.default_rng(0), (1, 28, 28)
    images = rng.standard_normal((BATCH, *shape), dtype=np.float32)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = image_network("lenet5", shape, 10)
    return BNN(module, (images, rng.integers(10, size=BATCH)), "categorical")


def gradients(target: BNN, chains: int) -> Callable[[], object]:
    """Return a call that computes a gradient of every chain on separate batches."""
    theta = target.initial(chains, torch.Generator(target.device).manual_seed(0))
    batch = target.batch(torch.arange(len(target.y), device=target.device).expand(chains, -1))
    return lambda: batch.gradient(theta)


def lenet5(seconds: float, report: Report) -> Iterator[Row]:
    """Measure gradients of LeNet-5, with a separate batch for each chain."""
    target = lenet5_target().to(device(), torch.float32)
    with one_thread():
        for count in SIZES[device().type].lenet:
            report(f"LeNet-5, {BATCH} images a chain, {count} chains on {device().type}.")
            (each,) = medians([gradients(target, count)], seconds, device())
            yield _row(f"lenet5_{count}", count * BATCH / each, "images/s", chains=count)


def live(seconds: float, report: Report) -> Iterator[Row]:
    """Measure a live run with 20 requested frames per second, and their cost in steps."""
    report(f"A live run on {device().type}, alone and asked for {1 / FRAME_S:g} frames a second.")
    alone, _ = _pulled(seconds, watched=False)
    rate, late = _pulled(seconds, watched=True)
    yield _row("steps_alone", alone, "1/s")
    yield _row("steps_watched", rate, "1/s", ratio=rate / alone, note=f"{rate / alone:.2g} of its steps alone")
    yield _row("frame_median", 1e3 * float(np.median(late)), "ms")
    yield _row("frames", len(late) / seconds, "1/s")


def _pulled(seconds: float, watched: bool) -> tuple[float, list[float]]:
    """Return the steps per second of a live run, and the seconds per frame."""
    run = ViewedRun(_spec("bps", 64 if device().type == "cuda" else 4))
    run.prepare()
    run.advance(0.2)
    late: list[float] = []
    begun, first, due = time.perf_counter(), run.steps, time.perf_counter()
    while time.perf_counter() < begun + seconds:
        run.advance(FRAME_S / 2)
        if watched and time.perf_counter() >= due:
            asked = time.perf_counter()
            run.frame(VIEWS)
            late.append(time.perf_counter() - asked)
            due += FRAME_S
    if run.error is not None:
        raise BnnvizError(run.error)
    return (run.steps - first) / (time.perf_counter() - begun), late or [float("nan")]


def _row(metric: str, value: float, unit: str, **more: Any) -> Row:
    return Row(metric, value, unit, more={"device": _name(), **more})


def _name() -> str:
    """Return the name of the device in rows."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


CASES: dict[str, Case] = {"floor": floor, "peak": peak, "chains": chains, "lenet5": lenet5, "live": live}
