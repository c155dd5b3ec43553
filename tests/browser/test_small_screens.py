"""What has little room is still read: figures on a projector of 1280x720, and the line of figures on a phone."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image
from test_lab import until

PROJECTOR, PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 844}
# The height of a figure's frame by the figure's name; 0 until it has one.
FRAME = """(name) => {
  const models = [...(window.Bokeh?.documents[0]?._all_models.values() ?? [])]
  try { return models.find((m) => m.type === "Figure" && m.name === name).inner_height } catch { return 0 }
}"""
# How far the last row of the leaderboard ends below what is seen of it, in pixels; None as long as there is none.
LAST_ROW = """() => {
  const all = (root) => [...root.querySelectorAll("*")].flatMap((el) => [el, ...all(el.shadowRoot ?? new Image())])
  const last = all(document).find((el) => el.matches("tr:last-child") && el.parentElement.querySelector("th.name"))
  if (!last?.querySelector("td.name")) { return null }
  return last.getBoundingClientRect().bottom - last.getRootNode().host.getBoundingClientRect().bottom
}"""
# The figures of the line that are seen: what each says, and where it ends.
CELLS = """(line) => [...line.children].map((cell) => [cell.textContent, cell.getBoundingClientRect()])
  .filter(([, box]) => box.width > 0).map(([text, box]) => [text, box.right])"""
TO_THE_END = "(settings) => { settings.scrollTop = settings.scrollHeight }"


@pytest.fixture
def opened(open_page: Callable[..., Any], dashboard: Any) -> Callable[..., Any]:
    """Return a function that opens a page by the rest of its address."""
    return lambda query, viewport: open_page(f"{dashboard.url}?{query}", viewport=viewport)


def test_the_energy_of_the_double_well_is_read_on_a_projector(opened: Callable[..., Any]) -> None:
    page = opened("page=wells&projector=1&moves=3&play=1", PROJECTOR)
    page.get_by_text("3 of 3").wait_for(timeout=60_000)
    page.wait_for_timeout(1000)
    assert page.evaluate(FRAME, "ledger") >= 80


def test_lanes_have_the_room_that_the_leaderboard_leaves(opened: Callable[..., Any]) -> None:
    page = opened("page=race&projector=1", PROJECTOR)
    until(lambda: page.evaluate(FRAME, "trajectory.5"), 60, "there are no six lanes")
    until(lambda: page.evaluate(LAST_ROW) is not None, 60, "there is no leaderboard")
    page.wait_for_timeout(1000)
    assert -24 < page.evaluate(LAST_ROW) <= 1, "it is cut, or a row more would fit"
    assert page.evaluate(FRAME, "trajectory.5") >= 65


def test_figures_that_do_not_fit_in_a_phones_line_go_to_the_next(opened: Callable[..., Any]) -> None:
    page = opened("page=population&play=1", PHONE)
    line = page.locator(".line")

    def ends() -> list[float]:
        return [end for text, end in line.evaluate(CELLS) if "weight ESS" in text] if line.count() else []

    until(ends, 60, "there is no weight ESS")
    assert ends()[0] <= PHONE["width"]


def test_the_link_of_the_page_is_in_sight_on_a_phone(opened: Callable[..., Any]) -> None:
    page = opened("page=uncertainty", PHONE)
    here, toggle = page.locator("a.here"), page.get_by_role("button", name="Toggle theme")
    here.wait_for(timeout=60_000)
    page.wait_for_timeout(1500)
    link, right = here.bounding_box(), toggle.bounding_box()["x"]
    assert link["x"] >= 0
    assert link["x"] + link["width"] <= right


def test_the_card_of_the_hardest_images_says_what_comes(opened: Callable[..., Any]) -> None:
    page = opened("page=uncertainty", PROJECTOR)
    said = page.locator(".wall p")
    said.wait_for(timeout=60_000)
    assert "least sure of" in said.inner_text()
    assert said.bounding_box()["height"] > 10
    page.get_by_role("button", name="Attacked", exact=True).click()
    page.locator(".wall p", has_text="mislead").wait_for(timeout=10_000)


def test_a_choice_in_a_heading_leaves_the_next_line_to_the_legend(opened: Callable[..., Any]) -> None:
    page = opened("page=uncertainty&projector=1", PROJECTOR)
    choice = page.get_by_role("combobox", name="Images of another kind")
    choice.wait_for(timeout=60_000)
    page.wait_for_timeout(1000)
    card, box = page.locator(".tour-entropy").bounding_box(), choice.bounding_box()
    assert box["y"] + box["height"] <= card["y"] + 31


def test_a_shade_tells_that_there_are_more_settings_below(opened: Callable[..., Any]) -> None:
    page = opened("page=race", PROJECTOR)
    page.get_by_label("Lane 6").wait_for(state="attached", timeout=60_000)
    page.wait_for_timeout(1000)
    assert _darkest_at_the_foot(page) < 235
    page.locator(".MuiDrawer-paper").evaluate(TO_THE_END)
    page.wait_for_timeout(500)
    assert _darkest_at_the_foot(page) > 250


def _darkest_at_the_foot(page: Any) -> float:
    """Return how light, of 255, the darkest of the last lines of the settings is, in a stretch without words."""
    clip = {"x": 268, "y": PROJECTOR["height"] - 6, "width": 8, "height": 6}
    pixels = np.asarray(Image.open(BytesIO(page.screenshot(clip=clip))).convert("L"), dtype=float)
    return float(pixels.mean(axis=1).min())
