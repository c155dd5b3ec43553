"""Repeated work takes a share of the time, within limits of the wait."""

from __future__ import annotations

import pytest

from bnnviz.engine.throttle import Throttle


@pytest.mark.parametrize(
    ("options", "cost", "wait"),
    [
        ({"share": 0.1}, 0.5, 5.0),
        ({"share": 0.1, "least": 1.0, "most": 20.0}, 0.0, 1.0),
        ({"share": 0.1, "least": 1.0, "most": 20.0}, 0.5, 5.0),
        ({"share": 0.1, "least": 1.0, "most": 20.0}, 7.0, 20.0),
        ({"least": 3.0}, 1000.0, 3.0),
    ],
)
def test_work_is_due_at_first_and_after_a_share_of_the_time(options: dict, cost: float, wait: float) -> None:
    now = [100.0]
    throttle = Throttle(**options, clock=lambda: now[0])
    assert throttle.due
    throttle.spent(cost)
    assert throttle.wait == pytest.approx(wait) and not throttle.due
    now[0] += wait + 0.1
    assert throttle.due
