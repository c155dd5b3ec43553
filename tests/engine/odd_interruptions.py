"""Ways in which a run is interrupted, kind by kind: what is left of it is what one that goes on would have made."""

from __future__ import annotations

import copy
import pickle
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tests.engine import interruption_checks as checks
from tests.engine.interrupted_scripts import MANY
from tests.engine.script_host import ScriptHost


class Example(NamedTuple):
    """What interrupts something and asserts what is left; those that take long have a mark."""

    check: Callable[[ScriptHost, Path], None]
    mark: str = ""


class Kind(NamedTuple):
    """A kind of interruption, what is left of the run, and examples."""

    name: str
    what: str
    examples: tuple[Example, ...]


def example(check: Callable[..., None], *, mark: str = "", **given: Any) -> Example:
    return Example(partial(check, **given), mark)


LONG = {"warmup": MANY}
KINDS = (
    Kind(
        "Ctrl-C in a script, before there are draws",
        "`sample` raises `KeyboardInterrupt`; the exception's `run` says in which phase it was",
        (
            example(checks.ctrl_c, sampler="boomerang", phase="start", settings={"mode_steps": 10**5}),
            example(checks.ctrl_c, sampler="laplace", phase="start", settings={"mode_steps": 10**5}, mark="slow"),
            example(checks.ctrl_c, sampler="hmc", phase="tuning", **LONG),
            example(checks.ctrl_c, sampler="nuts", phase="tuning", **LONG, mark="slow"),
            example(checks.ctrl_c, sampler="map", phase="tuning", settings={"steps": 10**6}),
            example(checks.ctrl_c, sampler="bbb", phase="tuning", settings={"steps": 10**6}, mark="slow"),
            example(checks.ctrl_c, sampler="bps", phase="warm-up", **LONG),
            example(checks.ctrl_c, sampler="sgld", phase="warm-up", **LONG, settings={"step_size": 0.01}),
            example(checks.ctrl_c, sampler="pmcnet_light", phase="warm-up", **LONG, mark="slow"),
        ),
    ),
    Kind(
        "Ctrl-C in a script, while it samples",
        "`sample` raises `KeyboardInterrupt`; the exception's `run` has the draws until then, the same as those of a"
        " run that goes on; no thread and no process stays",
        tuple(
            example(checks.ctrl_c, sampler=sampler, phase="sampling", settings=settings, mark=mark)
            for sampler, settings, mark in (
                ("bps", {"metric": "unit"}, ""),
                ("zigzag", {"metric": "unit"}, "slow"),
                ("boomerang", {"mode_steps": 50}, ""),
                ("hmc", {}, ""),
                ("nuts", {}, "slow"),
                ("parallel_tempering", {}, "slow"),
                ("sgld", {"step_size": 0.01}, ""),
                ("sghmc", {"step_size": 0.01}, "slow"),
                ("bbb", {"steps": 50}, ""),
                ("ensemble", {"steps": 50}, "slow"),
                ("laplace", {"mode_steps": 300}, ""),
                ("mc_dropout", {"steps": 50}, "slow"),
                ("pmcnet_light", {}, ""),
                ("pmcnet", {}, "slow"),
                ("func_hmc", {}, "slow"),
            )
        )
        + (example(checks.ctrl_c, sampler="bps", phase="sampling", times=2),),
    ),
    Kind(
        "Ctrl-C that nobody catches, once, twice, or while one step takes long",
        "The script ends with the exit code 130, without an abort",
        (
            example(checks.uncaught, script="uncaught('bps')"),
            example(checks.uncaught, script="uncaught('hmc', 3)"),
            example(checks.uncaught, script="uncaught_in_a_long_step()"),
            example(checks.uncaught, script="uncaught('pmcnet_light')", mark="slow"),
        ),
    ),
    Kind(
        "Ctrl-C while a step is compiled",
        "As above; the process that compiles ends too",
        (
            example(checks.compiling, kernel="auto", sampler="bps", mark="slow"),
            example(checks.compiling, kernel="compiled", sampler="bps", mark="slow"),
            example(checks.compiling, kernel="compiled", sampler="hmc", mark="slow"),
        ),
    ),
    Kind(
        "Ctrl-C in a race, in a fit of scikit-learn, in a pilot",
        "`KeyboardInterrupt`; a race is the exception's `run`, an estimator is not fitted, a pilot has no run; no"
        " thread stays",
        (
            example(checks.others, script="race()", running=False, rows=2, threads=1),
            example(checks.others, script="fit()", fitted=False, threads=1),
            example(checks.others, script="pilot()", run=False, threads=1),
        ),
    ),
    Kind(
        "The interrupt of a cell of a notebook",
        "The cell ends with the run, as far as it came; `run.wait()` alone raises `KeyboardInterrupt`, and the run goes"
        " on; a terminal of IPython is as a script",
        (
            example(checks.cell, code="run = bnnviz.sample(**given, callback=interrupt)"),
            example(checks.cell, code="run = bnnviz.sample(**given, callback=interrupt)", sampler="bps", mark="slow"),
            example(checks.cell, code="run = bnnviz.start(**given, callback=interrupt); run.wait()"),
            example(checks.cell, code="run = bnnviz.sample(**given, callback=interrupt)", kernel=False),
        ),
    ),
    Kind(
        "`stop()` from any thread or from a callback, once or more often, at any time",
        "Returns when the thread has ended; the draws stay",
        (
            Example(checks.stopped_from_a_thread),
            Example(checks.stopped_by_its_callback),
            Example(checks.stopped_at_once),
        ),
    ),
    Kind(
        "The end of a block, `with bnnviz.start(...) as run:`, by an exception too",
        "As `stop()`; the exception comes out",
        (
            example(checks.left_block, kind=checks.Mine),
            example(checks.left_block, kind=KeyboardInterrupt),
            Example(checks.block_to_its_end),
        ),
    ),
    Kind(
        "An exception of your density, or of a callback",
        "Comes out of `sample`, with the draws until then as its `run`; `KeyboardInterrupt`, `SystemExit` and"
        " `MemoryError` too",
        (
            example(checks.raising, kind=RuntimeError, after=0),
            example(checks.raising, kind=RuntimeError, after=300),
            example(checks.raising, kind=checks.Mine, after=300, sampler="bps"),
            *(example(checks.raising, kind=kind, after=300) for kind in (KeyboardInterrupt, SystemExit, MemoryError)),
            *(example(checks.callback_raises, kind=kind) for kind in (checks.Mine, KeyboardInterrupt, SystemExit)),
        ),
    ),
    Kind(
        "An error of a domain (`ValueError`, a Cholesky factor) of your density, at points of some chains",
        "These points are rejected, as where U is infinite, and a note counts them",
        (
            example(checks.rejected, sampler="hmc", first=False),
            example(checks.rejected, sampler="nuts", first=False),
            example(checks.rejected, sampler="hmc", first=True),
        ),
    ),
    Kind(
        "`spawn`, `fork`, pools of `concurrent.futures` and of `joblib`",
        "Runs come back with the draws that they have in one process",
        (
            example(checks.in_processes, method="fork"),
            example(checks.in_processes, method="fork", beside=True),
            example(checks.in_processes, method="spawn", mark="slow"),
            Example(checks.in_threads),
            example(checks.in_joblib, backend="threading"),
            example(checks.in_joblib, backend="loky", mark="slow"),
        ),
    ),
    Kind(
        "`inference_mode`, `no_grad`, another default precision or device",
        "No draw changes",
        (
            example(checks.in_a_mode, mode=torch.inference_mode),
            example(checks.in_a_mode, mode=torch.no_grad),
            example(checks.in_a_mode, mode=partial(torch.set_grad_enabled, False), sampler="bps", mark="slow"),
            example(
                checks.in_a_mode, mode=partial(checks.default, torch.set_default_dtype, torch.float64, torch.float32)
            ),
            example(
                checks.in_a_mode,
                mode=partial(checks.default, torch.set_default_dtype, torch.float64, torch.float32),
                sampler="bps",
            ),
            example(checks.in_a_mode, mode=partial(torch.device, "meta")),
        ),
    ),
    Kind(
        "A copy of a run half-way: `pickle`, `copy.deepcopy`, `joblib.dump`",
        "Comes back paused, and goes on with the draws that it would have made",
        (
            example(checks.copied, sampler="nuts", copy_of=lambda run, _: pickle.loads(pickle.dumps(run))),
            example(checks.copied, sampler="bps", copy_of=lambda run, _: copy.deepcopy(run)),
            example(checks.copied, sampler="hmc", copy_of=checks.by_joblib),
            Example(checks.pickled_at_its_end),
        ),
    ),
    Kind(
        "SIGTERM, SIGHUP or SIGKILL while a run is recorded",
        "The process ends by the signal; what was written is whole, and `bnnviz.resume` goes on with the draws that it"
        " would have made",
        (
            example(checks.killed, number=signal.SIGTERM, sampler="bps"),
            example(checks.killed, number=signal.SIGKILL, sampler="hmc"),
            example(checks.killed, number=signal.SIGHUP, sampler="sgld", mark="slow"),
        ),
    ),
    Kind(
        "A disk that is full, or a recording that is removed, while it is written",
        "The run goes on with the same draws; one note says what is wrong",
        (
            example(checks.unwritable, how="full", says="cannot be written"),
            example(checks.unwritable, how="removed", says="was removed while it was written"),
            example(checks.unwritable, how="a file", says="was removed while it was written"),
        ),
    ),
    Kind(
        "The time is up: `wait(timeout)`, `minutes=`",
        "`wait` returns and the run goes on; with `minutes` it ends with the draws until then, and a note",
        (
            example(checks.waited, seconds=0.2, paused=False),
            example(checks.waited, seconds=0.0, paused=True),
            Example(checks.out_of_time),
        ),
    ),
)
