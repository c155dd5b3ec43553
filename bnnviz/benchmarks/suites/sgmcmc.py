"""Measure the stochastic-gradient samplers alone: moves of all chains for each CPU second, on one thread.

A network of one hidden layer of 50 tanh units on 100 rows, batches of 32, each chain's own and fresh at every move;
draws and counts included, nobody looks on. Eager and compiled moves are measured in turns, so that a machine's moods
strike them alike; a figure is the median of its windows. The goals are of what other libraries did on one quiet core.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from bnnviz.benchmarks import peers
from bnnviz.benchmarks.chains import one_thread
from bnnviz.benchmarks.suite import Case, Goal, Row, Suite, Tell
from bnnviz.engine.run.run import Run
from bnnviz.specs.run import Spec

ROWS, BATCH, HIDDEN, STEP_SIZE = 100, 32, 50, 1e-4
WINDOWS = 7
SLICE_S = 0.1
KERNELS = ("eager", "compiled")


class PeerRate(NamedTuple):
    """What another library did: moves of all its chains for each CPU second, on a quiet core of another machine."""

    peer: str
    rate: float


#: With batches of 32 of the same 100 rows. blackjax's SGHMC takes ten moves at once: each is counted.
KNOWN: dict[tuple[str, int], PeerRate] = {
    ("sgld", 1): PeerRate("blackjax, 1 chain", 70_000),
    ("sgld", 16): PeerRate("posteriors, 16 chains", 7_500),
    ("sgld", 64): PeerRate("blackjax, 16 chains", 140_000),
    ("sghmc", 16): PeerRate("blackjax, 16 chains", 200_000),
    ("sghmc", 64): PeerRate("blackjax, 16 chains", 200_000),
}
#: How many times as fast as the known rate a compiled kernel is to be: a fifth with one chain, ten times `posteriors`,
#: and as fast as blackjax with many chains. What has no goal stands for itself.
GOALS: dict[tuple[str, int], float] = {("sgld", 1): 0.2, ("sgld", 16): 10.0, ("sgld", 64): 1.0}
CHAINS: dict[str, tuple[int, ...]] = {"sgld": (1, 16, 64), "sghmc": (16, 64)}


def points() -> np.ndarray:
    """Return the data, (rows, 2): a sine with noise."""
    x = np.linspace(-1, 1, ROWS)
    return np.column_stack([x, np.sin(3 * x) + 0.1 * np.random.default_rng(0).standard_normal(ROWS)])


def _case(sampler: str, seconds: float, tell: Tell) -> Iterator[Row]:
    """Measure a sampler with each number of chains, and a peer where it is installed."""
    with one_thread():
        for chains, rate in peers.moves(sampler, points(), BATCH, HIDDEN, STEP_SIZE, CHAINS[sampler], seconds, tell):
            yield Row(f"blackjax_{sampler}_{chains}", rate, "1/s", more={"chains": chains, "peer": "blackjax"})
        for chains in CHAINS[sampler]:
            yield from _measured(sampler, chains, seconds, tell)


def _measured(sampler: str, chains: int, seconds: float, tell: Tell) -> Iterator[Row]:
    """Measure eager and compiled moves in turns, so many seconds each."""
    tell(f"{sampler}, {chains} chains: the step is compiled first.")
    runs = [_begun(sampler, chains, kernel) for kernel in KERNELS]
    tell(f"{sampler}, {chains} chains.")
    windows = np.array([[_window(run, seconds / WINDOWS) for run in runs] for _ in range(WINDOWS)])
    rates = np.median(windows, axis=0)
    for run, rate, seen in zip(runs, rates, windows.T, strict=True):
        yield _row(sampler, run, rate, rates[0], seen)


def _begun(sampler: str, chains: int, kernel: str) -> Run:
    spec = Spec(
        target="network",
        target_settings={"points": points().tolist(), "hidden": str(HIDDEN), "noise_sd": 1.0},
        sampler=sampler,
        settings={"batch_size": BATCH, "step_size": STEP_SIZE, "start": "random"},
        chains=chains,
        draws=None,
        warmup=0,
        device="cpu",
        kernel=kernel,
    ).checked()
    run = Run(spec)
    run.wait_for_compile = True  # for the compiled step
    run.prepare()
    while run.phase == "tuning":
        run.advance(SLICE_S)
    run.step_proposal()
    return run


def _window(run: Run, seconds: float) -> float:
    """Return the moves of all chains for each CPU second of a window."""
    steps, used, end = run.steps, time.process_time(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        run.advance(SLICE_S)
    return run.spec.chains * (run.steps - steps) / (time.process_time() - used)


def _row(sampler: str, run: Run, rate: float, eager: float, seen: np.ndarray) -> Row:
    chains, kernel, wanted = run.spec.chains, run.kernel, run.spec.kernel
    more = {"sampler": sampler, "chains": chains, "kernel": kernel, "least": seen.min(), "most": seen.max()}
    notes, goal = [f"{seen.min():,.0f} to {seen.max():,.0f}"], None
    if wanted == "compiled":
        known = KNOWN[sampler, chains]
        share = GOALS.get((sampler, chains))
        goal = None if share is None else Goal(">=", share * known.rate)
        notes += [f"{rate / eager:.2g} times eager", f"{rate / known.rate:.2g} times {known.peer} ({known.rate:,.0f})"]
        more |= {"peer": known.peer, "ratio": rate / known.rate}
        # Where there is no compiler the run goes on without, which is another figure than the one that is aimed at.
        notes += [] if kernel == wanted else run.notes
    return Row(f"{sampler}_{chains}_{wanted}", rate, "1/s", goal, more | {"note": "; ".join(notes)})


_CASES: dict[str, Case] = {name: partial(_case, name) for name in CHAINS}
SUITE = Suite("sgmcmc", "Moves of SGLD and SGHMC for each CPU second.", _CASES)
