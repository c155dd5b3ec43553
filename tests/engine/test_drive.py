"""Runs are driven by one loop and one pace, and who looks on changes no draw."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from families import some_quick

from bnnviz.engine import drive as driving
from bnnviz.engine.drive import Pace, drive, make_changes, replay
from bnnviz.engine.run.run import Run
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec

SPECS = {
    "bps": Spec(target="banana", sampler="bps", chains=3, draws=40, warmup=5, seed=1),
    "hmc": Spec(target="gaussian", sampler="hmc", chains=3, draws=40, warmup=5, seed=1),
    "pmcnet_light": Spec(target="banana", sampler="pmcnet_light", chains=3, draws=20, warmup=5, seed=1),
}


class Counter:
    """Has so many steps to take; says what was asked of it."""

    def __init__(self, steps: int, phase: str = "sampling") -> None:
        self.left, self.phase, self.slices = steps, phase, 0

    @property
    def finished(self) -> bool:
        return self.left <= 0

    def advance(self, seconds: float = 0.02) -> int:
        self.slices += 1
        self.left -= 10
        return 10

    def step_proposal(self) -> None:
        self.left -= 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [50.0]
    monkeypatch.setattr(driving.time, "monotonic", lambda: now[0])
    return now


def test_what_is_driven_comes_to_its_end_or_is_stopped() -> None:
    run, reported = Counter(95), []
    assert drive(run, 0.1, lambda: reported.append(run.left))
    assert run.slices == len(reported) == 10
    run = Counter(95)
    assert not drive(run, 0.1, stopped=lambda: run.slices == 3)
    assert run.slices == 3
    run = Counter(0)
    assert drive(run, 0.1, stopped=lambda: True), "what has ended was not stopped"


def test_a_pace_takes_the_steps_that_are_due(clock: list[float]) -> None:
    run, pace = Counter(1000), Pace(10.0)
    pace.restart()
    assert pace.advance(run, 0.02) == 1
    assert pace.rests(clock[0]) and pace.due == pytest.approx(50.1)
    assert pace.advance(run, 0.02) == 0
    clock[0] += 60.0
    assert pace.advance(run, 0.02) == 2, "who could not keep up owes no steps but those of one slice"


def test_at_full_speed_and_on_the_way_to_a_start_a_slice_is_worked(clock: list[float]) -> None:
    assert Pace().advance(Counter(1000), 0.02) == 10
    assert Pace(1.0).advance(Counter(1000, "start"), 0.02) == 10
    assert not Pace().rests(clock[0])


@pytest.mark.parametrize("name", some_quick(SPECS, 1))
def test_who_looks_on_changes_no_draw(name: str) -> None:
    alone, viewed = Run(SPECS[name]), ViewedRun(SPECS[name])
    drive(alone, 0.1)
    parts = viewed.scene()["emits"]
    drive(viewed, 0.02, lambda: viewed.frame(parts))
    assert np.array_equal(alone.draws, viewed.draws)


def test_a_run_is_repeated_with_its_changes_however_the_time_is_cut() -> None:
    first = Run(SPECS["bps"])
    first.prepare()
    for number in range(60):
        if number == 35:
            first.change({"refresh_rate": 3.0})
        first.step_proposal()
    found = []
    for slice_s in (1e-4, 0.05):
        again, changes = Run(SPECS["bps"]), deque(first.changes)
        steps = replay(again, changes, 20, slice_s=slice_s) + replay(again, changes, 60, slice_s=slice_s)
        assert (steps, again.steps, len(changes)) == (60, 60, 0)
        found.append(again.draws)
    assert np.array_equal(found[0], first.draws) and np.array_equal(found[1], first.draws)
    left = deque([(60, {"refresh_rate": 1.0}), (61, {"refresh_rate": 2.0})])
    make_changes(again, left)
    assert list(left) == [(61, {"refresh_rate": 2.0})] and again.spec.settings["refresh_rate"] == 1.0
