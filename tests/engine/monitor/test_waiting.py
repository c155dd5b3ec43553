"""What is said of a run that makes no draws yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import needs_compiler

from bnnviz.engine.monitor.waiting import Waiting
from bnnviz.engine.run import run as run_module
from bnnviz.engine.run.run import Run
from bnnviz.messages import Message
from bnnviz.specs.run import Spec


def run(**changes: Any) -> Any:
    known = {"phase": "tuning", "steps": 200, "seconds": 10.0, "descent": None}
    store = SimpleNamespace(made=np.zeros(2, dtype=int))
    share = changes.pop("share", None)
    sampler = SimpleNamespace(tuning_limit=5000, warmup_share=lambda state: share)
    spec = SimpleNamespace(draws=None)
    return SimpleNamespace(**known | changes, store=store, sampler=sampler, state=None, spec=spec, notes=[])


def test_a_warm_up_of_so_many_moves_gives_the_share_that_is_done() -> None:
    found = Waiting(run(share=0.25)).message()
    assert (found.code, found.values) == ("warmup_left", {"percent": 25.0, "seconds": 30.0})
    assert Waiting(run(share=0.0)).message() is Waiting(run(share=0.99)).message() is None
    searched = run(phase="start", share=0.25, seconds=6.0)
    waiting = Waiting(searched)
    waiting.begin_tuning()
    searched.phase, searched.seconds = "tuning", 10.0
    assert waiting.message().values["seconds"] == 12.0


def test_a_run_without_a_draw_for_long_makes_no_progress() -> None:
    going = run(phase="sampling")
    waiting = Waiting(going)
    waiting.note()
    going.seconds = 45.0
    waiting.note()
    assert (waiting.message().code, waiting.message().values) == ("no_progress", {"seconds": 35.0})
    going.store.made[0] = 1
    waiting.note()
    assert waiting.message() is None


def short(sampler: str, monkeypatch: pytest.MonkeyPatch, **more: Any) -> list[Message]:
    """Return the notes of a run of which every time is long."""
    monkeypatch.setattr(run_module, "_SHORT_S", 0.0)
    monkeypatch.setattr(run_module, "_COMPILE_S", 0.0)
    going = Run(
        Spec("banana", {}, sampler, **{"chains": 2, "draws": 10, "warmup": 4, "device": "cpu"} | more).checked()
    )
    going.prepare()
    for step in range(60):
        going = Run.restore(going.checkpoint()) if step == 5 else going
        if not going.finished:
            going.step_proposal()
    return going.notes


@needs_compiler
def test_a_long_run_is_told_of_compiled_steps_once(monkeypatch: pytest.MonkeyPatch) -> None:
    (note,) = short("hmc", monkeypatch)
    assert note.code == "slow_eager" and note.remedies[0].options == {"kernel": "compiled"}
    assert short("hmc", monkeypatch, draws=None) == []
    assert short("pmcnet", monkeypatch, settings={"draws_each": 5}) == [], "its steps cannot be compiled"
    monkeypatch.setattr("bnnviz.cpp.compiler", lambda: None)
    assert short("hmc", monkeypatch) == []
