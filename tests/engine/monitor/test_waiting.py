"""What is said of a run that makes no draws yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import needs_compiler

from bnnviz.cli.output import say
from bnnviz.engine.monitor.summary import summarise
from bnnviz.engine.monitor.waiting import Waiting
from bnnviz.engine.run import run as run_module
from bnnviz.engine.run.run import Run
from bnnviz.specs.run import Spec


def run(**changes: Any) -> Any:
    known = {"phase": "tuning", "steps": 200, "seconds": 10.0, "descent": None}
    store = SimpleNamespace(made=np.zeros(2, dtype=int))
    share = changes.pop("share", None)
    sampler = SimpleNamespace(tuning_limit=5000, warmup_share=lambda state: share)
    spec = SimpleNamespace(draws=None)
    return SimpleNamespace(**known | changes, store=store, sampler=sampler, state=None, spec=spec, notes=[])


def test_a_warm_up_says_how_long_it_takes_at_most() -> None:
    assert Waiting(run()).sentence() == "Step 200 of at most 5,000, at most 240 s more."
    assert Waiting(run(seconds=0.1)).sentence() == "" and Waiting(run(steps=0)).sentence() == ""


def test_a_warm_up_of_so_many_moves_says_which_share_is_done() -> None:
    """Not how many steps it might take, which is many times what its moves take."""
    assert Waiting(run(share=0.25)).sentence() == "The warm-up is 25 % done, about 30 s more."
    assert Waiting(run(share=0.0)).sentence() == Waiting(run(share=0.99)).sentence() == ""
    searched = run(phase="start", share=0.25, seconds=6.0)
    waiting = Waiting(searched)
    waiting.begin_tuning()
    searched.phase, searched.seconds = "tuning", 10.0
    assert waiting.sentence() == "The warm-up is 25 % done, about 12 s more."


def test_a_search_for_a_start_says_about_how_long_it_takes() -> None:
    descent = SimpleNamespace(taken=50, steps=3000, seconds_left=59.0)
    assert Waiting(run(phase="start", descent=descent)).sentence() == "Step 50 of 3,000, about 59 s more."


def test_a_run_without_a_draw_for_long_gets_nowhere() -> None:
    going = run(phase="sampling")
    waiting = Waiting(going)
    waiting.note()
    going.seconds = 45.0
    waiting.note()
    assert waiting.sentence().startswith("No chain has made a draw for 35 s, so the run gets nowhere")
    going.store.made[0] = 1
    waiting.note()
    assert waiting.sentence() == ""


def short(sampler: str, monkeypatch: pytest.MonkeyPatch, **more: Any) -> list[str]:
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
def test_a_long_run_is_told_of_machine_code_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (note,) = short("hmc", monkeypatch)
    assert note.endswith('machine code of a step may be many times as fast (`kernel="compiled"`).')
    say(note)
    assert capsys.readouterr().err.endswith("(--kernel compiled).\n")
    assert short("hmc", monkeypatch, draws=None) == []
    assert short("pmcnet", monkeypatch, settings={"draws_each": 5}) == [], "its steps cannot be compiled"
    monkeypatch.setattr("bnnviz.cpp.compiler", lambda: None)
    assert short("hmc", monkeypatch) == []


def test_a_summary_in_the_middle_of_the_warm_up_warns_that_there_are_no_draws() -> None:
    going = Run(Spec("gaussian", {}, "nuts", {}, draws=None, device="cpu"))
    going.prepare()
    going.step_proposal()
    assert any("There are no draws yet" in said for said in summarise(going)["warnings"])
