"""Runs in the background of a program: an interrupt keeps the draws, and a run can be pickled and used anywhere."""

from __future__ import annotations

import itertools
import multiprocessing
import pickle
import signal
import subprocess
import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
import torch

import bnnviz
from bnnviz import optional

_NETWORK = """
import time, torch, bnnviz
net = torch.nn.Sequential(torch.nn.Linear(1, 20), torch.nn.Tanh(), torch.nn.Linear(20, 1))
x = torch.linspace(-1, 1, 50)[:, None]
def ready(run):
    if run.phase == "sampling" and run.draws.shape[1] > 3:
        print("ready", flush=True)
"""
_SAMPLE = 'bnnviz.sample(bnnviz.BNN(net, (x, x**2)), "{}", draws=10**6, warmup=2, chains=2, callback=ready)'
_CAUGHT = """
try:
    {}
except KeyboardInterrupt as interrupt:
    draws = interrupt.run.draws
    assert draws.shape[1] > 3 and abs(draws).max() < 1e3, draws.shape
    assert not interrupt.run.running
    print("kept", draws.shape[1], interrupt.run.summary()["draws"], flush=True)
    raise SystemExit(7)
"""


def interrupted(code: str, times: int = 1) -> subprocess.CompletedProcess:
    """Run a program, and interrupt it once it has said that it is ready."""
    with subprocess.Popen([sys.executable, "-c", code], stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        for _ in range(times):
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(code, process.returncode, out, err)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sampler", ["bps", "hmc", "sgld"])
def test_an_interrupt_in_a_script_gives_the_draws_back(sampler):
    done = interrupted(_NETWORK + _CAUGHT.format(_SAMPLE.format(sampler)))
    assert done.returncode == 7, done.stderr
    assert "kept" in done.stdout


def test_a_second_interrupt_has_the_run_too():
    kept = "print('kept', interrupt.run.draws.shape[1])\n    raise SystemExit(7)"
    caught = "\ntry:\n    {}\nexcept KeyboardInterrupt as interrupt:\n    " + kept
    done = interrupted(_NETWORK + caught.format(_SAMPLE.format("bps")), times=2)
    assert done.returncode == 7, done.stderr
    assert "kept" in done.stdout


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_that_nobody_catches_ends_without_an_abort(times):
    done = interrupted(_NETWORK + _SAMPLE.format("bps"), times)
    assert done.returncode in (-signal.SIGINT, 130)
    assert "terminate called" not in done.stderr
    assert "KeyboardInterrupt" in done.stderr


def test_a_step_that_takes_long_does_not_abort_the_program():
    slow = (
        "import time, bnnviz\n"
        "def U(x):\n    print('ready', flush=True)\n    time.sleep(30)\n    return (x**2).sum(-1) / 2\n"
        "bnnviz.start(U, 'hmc', dim=2)\ntime.sleep(60)\n"
    )
    done = interrupted(slow)
    assert done.returncode == 130
    assert "terminate called" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["compiled", "auto"])
def test_an_interrupt_while_a_step_is_compiled_gives_the_run_and_leaves_no_process(kernel):
    sample = f'bnnviz.sample(bnnviz.BNN(net, (x, x**2)), "bps", draws=10**6, warmup=2, chains=2, kernel="{kernel}")'
    caught = (
        f"\ntry:\n    {sample}\nexcept KeyboardInterrupt as interrupt:\n    raise SystemExit(interrupt.run.running + 7)"
    )
    with subprocess.Popen([sys.executable, "-c", _NETWORK + caught], stderr=-1, text=True) as process:
        compilers = []
        while not compilers and process.poll() is None:
            family = psutil.Process(process.pid).children(recursive=True)
            compilers = [one for one in family if "compile_worker" in " ".join(one.cmdline())]
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, len(compilers)) == (7, 1), err
    assert not psutil.wait_procs(compilers, timeout=10)[1]


def test_in_a_notebook_an_interrupt_gives_the_run(monkeypatch):
    shell = types.SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert optional.in_notebook()
    run = bnnviz.start("gaussian", "hmc", draws=None)
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    assert run.run_to_end() is run
    assert not run.running


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("place", ["target", "callback"])
def test_what_a_target_or_callback_raises_comes_out(kind, place):
    """Interrupts and exits too, which are no `Exception`: the run would seem to have come to its end."""

    gradients = itertools.count()

    def density(x):
        if place == "target" and next(gradients) > 50:
            raise kind("mine")
        return x.square().sum(-1) / 2

    def callback(run):
        if place == "callback":
            raise kind("mine")

    with pytest.raises(kind, match="mine") as raised:
        bnnviz.sample(density, "hmc", dim=2, draws=10**6, callback=callback)
    if kind is KeyboardInterrupt:
        assert not raised.value.run.running


def test_stop_returns_when_the_thread_has_ended():
    run = bnnviz.start("gaussian", "bps", draws=None)
    run.stop()
    assert not run.running
    made = run.draws.shape
    assert run.draws.shape == made


def network() -> bnnviz.BNN:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    x = torch.linspace(-1, 1, 20)[:, None]
    return bnnviz.BNN(module, (x, x**2))


@pytest.mark.parametrize("make", [lambda: "gaussian", network], ids=["name", "network"])
def test_a_run_can_be_pickled(make):
    run = bnnviz.sample(make(), "hmc", draws=20, warmup=5, chains=2)
    again = pickle.loads(pickle.dumps(run))
    assert np.array_equal(again.draws, run.draws)
    assert again.summary()["draws"] == run.summary()["draws"]
    assert again.spec == run.spec


def test_a_pickled_run_goes_on_with_the_same_draws():
    whole = bnnviz.sample("banana", "nuts", draws=15, warmup=2, chains=2, seed=3)
    part = bnnviz.start("banana", "nuts", draws=15, warmup=2, chains=2, seed=3, paused=True)
    for _ in range(40):
        part.step()
    again = pickle.loads(pickle.dumps(part)).play()
    part.stop()
    assert np.array_equal(again.wait().draws, whole.draws)


def _sampled(seed: int) -> bnnviz.Run:
    return bnnviz.sample("gaussian", "hmc", draws=20, warmup=5, chains=2, seed=seed)


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_runs_come_back_from_other_processes(method):
    with multiprocessing.get_context(method).Pool(1) as pool:
        run = pool.apply_async(_sampled, (4,)).get(120)
    assert np.array_equal(run.draws, _sampled(4).draws)


def test_runs_come_back_from_a_fork_beside_a_live_run_and_from_threads():
    live = bnnviz.start("gaussian", "hmc", draws=None)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        run = pool.apply_async(_sampled, (4,)).get(120)
    live.stop()
    with ThreadPoolExecutor(3) as threads:
        beside = list(threads.map(_sampled, [4, 5, 4]))
    assert all(np.array_equal(one.draws, run.draws) for one in (beside[0], beside[2]))
    assert not np.array_equal(beside[1].draws, run.draws)


@pytest.mark.slow
def test_runs_come_back_from_joblib():
    joblib, loky = pytest.importorskip("joblib"), pytest.importorskip("joblib.externals.loky")
    runs = joblib.Parallel(n_jobs=2)(joblib.delayed(_sampled)(seed) for seed in (4, 5))
    loky.get_reusable_executor().shutdown()
    assert np.array_equal(runs[0].draws, _sampled(4).draws)


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad], ids=["inference_mode", "no_grad"])
def test_a_mode_without_gradients_changes_no_draw(mode):
    expected = bnnviz.sample(network(), "bps", draws=20, warmup=5, chains=2).draws
    with mode():
        inside = bnnviz.sample(network(), "bps", draws=20, warmup=5, chains=2).draws
    assert np.array_equal(inside, expected)
