"""What is said of a run that makes no draws yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from bnnviz.engine.run.failures import Waiting


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
    waiting.tuning_since = searched.seconds
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
