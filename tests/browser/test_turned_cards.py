"""Cards behind others: correlations, densities and ratios, and what is chosen among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_lab import OVERFLOW, Lab, until

LABEL = """() => {
  const path = [...Bokeh.documents[0]._all_models.values()].find((m) => m.type === "Figure" && m.name === "trajectory")
  return path.below[0].axis_label
}"""


@pytest.mark.demand
def test_a_cell_of_the_correlations_is_followed_and_the_cards_turn_back(
    open_page: Callable[..., Any], dashboard: Any, screenshot: Callable[..., Any]
) -> None:
    url = f"{dashboard.url}&play=1" if "?" in dashboard.url else f"{dashboard.url}?page=lab&play=1"
    lab = Lab(open_page(url, viewport={"width": 1280, "height": 720})).ready()
    heads = lab.page.locator("h2:visible")
    until(lambda: lab.number("draws") > 10, 60, "there are no draws")
    lab.press("Weights")
    lab.press("Ratios")
    until(lambda: lab.figures().get("weights"), 30, "there are no correlations")
    until(lambda: lab.figures().get("marginal") and lab.figures().get("ratios"), 30, "the other cards are empty")
    box = lab.page.locator(".tour-path:visible canvas").first.bounding_box()
    lab.page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    follow = lab.page.get_by_role("combobox", name="Follow")
    number = until(lambda: follow.input_value().partition(": ")[0].isdigit() and follow.input_value(), 10, "no cell")
    name = number.partition(": ")[2]
    until(lambda: f"{name}, 4 chains" in heads.all_inner_texts(), 20, "the trace follows something else")
    assert lab.page.evaluate(OVERFLOW) == [0, 0]
    screenshot(lab.page, "turned-1280x720")
    lab.press("Trajectory")
    lab.press("Segment")
    titles = until(lambda: {"Trajectory", "ACF"} <= set(heads.all_inner_texts()) and heads.all_inner_texts(), 5, "no")
    assert "Correlations" not in titles and "Density" not in titles
    before = lab.figures()["weights"]
    lab.pick("Plane", "canonical PCs")
    until(lambda: "PC 1 (canonical)" in str(lab.page.evaluate(LABEL)), 20, "the path is not canonical")
    assert lab.page.get_by_text("not for moments").is_visible()
    assert lab.figures()["weights"] == before, "a card that nobody sees costs nothing"
