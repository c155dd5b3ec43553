"""Interrupt a run in one way or another, and assert that what is left of it is as of one that goes on."""

from __future__ import annotations

import itertools
import multiprocessing
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz.engine.recording.reader import Recording
from bnnviz.errors import BnnvizError
from tests.engine.interrupted_scripts import FEW, MANY, asked, density, first_draws, named, network
from tests.engine.script_host import ScriptHost

_IN_SCRIPTS = "from tests.engine.interrupted_scripts import *\n"
_INTERRUPTED = (-signal.SIGINT, 130)
_LONGEST_S = 60.0  # a script that is interrupted in a step of ninety seconds


# --- Ctrl-C in a script


def ctrl_c(host: ScriptHost, folder: Path, *, sampler: str, phase: str, **options: Any) -> None:
    ended = host.run(_IN_SCRIPTS + f"ctrl_c({sampler!r}, {phase!r}, **{options!r})", folder)
    told = ended.told
    assert ended.code == 0 and told, ended.errors
    assert told["same"] and not (told["running"] or told["threads"] or told["children"]), told
    assert told["phase"] == phase
    if phase == "sampling":
        assert FEW <= told["draws"] < MANY
    else:
        says = f"There are no draws yet: the run is in its phase {phase}, so nothing is estimated."
        assert told["draws"] == 0 and says in told["warnings"]


def uncaught(host: ScriptHost, folder: Path, *, script: str) -> None:
    begun = time.monotonic()
    ended = host.run(_IN_SCRIPTS + script, folder)
    assert ended.code in _INTERRUPTED, ended
    assert time.monotonic() - begun < _LONGEST_S, "the step under way was waited for"
    assert "terminate called" not in ended.errors and "Fatal" not in ended.errors
    assert "long_step" in script or "KeyboardInterrupt" in ended.errors


def compiling(host: ScriptHost, folder: Path, *, kernel: str, sampler: str) -> None:
    ended = host.run(_IN_SCRIPTS + f"while_compiling({kernel!r}, {sampler!r})", folder)
    assert ended.code == 0 and ended.told, ended.errors
    assert not (ended.told["running"] or ended.told["threads"] or ended.told["children"]), ended.told


def others(host: ScriptHost, folder: Path, *, script: str, **expected: Any) -> None:
    ended = host.run(_IN_SCRIPTS + script, folder)
    assert ended.code == 0, ended.errors
    assert ended.told == expected


# --- Ctrl-C in a notebook


@contextmanager
def shell(kernel: bool) -> Iterator[Any]:
    """Give an IPython shell, of a notebook's kernel or of a terminal."""
    interactive = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    interactive.clear_instance()
    made = interactive.instance()
    if kernel:
        made.kernel = object()
    try:
        yield made
    finally:
        interactive.clear_instance()


def cell(host: ScriptHost, folder: Path, *, code: str, sampler: str = "hmc", kernel: bool = True) -> None:
    """Interrupt a cell, and look at the run in the next one."""
    with shell(kernel) as ipython:
        ipython.push({"bnnviz": bnnviz, "given": asked(sampler), "signal": signal})
        ipython.run_cell(
            "left = [1]\n"
            "def interrupt(run):\n"
            "    if run.draws.shape[1] > 3 and left: left.pop(), signal.raise_signal(signal.SIGINT)\n"
        )
        first = ipython.run_cell(code)
        if kernel and "wait()" not in code:
            assert first.success
        else:
            assert isinstance(first.error_in_exec, KeyboardInterrupt)
            ipython.push({"interrupted": first.error_in_exec})
        found = "run" if "run =" in code and first.success or "start" in code else "interrupted.run"
        assert ipython.run_cell(f"run = {found}; going = run.running; draws = run.stop().draws").success
        going, draws = ipython.user_ns["going"], ipython.user_ns["draws"]
    assert going == ("wait()" in code)
    assert draws.shape[1] >= FEW
    assert np.array_equal(draws, first_draws(draws.shape[1], **asked(sampler)))


# --- stop(), and blocks


def going(sampler: str = "hmc", **options: Any) -> bnnviz.Run:
    return bnnviz.start(**asked(sampler), **options)


def ended(run: bnnviz.Run, sampler: str = "hmc") -> None:
    """Assert that a run has ended, and that its draws are those of a run that goes on."""
    draws = run.draws
    assert not run.running and not run.playing
    assert not draws.shape[1] or np.array_equal(draws, first_draws(draws.shape[1], **asked(sampler)))
    with pytest.raises(BnnvizError, match="This run has ended"):
        run.play()


def until_draws(run: bnnviz.Run) -> bnnviz.Run:
    while run.draws.shape[1] < FEW:
        threading.Event().wait(0.01)
    return run


def stopped_from_a_thread(host: ScriptHost, folder: Path) -> None:
    run = until_draws(going())
    threads = [threading.Thread(target=run.stop) for _ in range(3)]
    for each in threads:
        each.start()
    assert run.wait() is run
    for each in threads:
        each.join()
    ended(run)


def stopped_by_its_callback(host: ScriptHost, folder: Path) -> None:
    run = bnnviz.sample(**asked("bps"), callback=lambda run: run.draws.shape[1] >= FEW and run.stop())
    assert run.draws.shape[1] >= FEW
    ended(run, "bps")


def stopped_at_once(host: ScriptHost, folder: Path) -> None:
    ended(going("boomerang", settings={"mode_steps": 10**5}).stop(), "boomerang")
    ended(going(paused=True).stop().stop())


class Mine(Exception):
    pass


def left_block(host: ScriptHost, folder: Path, *, kind: type[BaseException]) -> None:
    with pytest.raises(kind), going() as run:
        until_draws(run)
        raise kind("mine")
    assert run.draws.shape[1] >= FEW
    ended(run)


def block_to_its_end(host: ScriptHost, folder: Path) -> None:
    with going() as run:
        until_draws(run)
    ended(run)


# --- exceptions of the caller's functions


def raising(host: ScriptHost, folder: Path, *, kind: type[BaseException], after: int, sampler: str = "hmc") -> None:
    """Raise an exception at a call of the density, which comes out of `sample` with the run."""
    calls = itertools.count()

    def raises(x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.001)  # on a quick machine all draws would be of the block that is lost
        if next(calls) >= after:
            raise kind("mine")
        return density(x)

    given = asked(sampler) | {"target": raises}
    with pytest.raises(kind, match="mine") as raised:
        bnnviz.sample(**given)
    if after < 50:
        return
    run = raised.value.run
    assert not run.running and run.draws.shape[1] >= FEW
    assert np.array_equal(run.draws, first_draws(run.draws.shape[1], **asked(sampler)))


def rejected(host: ScriptHost, folder: Path, *, sampler: str, first: bool) -> None:
    """Raise an error of a domain at points of some chains: they count as points where U is infinite."""

    def bounded(x: torch.Tensor, raises: bool) -> torch.Tensor:
        outside = (x > 1.5).any(-1)
        if raises and bool(outside[:1] if first else outside.any()):
            raise ValueError("x must be at most 1.5")
        hidden = outside & (torch.arange(len(x)) == 0) if first else outside
        return torch.where(hidden, torch.inf, x.square().sum(-1) / 2)

    given = {"dim": 2, "sampler": sampler, "chains": 1 if first else 4, "draws": 60, "warmup": 30, "seed": 2}
    run, same = (bnnviz.sample(partial(bounded, raises=raises), **given) for raises in (True, False))
    assert np.array_equal(run.draws, same.draws)
    assert any("raised an error of its domain" in note for note in run.summary()["notes"])


def callback_raises(host: ScriptHost, folder: Path, *, kind: type[BaseException]) -> None:
    def callback(run: bnnviz.Run) -> None:
        if run.draws.shape[1] >= FEW:
            raise kind("mine")

    with pytest.raises(kind, match="mine") as raised:
        bnnviz.sample(**asked("hmc"), callback=callback)
    run = raised.value.run
    assert not run.running and run.draws.shape[1] >= FEW
    assert np.array_equal(run.draws, first_draws(run.draws.shape[1], **asked("hmc")))


# --- other processes, and modes of torch


def sampled(seed: int) -> bnnviz.Run:
    return bnnviz.sample("gaussian", "hmc", draws=20, warmup=5, chains=2, seed=seed)


def in_processes(host: ScriptHost, folder: Path, *, method: str, beside: bool = False) -> None:
    """Take runs from a pool of processes; also one that is forked beside a run that goes on."""
    live = bnnviz.start("gaussian", "hmc", draws=None) if beside else None
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        run = pool.submit(sampled, 4).result(120)
    if live is not None:
        live.stop()
    assert np.array_equal(run.draws, sampled(4).draws)


def in_threads(host: ScriptHost, folder: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(sampled, [4, 5, 4]))
    assert all(np.array_equal(run.draws, sampled(4).draws) for run in (runs[0], runs[2]))
    assert not np.array_equal(runs[1].draws, runs[0].draws)


def in_joblib(host: ScriptHost, folder: Path, *, backend: str) -> None:
    joblib = pytest.importorskip("joblib")
    runs = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(sampled)(seed) for seed in (4, 5))
    if backend == "loky":
        pytest.importorskip("joblib.externals.loky").get_reusable_executor().shutdown()
    assert np.array_equal(runs[0].draws, sampled(4).draws)


@contextmanager
def default(change: Callable[[Any], Any], value: Any, usual: Any) -> Iterator[None]:
    change(value)
    try:
        yield
    finally:
        change(usual)


def in_a_mode(host: ScriptHost, folder: Path, *, mode: Callable[[], Any], sampler: str = "hmc") -> None:
    given = {"draws": 20, "warmup": 5, "chains": 2, "settings": {"start": "random"}}
    own = network()
    expected = bnnviz.sample(own, sampler, **given).draws
    with mode():
        inside = bnnviz.sample(own, sampler, **given).draws
    assert np.array_equal(inside, expected)


# --- half of a run


def copied(host: ScriptHost, folder: Path, *, sampler: str, copy_of: Callable[[Any, Path], Any]) -> None:
    """Copy a run half-way, and go on with the copy."""
    given = named(sampler) | {"draws": 15}
    part = bnnviz.start(**given, paused=True)
    for _ in range(8 if sampler == "hmc" else 40):
        part.step()
    again = copy_of(part, folder)
    part.stop()
    assert not again.playing
    assert np.array_equal(again.play().wait().draws, bnnviz.sample(**given).draws)


def pickled_at_its_end(host: ScriptHost, folder: Path) -> None:
    run = bnnviz.sample(network(), "hmc", draws=20, warmup=5, chains=2)
    again = pickle.loads(pickle.dumps(run))
    assert np.array_equal(again.draws, run.draws)
    assert again.summary()["draws"] == run.summary()["draws"]
    assert again.spec == run.spec


def by_joblib(run: bnnviz.Run, folder: Path) -> bnnviz.Run:
    joblib = pytest.importorskip("joblib")
    joblib.dump(run, folder / "run.joblib")
    return joblib.load(folder / "run.joblib")


# --- the process ends, the disk fails, the time is up


def killed(host: ScriptHost, folder: Path, *, number: signal.Signals, sampler: str) -> None:
    ended = host.run(_IN_SCRIPTS + f"recorded({int(number)}, {sampler!r})", folder)
    assert ended.code == -number, ended
    recording = Recording(folder / "run")
    recording.check()
    whole = bnnviz.sample(**named(sampler)).draws
    assert 0 < recording.whole < whole.shape[1]
    assert np.array_equal(recording.read_draws()[:, : recording.whole], whole[:, : recording.whole])
    assert np.array_equal(bnnviz.resume(folder / "run").wait().draws, whole)


def unwritable(host: ScriptHost, folder: Path, *, how: str, says: str) -> None:
    ended = host.run(_IN_SCRIPTS + f"unwritable({how!r})", folder)
    assert ended.code == 0, ended.errors
    assert ended.told["same"] and ended.told["phase"] == "done"
    assert sum(says in note for note in ended.told["notes"]) == 1, ended.told["notes"]


def waited(host: ScriptHost, folder: Path, *, seconds: float, paused: bool) -> None:
    run = going(paused=paused)
    assert run.wait(seconds) is run and run.running and run.playing != paused
    ended(run.stop())


def out_of_time(host: ScriptHost, folder: Path) -> None:
    run = bnnviz.sample(network(), minutes=0.05)
    assert run.phase == "done" and run.draws.shape[1] >= 10
    assert any("The run ended after" in note for note in run.summary()["notes"])
