"""The race in a real browser: it plays, pauses, steps, stops at its budget, and shows what diverges as such."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from driving import Lab, until

BUDGET = 12_000
SHORT = f"&target=gaussian&entries=hmc,sgld,bps&chains=2&1.warmup=5&2.warmup=5&3.warmup=5&budget={BUDGET}"
WILD = f"&target=gaussian&entries=hmc,sgld,sghmc&chains=2&1.warmup=5&3.warmup=5&2.step_size=100&budget={BUDGET}"
NETWORK = (
    "&target=network&t.data=toy_c&t.hidden=3&entries=hmc,bps&chains=2&1.mode_steps=50&2.mode_steps=50&1.warmup=5"
    "&2.warmup=5&budget=400000"
)

RANGES = """() => [...Bokeh.documents[0]._all_models.values()].filter((m) => m.name?.startsWith("trajectory"))
  .map((m) => [m.x_range.start, m.x_range.end, m.y_range.start, m.y_range.end])"""


class RacePage(Lab):
    """The page as a user sees it."""

    def ready(self) -> RacePage:
        """Wait for the first frame and for the first step: a run that waits for play takes one by itself."""
        self.page.wait_for_selector(".step b", timeout=60_000)
        until(
            lambda: self.figures().get("trajectory.0", 0) or self.figures().get("prediction.0", 0), 60, "nothing drawn"
        )
        until(lambda: self.number("step") > 0, 60, "it did not take its first step")
        return self

    def rows(self) -> list[list[str]]:
        """Return the cells of the table, line by line."""
        cells = "rows => rows.map((row) => [...row.cells].map((cell) => cell.innerText))"
        return self.page.locator("table tr:has(td)").evaluate_all(cells)

    def column(self, head: str) -> list[str]:
        """Return the figures under a heading."""
        heads = self.page.locator("table th").all_inner_texts()
        place = next(i for i, text in enumerate(heads) if text.startswith(head))
        return [row[place] for row in self.rows()]

    def spent(self) -> list[int]:
        """Return the gradients that the entries have spent."""
        return [int(text.replace(",", "")) for text in self.column("gradients")]

    def end(self, lost: str = "the one of no name") -> None:
        """Wait until the race is over and the later table shows it for all entries but the lost."""
        until(lambda: "done" in self.page.locator(".phase").inner_text(), 60, "it did not end")
        until(
            lambda: all(
                lost in row[1] or BUDGET - 100 < spent <= BUDGET
                for row, spent in zip(self.rows(), self.spent(), strict=True)
            ),
            20,
            f"not the budget: {self.rows()}",
        )

    def address(self) -> str:
        """Return what stands after the question mark."""
        return self.page.evaluate("location.search")

    def sort(self, head: str) -> None:
        """Press a heading."""
        self.page.locator(f"table th button:text-matches('^{head}')").first.click()


@pytest.fixture
def open_race(open_page: Callable[..., Any], dashboard: Any) -> Callable[..., RacePage]:
    """Return a function that opens a race by the rest of its address."""
    return lambda query="", **options: RacePage(open_page(f"{dashboard.url}?page=race{query}", **options)).ready()


def test_it_plays_pauses_steps_and_stops_at_the_budget(open_race):
    race = open_race(SHORT)
    before = race.number("step")
    race.press("Next step")
    until(lambda: race.number("step") > before, 5, "it made no step")
    step = race.number("step")
    race.page.wait_for_timeout(700)
    assert race.number("step") == step, "a step pauses"
    race.press("Play")
    until(lambda: race.number("step") > step + 50, 20, "it did not play")
    race.press("Pause")
    until(lambda: "paused" in race.page.locator(".phase").inner_text(), 10, "it did not pause")
    race.page.wait_for_timeout(700)
    step, spent = race.number("step"), race.spent()
    race.page.wait_for_timeout(700)
    assert (race.number("step"), race.spent()) == (step, spent), "it went on"
    assert max(spent) - min(spent) < 0.05 * BUDGET, f"the entries are apart: {spent}"
    race.page.keyboard.press("Space")
    race.end()
    assert "–" not in race.column("error")
    race.page.wait_for_timeout(1500)  # what changes slowly is shown about once a second
    spent = race.spent()
    race.page.wait_for_timeout(700)
    assert race.spent() == spent
    assert race.statement().startswith(f"After {BUDGET:,} gradients each: ")
    assert "has the smallest error" in race.statement()


def test_a_entry_that_diverges_is_shown_as_such_and_the_others_finish(open_race):
    race = open_race(WILD + "&play=1")
    until(lambda: race.page.locator("h2 .lost:visible").count() == 1, 30, "no badge")
    race.end(lost="SGLD")
    assert race.column("error").count("–") == 1
    last = race.rows()[-1]
    assert last[0] == "–" and "SGLD" in last[1] and "diverged" in last[1]
    assert "SGLD diverged and is not ranked" in race.statement()
    ranges = race.page.evaluate(RANGES)
    # Frames differ by a pixel.
    assert len(ranges) == 3 and all(each == pytest.approx(ranges[0], rel=0.01) for each in ranges), ranges
    race.sort("error")
    assert "SGLD" in race.rows()[-1][1], "an unknown figure comes last the other way too"
    assert "nan" not in f"{race.rows()} {race.statement()}".lower()


def test_entries_and_budget_are_chosen_at_the_left_and_the_address_says_so(open_race):
    race = open_race(SHORT)
    race.settings()
    race.press("Add a sampler")
    until(lambda: len(race.rows()) == 4, 20, "no entry came")
    race.pick("Sampler 2", "NUTS")
    until(lambda: any("NUTS" in row[1] for row in race.rows()), 20, "the sampler did not change")
    race.field("Budget").fill("20000")
    race.page.keyboard.press("Enter")
    until(lambda: "20,000 gradients each" in race.page.locator(".budget").inner_text(), 20, "the budget did not change")
    until(
        lambda: "budget=20000" in race.address() and "entries=hmc,nuts,bps," in race.address(), 5, "not in the address"
    )
    race.page.locator(".area-sidebar").get_by_role("button", name="Settings", exact=True).first.click()
    leaps = race.field("Leapfrog steps")
    until(leaps.is_visible, 20, "the settings did not unfold")
    race.field("Budget").fill("many")
    race.page.keyboard.press("Enter")
    alert = race.page.locator(".error[role=alert]:visible")
    until(lambda: "whole number" in " ".join(alert.all_inner_texts()), 10, "nothing was said of the budget")


def test_a_network_is_drawn_by_its_predictions_and_measured_against_a_reference(open_race):
    race = open_race(NETWORK)
    assert "reference: NUTS" in race.page.locator(".reference").inner_text()
    figures = race.figures()
    race.page.get_by_role("button", name="Trajectories", exact=True).click()
    race.press("Play")
    until(lambda: race.figures()["trajectory.1"] != figures["trajectory.1"], 20, "no trajectory moved")
    race.page.get_by_role("button", name="Predictions", exact=True).click()
    until(lambda: race.figures()["prediction.1"] != figures["prediction.1"], 20, "no prediction moved")
    heads = " ".join(race.page.locator("table th").all_inner_texts())
    assert "NLL" in heads and "RMSE" in heads
