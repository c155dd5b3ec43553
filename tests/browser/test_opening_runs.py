"""Pages open on a recorded run, which no worker executes, until a user runs it live."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from driving import Lab, until


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "step"),
    [("race", 30_000), ("population", 1000), ("uncertainty", 4000), ("wells", 10)],
)
def test_a_page_opens_on_a_recorded_run_that_a_button_repeats(
    page: str, step: int, open_page: Callable[..., Any], dashboard: Any
) -> None:
    lab = Lab(open_page(f"{dashboard.url}?page={page}"))
    until(lambda: lab.page.locator(".step b").count() and lab.number("step") >= step, 30, "no recorded run is shown")
    assert sum(1 for drawn in lab.figures().values() if drawn) > 1, "the figures are empty"
    assert lab.run() is None, "a run was started"
    lab.button("Run live").click()
    until(lambda: lab.run() is not None and 0 < lab.number("step") < step, 60, "it does not run")
    assert not lab.button("Run live").is_visible()


@pytest.mark.slow
def test_a_step_and_a_reload_leave_the_recorded_run(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = Lab(open_page(f"{dashboard.url}?page=population"))
    until(lambda: lab.page.locator(".step b").count() and lab.number("step") == 1000, 30, "no recorded run is shown")
    lab.press("Next phase")
    until(lambda: 0 < lab.number("step") < 20, 60, "no run was started")
    lab.page.reload()
    until(lambda: lab.page.locator(".step b").count() and 0 < lab.number("step") < 20, 60, "the run is not found again")
