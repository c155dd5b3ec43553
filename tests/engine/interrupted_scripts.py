"""What scripts do that are interrupted: each function samples, is interrupted from within, and prints what is left."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

import bnnviz

FEW = 3  # draws of each chain before an interrupt
MANY = 50_000
NETWORK = ("boomerang", "laplace", "map", "bbb", "ensemble", "func_hmc", "mc_dropout")


def density(x: torch.Tensor) -> torch.Tensor:
    return x[:, 0].square() / 2 + (x[:, 1] - x[:, 0].square() / 2).square()


def network() -> bnnviz.BNN:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    x = torch.linspace(-1, 1, 20)[:, None]
    return bnnviz.BNN(module, (x, x**2), noise_sd=1.0)


def asked(sampler: str, **options: Any) -> dict[str, Any]:
    """Return what `bnnviz.start` is given: a density, or a network for samplers of networks."""
    target = {"target": network()} if sampler in NETWORK else {"target": density, "dim": 2}
    quick = {"settings": {"metric": "unit"}} if sampler in ("bps", "zigzag") else {}
    return target | {"sampler": sampler, "chains": 2, "draws": MANY, "warmup": 2, "seed": 5} | quick | options


def when(phase: str, action: Callable[[Any], Any], draws: int = FEW) -> Callable[[Any], None]:
    """Return a callback that acts once, in a phase of a run; while it samples, after a few draws."""
    left = [action]

    def callback(run: Any) -> None:
        if left and run.phase == phase and (phase != "sampling" or run.draws.shape[1] >= draws):
            left.pop()(run)

    return callback


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def interrupt(_: Any, times: int = 1) -> None:
    for _ in range(times):
        send(signal.SIGINT)
        time.sleep(0.01)


def after(seconds: float) -> threading.Timer:
    """Have this process interrupted after some seconds."""
    timer = threading.Timer(seconds, interrupt, [None])
    timer.start()
    return timer


def first_draws(count: int, **given: Any) -> np.ndarray:
    """Return the first draws (chains, draws, dim) of a run that nobody interrupts."""
    run = bnnviz.start(**given, paused=True)
    run._callback = lambda run: run._stop.set() if run.draws.shape[1] >= count else None
    return run.play().wait().draws[:, :count]


def left(run: Any, **given: Any) -> dict[str, Any]:
    """Return what is left of a run, as far as it came, and whether its draws are those of one that went on."""
    draws = run.draws
    found = run.summary()
    return {
        "running": run.running,
        "threads": [each.name for each in threading.enumerate() if each.name == "bnnviz-run"],
        "children": [" ".join(each.cmdline()) for each in psutil.Process().children(recursive=True)],
        "phase": run.phase,
        "draws": found["draws"],
        "same": not draws.shape[1] or bool(np.array_equal(draws, first_draws(draws.shape[1], **given))),
        "warnings": [each.code for each in found["warnings"]],
    }


def tell(**found: Any) -> None:
    sys.stdout.write(json.dumps(found) + "\n")


def ctrl_c(sampler: str, phase: str, times: int = 1, **options: Any) -> None:
    """Tell what is left of a run that was interrupted in a phase, so many times."""
    given = asked(sampler, **options)
    try:
        bnnviz.sample(**given, callback=when(phase, partial(interrupt, times=times)))
    except KeyboardInterrupt as interrupted:
        end = time.monotonic() + _SOON
        # Who asks twice does not wait for the step under way, which ends all the same.
        while times > 1 and interrupted.run.running and time.monotonic() < end:
            time.sleep(0.01)
        tell(**left(interrupted.run, **given))


def uncaught(sampler: str, times: int = 1, **options: Any) -> None:
    """Have a run interrupted, so many times, where nobody catches it."""
    bnnviz.sample(**asked(sampler, **options), callback=when("sampling", partial(interrupt, times=times)))


def uncaught_in_a_long_step() -> None:
    """Interrupt a script while a step takes longer than anybody waits for."""

    def slow(x: torch.Tensor) -> torch.Tensor:
        if threading.current_thread() is not threading.main_thread():
            send(signal.SIGINT)
            time.sleep(_LONG)
        return x.square().sum(-1) / 2

    bnnviz.start(slow, "hmc", dim=2)
    time.sleep(_LONG)


_LONG, _SOON = 90, 20


def race() -> None:
    """Interrupt a race."""
    try:
        bnnviz.race("banana", ["hmc", "bps"], budget=10**8, chains=2, warmup=2, callback=when("racing", interrupt))
    except KeyboardInterrupt as interrupted:
        tell(running=interrupted.run.running, rows=len(interrupted.run.table), threads=threading.active_count())


def fit() -> None:
    """Interrupt the fit of an estimator of scikit-learn."""
    from bnnviz.sklearn import BNNRegressor

    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    model = BNNRegressor(hidden=3, sampler="hmc", draws=10**5, warmup=2, random_state=0)
    timer = after(1.5)
    try:
        model.fit(x, x[:, 0])
    except KeyboardInterrupt:
        timer.join()
        tell(fitted=hasattr(model, "posterior_"), threads=threading.active_count())


# --- signals that end the process


def recorded(number: int, sampler: str = "bps") -> None:
    """Record a run, and end this process by a signal: some draws are on the disk then, and later ones are not."""

    def act(run: Any) -> None:
        if (run.recording.progress["counts"] or [0])[0]:
            send(signal.Signals(number))
        elif run.draws.shape[1]:
            run._host._writer.note(now=True)

    bnnviz.sample(**named(sampler), record=Path("run").absolute(), callback=act)


def named(sampler: str) -> dict[str, Any]:
    """Return what a run is given that another process goes on with: its target has a name."""
    draws = 60 if sampler == "bps" else 1_000  # some blocks each, on a fast machine too
    return {"target": "banana", "sampler": sampler, "chains": 2, "draws": draws, "warmup": 2, "seed": 5}


# --- a disk that fails


def full_disk() -> None:
    """Record a run on a disk that is full."""
    given = named("hmc")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    run = bnnviz.sample(**given, record=Path("run").absolute(), callback=when("sampling", _fill))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)  # the warnings are written to a file, too
    whole = bnnviz.sample(**given)
    tell(
        same=bool(np.array_equal(run.draws, whole.draws)),
        notes=[str(note) for note in run.summary()["notes"]],
        phase=run.phase,
    )


def _fill(_: Any) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
