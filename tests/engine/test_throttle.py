"""Repeated work takes a share of the time, within limits of the wait."""

from __future__ import annotations

import pytest

from bnnviz.engine.throttle import Throttle


@pytest.fixture
def now() -> list[float]:
    return [100.0]


def test_work_is_due_at_first_and_after_a_share_of_the_time(now: list[float]) -> None:
    throttle = Throttle(0.1, clock=lambda: now[0])
    assert throttle.due
    throttle.spent(0.5)
    assert (throttle.due, throttle.wait) == (False, 5.0)
    now[0] += 4.9
    assert not throttle.due
    now[0] += 0.2
    assert throttle.due


@pytest.mark.parametrize(
    ("cost", "wait"), [(0.0, 1.0), (0.05, 1.0), (0.5, 5.0), (7.0, 20.0)], ids=["free", "cheap", "dear", "dearest"]
)
def test_the_wait_has_limits(cost: float, wait: float, now: list[float]) -> None:
    throttle = Throttle(0.1, least=1.0, most=20.0, clock=lambda: now[0])
    throttle.spent(cost)
    assert throttle.wait == pytest.approx(wait)


def test_without_a_share_the_cost_does_not_count(now: list[float]) -> None:
    throttle = Throttle(least=3.0, clock=lambda: now[0])
    throttle.spent(1000.0)
    assert throttle.wait == 3.0


def test_work_that_always_takes_as_long_takes_its_share(now: list[float]) -> None:
    throttle, worked, begun = Throttle(0.2, clock=lambda: now[0]), 0.0, now[0]
    while now[0] < begun + 1000:
        if throttle.due:
            now[0] += 0.7
            worked += 0.7
            throttle.spent(0.7)
        now[0] += 0.1
    # Work is no part of the time that is waited for.
    assert worked / (now[0] - begun) == pytest.approx(0.2 / 1.2, rel=0.05)
