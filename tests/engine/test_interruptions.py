"""An interrupted run keeps the draws that an uninterrupted one makes, and can be resumed where that is promised."""

from __future__ import annotations

import copy
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


@pytest.fixture(scope="module")
def host() -> Iterator[ScriptHost]:
    with ScriptHost() as made:
        yield made


# --- Ctrl-C in a script

LONG = {"warmup": MANY}
slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("sampler", "phase", "options"),
    [
        ("boomerang", "start", {"settings": {"mode_steps": 10**5}}),
        ("hmc", "tuning", LONG),
        pytest.param("map", "tuning", {"settings": {"steps": 10**6}}, marks=slow),
        pytest.param("nuts", "tuning", LONG, marks=slow),
        pytest.param("bps", "warm-up", LONG, marks=slow),
        pytest.param("pmcnet_light", "warm-up", LONG, marks=slow),
        ("bps", "sampling", {"settings": {"metric": "unit"}}),
        pytest.param("bps", "sampling", {"times": 2}, marks=slow),
        pytest.param("nuts", "sampling", {}, marks=slow),
        ("sgld", "sampling", {"settings": {"step_size": 0.01}}),
        *(
            pytest.param(sampler, "sampling", {"settings": settings}, marks=slow)
            for sampler, settings in (
                ("boomerang", {"mode_steps": 50}),
                ("parallel_tempering", {}),
                ("bbb", {"steps": 50}),
                ("laplace", {"mode_steps": 300}),
                ("mc_dropout", {"steps": 50}),
                ("pmcnet", {}),
                ("func_hmc", {}),
            )
        ),
    ],
)
def test_ctrl_c_in_a_script(host: ScriptHost, tmp_path: Path, sampler: str, phase: str, options: dict) -> None:
    ended = host.run(_IN_SCRIPTS + f"ctrl_c({sampler!r}, {phase!r}, **{options!r})", tmp_path)
    reported = ended.reported
    assert ended.code == 0 and reported, ended.errors
    assert reported["same"] and not (reported["running"] or reported["threads"] or reported["children"]), reported
    assert reported["phase"] == phase
    if phase == "sampling":
        assert FEW <= reported["draws"] < MANY
    else:
        assert reported["draws"] == 0 and "no_draws" in reported["warnings"]


@pytest.mark.parametrize("script", ["uncaught('hmc', 3)", pytest.param("uncaught_in_a_long_step()", marks=slow)])
def test_ctrl_c_that_nobody_catches(host: ScriptHost, tmp_path: Path, script: str) -> None:
    begun = time.monotonic()
    ended = host.run(_IN_SCRIPTS + script, tmp_path)
    assert ended.code in _INTERRUPTED, ended
    assert time.monotonic() - begun < _LONGEST_S, "the step under way was waited for"
    assert "terminate called" not in ended.errors and "Fatal" not in ended.errors
    assert "long_step" in script or "KeyboardInterrupt" in ended.errors


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("race()", {"running": False, "rows": 2, "threads": 1}, marks=slow),
        ("fit()", {"fitted": False, "threads": 1}),
    ],
)
def test_ctrl_c_in_a_race_and_a_fit(host: ScriptHost, tmp_path: Path, script: str, expected: dict) -> None:
    ended = host.run(_IN_SCRIPTS + script, tmp_path)
    assert ended.code == 0, ended.errors
    assert ended.reported == expected


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


SAMPLE = "run = bnnviz.sample(**given, callback=interrupt)"


@pytest.mark.parametrize(
    ("code", "kernel"),
    [(SAMPLE, True), (SAMPLE, False), ("run = bnnviz.start(**given, callback=interrupt); run.wait()", True)],
)
def test_a_cell_of_a_notebook_is_interrupted(code: str, kernel: bool) -> None:
    """Interrupt a cell, and look at the run in the next one."""
    with shell(kernel) as ipython:
        ipython.push({"bnnviz": bnnviz, "given": asked("hmc"), "signal": signal})
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
    assert np.array_equal(draws, first_draws(draws.shape[1], **asked("hmc")))


# --- stop(), and blocks


def going(sampler: str = "hmc", **options: Any) -> bnnviz.Run:
    return bnnviz.start(**asked(sampler), **options)


def ended(run: bnnviz.Run, sampler: str = "hmc") -> None:
    """Assert that a run has ended, and that its draws are those of a run that goes on."""
    draws = run.draws
    assert not run.running and not run.playing
    assert not draws.shape[1] or np.array_equal(draws, first_draws(draws.shape[1], **asked(sampler)))
    with pytest.raises(BnnvizError, match="ended"):
        run.play()


def until_draws(run: bnnviz.Run) -> bnnviz.Run:
    while run.draws.shape[1] < FEW:
        threading.Event().wait(0.01)
    return run


def test_stop_from_threads() -> None:
    run = until_draws(going())
    threads = [threading.Thread(target=run.stop) for _ in range(3)]
    for each in threads:
        each.start()
    assert run.wait() is run
    for each in threads:
        each.join()
    ended(run)


def test_stop_from_a_callback() -> None:
    run = bnnviz.sample(**asked("bps"), callback=lambda run: run.draws.shape[1] >= FEW and run.stop())
    assert run.draws.shape[1] >= FEW
    ended(run, "bps")


def test_stop_at_once() -> None:
    ended(going("boomerang", settings={"mode_steps": 10**5}).stop(), "boomerang")
    ended(going(paused=True).stop().stop())


class Mine(Exception):
    pass


@pytest.mark.parametrize("kind", [Mine, KeyboardInterrupt])
def test_an_exception_ends_a_block(kind: type[BaseException]) -> None:
    with pytest.raises(kind), going() as run:
        until_draws(run)
        raise kind("mine")
    assert run.draws.shape[1] >= FEW
    ended(run)


def test_a_block_ends_its_run() -> None:
    with going() as run:
        until_draws(run)
    ended(run)


# --- exceptions of the caller's functions


@pytest.mark.parametrize(
    ("kind", "after", "sampler"),
    [
        (RuntimeError, 0, "hmc"),
        (Mine, 300, "bps"),
        (KeyboardInterrupt, 300, "hmc"),
        (SystemExit, 300, "hmc"),
        (MemoryError, 300, "hmc"),
    ],
)
def test_a_density_raises(kind: type[BaseException], after: int, sampler: str) -> None:
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


@pytest.mark.parametrize("kind", [Mine, SystemExit])
def test_a_callback_raises(kind: type[BaseException]) -> None:
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


@pytest.mark.parametrize(("method", "beside"), [("fork", True), pytest.param("spawn", False, marks=slow)])
def test_runs_in_processes(method: str, beside: bool) -> None:
    """Take runs from a pool of processes; also one that is forked beside a run that goes on."""
    live = bnnviz.start("gaussian", "hmc", draws=None) if beside else None
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        run = pool.submit(sampled, 4).result(120)
    if live is not None:
        live.stop()
    assert np.array_equal(run.draws, sampled(4).draws)


def test_runs_in_threads() -> None:
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(sampled, [4, 5, 4]))
    assert all(np.array_equal(run.draws, sampled(4).draws) for run in (runs[0], runs[2]))
    assert not np.array_equal(runs[1].draws, runs[0].draws)


@contextmanager
def default(change: Callable[[Any], Any], value: Any, usual: Any) -> Iterator[None]:
    change(value)
    try:
        yield
    finally:
        change(usual)


@pytest.mark.parametrize(
    ("mode", "sampler"),
    [
        (torch.inference_mode, "hmc"),
        (torch.no_grad, "bps"),
        (partial(default, torch.set_default_dtype, torch.float64, torch.float32), "bps"),
        (partial(torch.device, "meta"), "hmc"),
    ],
)
def test_modes_of_torch_change_no_draw(mode: Callable[[], Any], sampler: str) -> None:
    given = {"draws": 20, "warmup": 5, "chains": 2, "settings": {"start": "random"}}
    own = network()
    expected = bnnviz.sample(own, sampler, **given).draws
    with mode():
        inside = bnnviz.sample(own, sampler, **given).draws
    assert np.array_equal(inside, expected)


# --- half of a run


@pytest.mark.parametrize(
    ("sampler", "copy_of"), [("nuts", lambda run: pickle.loads(pickle.dumps(run))), ("bps", copy.deepcopy)]
)
def test_a_copy_goes_on(sampler: str, copy_of: Callable[[Any], Any]) -> None:
    """Copy a run half-way, and go on with the copy."""
    given = named(sampler) | {"draws": 15}
    part = bnnviz.start(**given, paused=True)
    for _ in range(8 if sampler == "nuts" else 40):
        part.step()
    again = copy_of(part)
    part.stop()
    assert not again.playing
    assert np.array_equal(again.play().wait().draws, bnnviz.sample(**given).draws)


def test_a_finished_run_is_pickled() -> None:
    run = bnnviz.sample(network(), "hmc", draws=20, warmup=5, chains=2)
    again = pickle.loads(pickle.dumps(run))
    assert np.array_equal(again.draws, run.draws)
    assert again.summary()["draws"] == run.summary()["draws"]
    assert again.spec == run.spec


# --- the process ends, the disk fails, the time is up


@pytest.mark.parametrize(
    ("number", "sampler"),
    [(signal.SIGTERM, "bps"), (signal.SIGKILL, "hmc"), pytest.param(signal.SIGHUP, "sgld", marks=slow)],
)
def test_a_signal_ends_a_recorded_run(host: ScriptHost, tmp_path: Path, number: signal.Signals, sampler: str) -> None:
    ended = host.run(_IN_SCRIPTS + f"recorded({int(number)}, {sampler!r})", tmp_path)
    assert ended.code == -number, ended
    recording = Recording(tmp_path / "run")
    recording.check()
    whole = bnnviz.sample(**named(sampler)).draws
    assert 0 < recording.whole < whole.shape[1]
    assert np.array_equal(recording.read_draws()[:, : recording.whole], whole[:, : recording.whole])
    assert np.array_equal(bnnviz.resume(tmp_path / "run").wait().draws, whole)


def test_a_recording_on_a_full_disk(host: ScriptHost, tmp_path: Path) -> None:
    ended = host.run(_IN_SCRIPTS + "full_disk()", tmp_path)
    assert ended.code == 0, ended.errors
    assert ended.reported["same"] and ended.reported["phase"] == "done"
    assert len(ended.reported["notes"]) == 1
    # What was written stays.
    Recording(tmp_path / "run").check()
    again = bnnviz.resume(tmp_path / "run").wait()
    assert np.array_equal(again.draws, bnnviz.sample(**named("hmc")).draws)
    Recording(tmp_path / "run").check()


@pytest.mark.parametrize(("seconds", "paused"), [(0.2, False), (0.0, True)])
def test_wait_returns_when_its_time_is_over(seconds: float, paused: bool) -> None:
    run = going(paused=paused)
    assert run.wait(seconds) is run and run.running and run.playing != paused
    ended(run.stop())
