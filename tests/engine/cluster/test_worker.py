"""What a worker's log says of a scheduler that has gone, and when it imports what a run needs later."""

import inspect
import logging
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from distributed import worker as dask_worker

from bnnviz.engine.cluster import loop as live
from bnnviz.engine.cluster import worker
from bnnviz.engine.cluster.slot import Slot


@pytest.mark.parametrize(
    ("sentence", "traced"), [(f"{worker._SILENT_SCHEDULER}.", False), ("Something else happened.", True)]
)
def test_a_heartbeat_that_nobody_hears_is_a_sentence(sentence: str, traced: bool) -> None:
    try:
        raise OSError("closed")
    except OSError:
        record = logging.LogRecord("distributed.worker", logging.ERROR, "", 0, sentence, (), sys.exc_info())
    assert worker._in_a_sentence(record)
    assert bool(record.exc_info) is traced


def test_it_is_what_dask_says() -> None:
    assert worker._SILENT_SCHEDULER in inspect.getsource(dask_worker.Worker.heartbeat)
    assert dask_worker.logger.name == "distributed.worker"


@pytest.mark.parametrize("runs", ["none", "one", "ending"])
def test_what_imports_much_waits_for_a_first_run_that_looks_for_its_start(
    monkeypatch: pytest.MonkeyPatch, runs: str
) -> None:
    monkeypatch.setattr(worker, "_COMES_S", 0.3)
    monkeypatch.setattr(worker, "_ending", threading.Event())
    begun, comes, starts = time.monotonic(), 0.1, 0.6

    def there() -> float:
        return time.monotonic() - begun - comes if runs != "none" else -1.0

    monkeypatch.setattr(live, "census", lambda: [{}] if there() >= 0 else [])
    monkeypatch.setattr(live, "starting", lambda: 0 <= there() < starts)
    if runs == "ending":
        threading.Timer(0.2, worker._ending.set).start()
    worker._let_first_run_start()
    least, most = {"none": (0.3, 0.6), "one": (comes + starts, 1.5), "ending": (0.2, 0.5)}[runs]
    assert least <= time.monotonic() - begun < most


def test_a_loop_says_whether_a_run_looks_for_its_start(tmp_path: Path) -> None:
    loop = live.LiveLoop(folder=tmp_path)
    try:
        assert not loop.starting()
        slots = {phase: Slot(phase, lambda slot: None) for phase in ("start", "sampling")}
        for phase, slot in slots.items():
            slot.run, slot.state = SimpleNamespace(phase=phase), "running"
        loop._all = lambda: [slots["sampling"]]
        assert not loop.starting()
        loop._all = lambda: list(slots.values())
        assert loop.starting()
        slots["start"].stopping = True
        assert not loop.starting()
        loop._all = lambda: [Slot("queued", lambda slot: None)]
        assert loop.starting()
        loop._all = list
    finally:
        loop.close()
