"""The Papers in a real browser: cards open and close, the address follows, links lead to the other pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from driving import OVERFLOW, until

from bnnviz import experiments
from bnnviz.experiments import record
from bnnviz.specs.run import Spec

NAMES = list(experiments.EXPERIMENTS)
MEASURED = [name for name in NAMES if record.records(name)[0]]
IN_THE_LAB = "pdmp-table1"
DRAWN = "() => [...Bokeh.documents[0]._all_models.values()].filter((model) => model.type === 'Figure').length"


class PapersPage:
    """The page as a user sees it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        page.wait_for_selector("button[data-experiment]", timeout=60_000)

    def head(self, name: str) -> Any:
        """Return the button that opens an experiment's card."""
        return self.page.locator(f"button[data-experiment='{name}']")

    def shown(self) -> int:
        """Return how many cards are in sight."""
        return self.page.locator("button[data-experiment]:visible").count()

    def opened(self) -> str:
        """Return what the address says of open cards."""
        return parse_qs(self.page.evaluate("location.search").removeprefix("?")).get("open", [""])[0]


@pytest.fixture
def open_papers(open_page: Callable[..., Any], dashboard: Any) -> Callable[..., PapersPage]:
    """Return a function that opens the page by the rest of its address."""
    return lambda query="", **options: PapersPage(open_page(f"{dashboard.url}?page=papers{query}", **options))


def test_a_card_opens_and_the_address_and_its_links_follow(open_papers, open_page, dashboard):
    papers_page = open_papers(viewport={"width": 1280, "height": 720})
    page, name = papers_page.page, IN_THE_LAB
    until(lambda: papers_page.shown() == len(NAMES), 20, "not every experiment has a card")
    papers_page.head(name).focus()
    page.keyboard.press("Enter")
    until(lambda: papers_page.head(name).get_attribute("aria-expanded") == "true", 10, "it did not open")
    until(lambda: papers_page.opened() == name, 10, "the address is the old one")
    until(lambda: page.evaluate(DRAWN), 20, "nothing was drawn")
    assert page.get_by_text(f"bnnviz reproduce {name}", exact=True).is_visible()
    assert page.evaluate(OVERFLOW) == [0, 0]
    first = page.locator("td.case a").first
    address = urlsplit(first.get_attribute("href")).query
    given = parse_qs(address)
    assert given.pop("page") == ["lab"]
    expected = experiments.find(name).cases[0].specs[0].checked()
    assert Spec().read_query(given) == (expected, [])
    lab = open_page(f"{dashboard.url}?{address}")
    until(lambda: lab.locator(".statement").count(), 30, "the Lab did not open")
    assert Spec(draws=None).read_query(lab.evaluate("location.search").removeprefix("?"))[0] == expected
    page.keyboard.press("Enter")
    until(lambda: papers_page.opened() == "", 10, "the address has it still")
    assert page.locator("td.case a").count() == 0


@pytest.mark.parametrize("theme", ["default", "dark"])
def test_the_address_opens_a_card(open_papers, theme):
    name = MEASURED[-1]
    papers_page = open_papers(f"&open={name}&theme={theme}")
    page = papers_page.page
    until(lambda: papers_page.head(name).get_attribute("aria-expanded") == "true", 20, "it is not open")
    until(lambda: page.evaluate(DRAWN), 20, "nothing was drawn")
    until(lambda: papers_page.head(name).bounding_box()["y"] < page.viewport_size["height"], 10, "it is out of sight")
    assert page.evaluate(OVERFLOW) == [0, 0]
