"""The step-size microscope in a real browser: it plays, pauses and steps, and shows the density that is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_lab import OVERFLOW, Lab, until


class MicroscopePage(Lab):
    """The page as a user sees it."""

    def ready(self) -> MicroscopePage:
        """Wait for the first frame and for the first step: a run that waits for play takes one by itself."""
        self.page.wait_for_selector(".step b", timeout=60_000)
        until(lambda: self.figures().get("errors", 0), 60, "nothing drawn")
        until(lambda: self.number("step") > 0, 60, "it did not take its first steps")
        return self


@pytest.fixture
def open_microscope(open_page: Callable[..., Any], dashboard: Any) -> Callable[..., MicroscopePage]:
    """Return a function that opens the microscope by the rest of its address."""
    address = f"{dashboard.url}?page=microscope"
    return lambda query="", **options: MicroscopePage(open_page(f"{address}{query}", **options)).ready()


@pytest.mark.slow
def test_it_plays_pauses_steps_and_shows_another_density(open_microscope, screenshot):
    scope = open_microscope("&chains=64&place=6", viewport={"width": 1400, "height": 900})
    assert scope.page.evaluate(OVERFLOW) == [0, 0]
    before = scope.number("step")
    scope.press("Step")
    until(lambda: scope.number("step") == before + 8, 10, "it made no step")
    scope.press("Play")
    until(lambda: scope.number("step") > before + 100, 20, "it did not play")
    until(lambda: "too large at step size" in scope.said(), 20, scope.said())
    scope.press("Pause")
    scope.page.wait_for_timeout(700)
    made, drawn = scope.number("step"), scope.figures()
    scope.page.wait_for_timeout(1000)
    assert scope.number("step") == made, "it did not pause"
    slider = scope.page.get_by_role("slider", name="Step size")
    slider.focus()
    scope.page.keyboard.press("ArrowRight")
    until(lambda: "place=7" in scope.page.evaluate("location.search"), 10, "the address is the old one")
    until(lambda: scope.figures()["cell"] != drawn["cell"], 10, "the density is the old one")
    assert scope.number("step") == made, "it began anew"
    scope.pick("Sampler", "SGHMC")
    until(lambda: scope.said().startswith("SGHMC"), 10, scope.said())
    screenshot(scope.page, "microscope")


@pytest.mark.slow
def test_other_settings_begin_anew(open_microscope, screenshot):
    scope = open_microscope("&play=1&theme=dark")
    scope.pick("Target", "double well")
    until(lambda: "target=two_wells" in scope.page.evaluate("location.search"), 10, "the address is the old one")
    until(lambda: "Diverged" in scope.said(), 30, scope.said())
    screenshot(scope.page, "microscope-dark")
