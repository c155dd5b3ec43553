"""Repeated work takes a share of the time, within limits of the wait."""

from __future__ import annotations

import pytest

from bnnviz.engine.throttle import Throttle


class Clock:
    """Shows the time that it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_work_is_due_at_first_and_after_a_share_of_the_time(clock: Clock) -> None:
    throttle = Throttle(0.1, clock=clock)
    assert throttle.due
    throttle.spent(0.5)
    assert (throttle.due, throttle.wait) == (False, 5.0)
    clock.now += 4.9
    assert not throttle.due
    clock.now += 0.2
    assert throttle.due


@pytest.mark.parametrize(
    ("cost", "wait"), [(0.0, 1.0), (0.05, 1.0), (0.5, 5.0), (7.0, 20.0)], ids=["free", "cheap", "dear", "dearest"]
)
def test_the_wait_has_limits(cost: float, wait: float, clock: Clock) -> None:
    throttle = Throttle(0.1, least=1.0, most=20.0, clock=clock)
    throttle.spent(cost)
    assert throttle.wait == pytest.approx(wait)


def test_without_a_share_the_cost_does_not_count(clock: Clock) -> None:
    throttle = Throttle(least=3.0, clock=clock)
    throttle.spent(1000.0)
    assert throttle.wait == 3.0


def test_work_that_always_takes_as_long_takes_its_share(clock: Clock) -> None:
    throttle, worked, begun = Throttle(0.2, clock=clock), 0.0, clock.now
    while clock.now < begun + 1000:
        if throttle.due:
            clock.now += 0.7
            worked += 0.7
            throttle.spent(0.7)
        clock.now += 0.1
    # Work is no part of the time that is waited for.
    assert worked / (clock.now - begun) == pytest.approx(0.2 / 1.2, rel=0.05)
