"""The population in a real browser: it plays, steps a phase and an iteration, and raises the alarm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from driving import OVERFLOW, Lab, until


class PopulationPage(Lab):
    """The page as a user sees it."""

    def ready(self) -> PopulationPage:
        """Wait for the first frame, and for the first iteration: a run that waits for play makes one by itself."""
        self.page.wait_for_selector(".step b", timeout=60_000)
        until(lambda: self.figures().get("population", 0), 60, "nothing drawn")
        until(lambda: self.number("events") > 0, 60, "it made no iteration")
        return self


@pytest.fixture
def open_population(open_page: Callable[..., Any], dashboard: Any) -> Callable[..., PopulationPage]:
    """Return a function that opens the population by the rest of its address."""
    address = f"{dashboard.url}?page=population"
    return lambda query="", **options: PopulationPage(open_page(f"{address}{query}", **options)).ready()


def test_it_plays_and_steps_phases_and_iterations(open_population):
    population = open_population("&play=0", viewport={"width": 1280, "height": 720})
    assert population.page.evaluate(OVERFLOW) == [0, 0]
    assert population.number("step") == 5
    assert population.statement().startswith("Iteration 1: the survivors move along the gradient")
    for number, statement in enumerate(
        ("20 proposals draw 50 points each", "draws are weighted", "20 draws survive"), start=6
    ):
        drawn = population.figures()["population"]
        population.press("Next phase")
        until(lambda number=number: population.number("step") == number, 10, "it made no step")
        until(lambda said=f"Iteration 2: {statement}": said in population.statement(), 10, population.statement())
        until(lambda drawn=drawn: population.figures()["population"] != drawn, 10, "the picture is the old one")
    population.press("Next iteration")
    until(lambda: population.number("step") == 10, 10, "it did not end the iteration")
    assert population.number("events") == 2
    population.press("Play")
    until(lambda: population.number("events") > 4, 20, "it did not play")
    population.press("Pause")
    population.page.wait_for_timeout(700)
    made = population.number("step")
    population.page.wait_for_timeout(1000)
    assert population.number("step") == made, "it did not pause"


def test_weights_that_collapse_raise_the_alarm(open_population):
    population = open_population("&play=0&theme=dark")
    population.pick("Example", "Weight collapse: 10 proposals with 10 draws on Ionosphere")
    until(lambda: "The weights have collapsed" in population.statement(), 60, population.statement())
    until(lambda: population.figures().get("roc", 0), 30, "no ROC curve")
    until(lambda: "t.data=pmcnet_ionosphere" in population.page.evaluate("location.search"), 10, "the old address")
    assert population.page.locator("td.bad").count() >= 2
    population.press("Play")
    until(lambda: population.number("events") > 4, 60, "it did not play")
    population.press("Pause")
