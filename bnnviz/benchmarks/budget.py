"""Run samplers at their defaults for a number of CPU seconds of this process."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bnnviz import samplers
from bnnviz.api.run import BackgroundRun, start
from bnnviz.errors import BnnvizError
from bnnviz.targets import Target

CHAINS = 4
#: Of each chain. A run without an end keeps some 2,000 and drops the others, so that no more could be effective.
MOST_DRAWS = 20_000
_FAMILIES = ("mcmc", "pdmp", "sgmcmc")


class BudgetRun(NamedTuple):
    """What a sampler made of its CPU seconds.

    ``draws`` has the shape (chains, draws, dim). ``summary`` is that of the run, empty where it failed with ``error``.
    """

    draws: np.ndarray
    summary: dict[str, Any]
    cpu_seconds: float
    error: str

    @property
    def warnings(self) -> list[str]:
        """Sentences in which the run warns of itself; an error is one too."""
        return [self.error] if self.error else self.summary.get("warnings", [])


def chain_samplers() -> Iterator[type[samplers.Sampler]]:
    """Walk the samplers whose chains are meant to follow the target itself: MCMC, PDMPs and stochastic gradients."""
    for cls in samplers.REGISTRY:
        if cls.__module__.split(".")[-2] in _FAMILIES:
            yield cls


def run(target: Target | Any, sampler: str, seconds: float, seed: int = 0, **options: Any) -> BudgetRun:
    """Run a sampler at its defaults for so many CPU seconds.

    Parameters
    ----------
    target, sampler, **options
        As of `bnnviz.start`.
    seconds : float
        CPU seconds of this process, the search for a start and the warm-up included; the summary is not counted.
        A run that has made `MOST_DRAWS` draws of each chain ends before.
    seed : int
        Of the run.
    """
    begun = time.process_time()

    def watch(background: BackgroundRun) -> None:
        if time.process_time() - begun > seconds:
            background.stop()

    options = {"draws": MOST_DRAWS, "chains": CHAINS, "seed": seed, **options}
    going = None
    try:
        going = start(target, sampler, callback=watch, **options)
        going.run_to_end()
        error = ""
    except (BnnvizError, ArithmeticError, RuntimeError, ValueError) as failure:
        # Also what a density raises: the run hands it on as it is.
        error = f"{type(failure).__name__}: {str(failure).splitlines()[0][:160]}"
    spent = time.process_time() - begun
    if going is None:
        return BudgetRun(np.empty((0, 0, 0)), {}, spent, error)
    draws = going.draws
    return BudgetRun(draws, {} if error else going.summary(), spent, error)


def per(amount: float, cost: float) -> float:
    """Return an amount by its cost; nan without a cost."""
    return amount / cost if cost > 0 else math.nan
