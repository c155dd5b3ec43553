"""Run samplers for some CPU seconds, and take times."""

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
#: Draws of a chain at most. A run without an end keeps only some 2,000, which would cap the effective sample size.
MOST_DRAWS = 20_000
_LEAST = 5  # calls that a median is of


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch work on one thread, as the peers do."""
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
        """Warnings of the run; an error is one."""
        return [self.error] if self.error else [str(each) for each in self.summary.get("warnings", [])]


def run(target: Target | Any, sampler: str, seconds: float, seed: int = 0, **options: Any) -> BudgetRun:
    """Run a sampler for so many CPU seconds of this process, initial positions and warm-up included."""
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
    except (BnnvizError, ArithmeticError, RuntimeError, ValueError) as failure:  # also of the density itself
        error = f"{type(failure).__name__}: {str(failure).splitlines()[0][:160]}"
    spent = time.process_time() - begun
    if running is None:
        return BudgetRun(np.empty((0, 0, 0)), {}, spent, error)
    return BudgetRun(running.draws, {} if error else running.summary(), spent, error)


def per(amount: float, cost: float) -> float:
    """Return an amount by its cost; NaN without a cost."""
    return amount / cost if cost > 0 else math.nan


def medians(calls: list[Callable[[], object]], seconds: float, device: torch.device) -> list[float]:
    """Return the median seconds of calls that take turns, after a first call of each.

    On a CPU these are CPU seconds, on a GPU those of the clock with its queue empty before and after.
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
