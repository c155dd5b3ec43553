"""A process that records a run ends at one operation on the disk after another: what it wrote is whole each time."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import sys
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bnnviz.engine.recording import writer
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.recording.resume import resume
from bnnviz.engine.recording.writer import RecordingWriter
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec

DRAWS = 8
BANANA = Spec(target="banana", sampler="bps", chains=2, draws=DRAWS, warmup=4, seed=4)
SPECS = {
    "with an end": BANANA,
    "with weights": BANANA.replace(sampler="pmcnet_light", settings={"draws_each": 4}),
    "without an end": BANANA.replace(draws=None),
}
STEPS, EACH = 90, 30  # steps of a run without an end, and steps between two writes
KILLED = 9
PARTS = 40  # every operation is in one of so many tests, of which some run always
pytestmark = pytest.mark.timeout(900)  # dozens of processes in each test
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"}


class Operations:
    """Counts what this process changes on the disk, and ends it before the operation with a number."""

    def __init__(self, last: int | None = None) -> None:
        self.count, self.last = 0, last
        sys.addaudithook(self)

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
        if not (writes or event in CHANGES):
            return
        self.count += 1
        if self.count == self.last:
            os._exit(KILLED)


def some_steps(run: ViewedRun) -> None:
    for _ in range(EACH):
        if not run.finished:
            run.take(1)


def record(spec: Spec, folder: Path, go_on: bool) -> None:
    """Record a run to its end, a write every few steps, with files so small that each write begins new ones."""
    writer._CHUNK = 64
    run = resume(folder) if go_on else ViewedRun(spec)
    keeper = RecordingWriter(run, folder)
    run.prepare()
    while not run.finished and (spec.draws is not None or run.steps < STEPS):
        some_steps(run)
        keeper.note(now=True)
    keeper.close()


def counted(pipe: Any, *args: Any) -> None:
    torch.set_num_threads(1)
    operations = Operations()
    record(*args)
    pipe.send(operations.count)


def killed(last: int, *args: Any) -> None:
    torch.set_num_threads(1)
    Operations(last)
    record(*args)


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """Give processes that have torch from the beginning."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["bnnviz.engine.viewed_run", "bnnviz.engine.recording.writer", "zarr", "arviz_stats"]
    )
    yield context
    forkserver._forkserver._stop()  # there is no other way to end it before this process ends


def operations(server: Any, *args: Any) -> int:
    here, there = server.Pipe()
    process = server.Process(target=counted, args=(there, *args))
    process.start()
    there.close()  # so that a process that fails without an answer is not waited for
    found = here.recv()
    process.join()
    return found


def kill(server: Any, last: int, *args: Any) -> bool:
    """Record until an operation; return whether the process came to it."""
    process = server.Process(target=killed, args=(last, *args))
    process.start()
    process.join()
    assert process.exitcode in (0, KILLED)
    return process.exitcode == KILLED


def run_on(run: ViewedRun) -> ViewedRun:
    run.prepare()
    while not run.finished and (run.spec.draws is not None or run.steps < STEPS):
        run.take(1)
    return run


def check(folder: Path, truth: ViewedRun) -> None:
    """Whatever is there is sound and goes on to the end that an undisturbed run comes to."""
    recording = Recording(folder)
    recording.check()
    draws, logs, whole = recording.read_draws(), recording.read_log_weights(), recording.whole
    if draws is not None:
        np.testing.assert_array_equal(draws[:, :whole], truth.draws[:, :whole])
    if logs is not None:
        np.testing.assert_array_equal(logs[:, :whole], truth.log_weights[:, :whole])
    again = run_on(resume(folder))
    np.testing.assert_array_equal(again.draws, truth.draws)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", SPECS)
def test_a_process_that_ends_before_any_operation_leaves_a_whole_recording(
    kind: str, part: int, server: Any, tmp_path: Path
) -> None:
    """Nothing that was acknowledged is lost, and what goes on, killed once more, comes to the same draws."""
    spec, folder, rng = SPECS[kind], tmp_path / "run", random.Random(part)
    truth = run_on(ViewedRun(spec))
    came = 0
    for last in range(1 + part, operations(server, spec, tmp_path / "whole", False) + 1, PARTS):
        shutil.rmtree(folder, ignore_errors=True)
        came += kill(server, last, spec, folder, False)
        if not folder.exists():  # a recording appears as a whole
            continue
        check(folder, truth)
        kill(server, rng.randint(1, 40), spec, folder, True)
        check(folder, truth)
    assert came > 1
