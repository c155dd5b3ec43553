"""Run samplers for a number of CPU seconds, and measure times."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch

from bnnviz.api.run import BackgroundRun, start
from bnnviz.errors import BnnvizError
from bnnviz.targets import Target

CHAINS = 4
#: Maximum number of draws per chain. A run without an end keeps only about 2,000, which would cap the ESS.
MOST_DRAWS = 20_000
_LEAST = 5  # minimum number of calls for a median


@contextmanager
def one_thread() -> Iterator[None]:
    """Restrict torch to one thread, like the peers."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class BudgetRun(NamedTuple):
    """Draws (chains, draws, dim) of a run; the summary is empty if it failed with ``error``."""

    draws: np.ndarray
    summary: dict[str, Any]
    cpu_seconds: float
    error: str

    @property
    def warnings(self) -> list[str]:
        """Warnings of the run; an error counts as a warning."""
        return [self.error] if self.error else [str(each) for each in self.summary.get("warnings", [])]


def run(target: Target | Any, sampler: str, seconds: float, seed: int = 0, **options: Any) -> BudgetRun:
    """Run a sampler for ``seconds`` CPU seconds of this process, including initial positions and warm-up."""
    begun = time.process_time()

    def watch(background: BackgroundRun) -> None:
        if time.process_time() - begun > seconds:
            background.stop()

    options = {"draws": MOST_DRAWS, "chains": CHAINS, "seed": seed, **options}
    running = None
    try:
        running = start(target, sampler, callback=watch, **options)
        running.run_to_end()
        error = ""
    except (BnnvizError, ArithmeticError, RuntimeError, ValueError) as failure:  # including errors of the density
        error = f"{type(failure).__name__}: {str(failure).splitlines()[0][:160]}"
    spent = time.process_time() - begun
    if running is None:
        return BudgetRun(np.empty((0, 0, 0)), {}, spent, error)
    return BudgetRun(running.draws, {} if error else running.summary(), spent, error)


def per(amount: float, cost: float) -> float:
    """Return an amount per cost; NaN without a cost."""
    return amount / cost if cost > 0 else math.nan


def medians(calls: list[Callable[[], object]], seconds: float, device: torch.device) -> list[float]:
    """Return the median seconds of calls executed in turns, after a first call of each.

    On a CPU these are CPU seconds; on a GPU wall-clock seconds with an empty queue before and after.
    """
    for call in calls:
        call()
    used: list[list[float]] = []
    end = time.perf_counter() + seconds
    while len(used) < _LEAST or time.perf_counter() < end:
        used.append([_timed(call, device) for call in calls])
    return [float(median) for median in np.median(used, axis=0)]


def _timed(call: Callable[[], object], device: torch.device) -> float:
    if device.type == "cpu":
        begun = time.process_time()
        call()
        return time.process_time() - begun
    torch.cuda.synchronize(device)
    begun = time.perf_counter()
    call()
    torch.cuda.synchronize(device)
    return time.perf_counter() - begun
