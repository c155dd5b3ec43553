"""The Wells in a real browser: they play, pause, step and stop, and begin anew with other settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from driving import OVERFLOW, Lab, until


class WellsPage(Lab):
    """The page as a user sees it."""

    def ready(self) -> WellsPage:
        """Wait for the first frame and for the first step: a run that waits for play takes one by itself."""
        self.page.wait_for_selector(".step b", timeout=60_000)
        until(lambda: self.figures().get("functionals", 0), 60, "nothing drawn")
        until(lambda: self.moves() > 0, 60, "they did not make their first move")
        return self

    def moves(self) -> int:
        """Return the moves made."""
        return int(self.page.locator(".step b").inner_text().split()[0].replace(",", ""))


@pytest.fixture
def open_wells(open_page: Callable[..., Any], dashboard: Any) -> Callable[..., WellsPage]:
    """Return a function that opens the wells by the rest of their address."""
    return lambda query="", **options: WellsPage(open_page(f"{dashboard.url}?page=wells{query}", **options)).ready()


def test_they_play_pause_step_and_stop(open_wells):
    wells = open_wells("&moves=12", viewport={"width": 1280, "height": 720})
    assert wells.page.evaluate(OVERFLOW) == [0, 0]
    before = wells.moves()
    wells.press("Next step")
    until(lambda: wells.moves() == before + 1, 5, "it made no step")
    wells.press("Play")
    until(lambda: wells.moves() > before + 2, 10, "it did not play")
    wells.press("Pause")
    wells.page.wait_for_timeout(700)
    made = wells.moves()
    wells.page.wait_for_timeout(1200)
    assert wells.moves() == made, "it did not pause"
    wells.page.keyboard.press("Space")
    until(lambda: "done" in wells.page.locator(".phase").inner_text(), 20, "it did not end")
    assert wells.moves() == 12
    until(lambda: "Move 12:" in wells.statement(), 5, wells.statement())
    assert "22 times the gradients" in wells.statement()


def test_other_wells_begin_anew_and_the_address_says_which(open_wells):
    wells = open_wells("&moves=5&play=1&speed=50&theme=dark")
    until(lambda: "done" in wells.page.locator(".phase").inner_text(), 20, "it did not end")
    wells.pick("Double well", "text: modes at ±2.2")
    until(lambda: "reading=text" in wells.page.evaluate("location.search"), 10, "the address is the old one")
    until(lambda: "0.79 from" in wells.statement(), 20, wells.statement())
