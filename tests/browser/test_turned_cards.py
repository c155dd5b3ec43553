"""Cards behind others: correlations, densities and ratios, and what is chosen among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from driving import ON_NETWORK, OVERFLOW, Lab, until

LABEL = """() => {
  const path = [...Bokeh.documents[0]._all_models.values()].find((m) => m.type === "Figure" && m.name === "trajectory")
  return path.below[0].axis_label
}"""


def test_a_cell_of_the_correlations_is_followed(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = Lab(open_page(f"{dashboard.url}{ON_NETWORK}&play=1", viewport={"width": 1280, "height": 720})).ready()
    lab.diagnose()
    lab.press("Correlations")
    until(lambda: lab.figures().get("weights"), 60, "there are no correlations")
    box = lab.page.locator(".area-weights:visible canvas").first.bounding_box()
    lab.page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    follow = lab.page.get_by_role("combobox", name="Follow")
    number = until(lambda: follow.input_value().partition(": ")[0].isdigit() and follow.input_value(), 20, "no cell")
    heads, name = lab.page.locator("h2:visible"), number.partition(": ")[2]
    until(lambda: f"{name}, 4 chains" in heads.all_inner_texts(), 20, "the trace follows something else")
    assert lab.page.evaluate(OVERFLOW) == [0, 0]
    before = lab.figures()["weights"]
    lab.press("ACF")
    lab.press("Weights")
    lab.pick("Plane", "canonical PCs")
    until(lambda: "PC 1 (canonical)" in str(lab.page.evaluate(LABEL)), 20, "the path is not canonical")
    assert lab.page.get_by_text("not for moments").is_visible()
    assert lab.figures()["weights"] == before, "a card that nobody sees costs nothing"


def test_the_network_is_drawn_and_an_edge_under_the_pointer_is_followed(
    open_page: Callable[..., Any], dashboard: Any
) -> None:
    lab = Lab(open_page(f"{dashboard.url}?target=network&t.hidden=4&sampler=hmc&play=1")).ready()
    until(lambda: lab.number("draws") > 2, 60, "there are no draws")
    lab.diagnose()
    lab.press("Network")
    until(lambda: lab.figures().get("graph"), 30, "there is no network")
    figure = lab.page.locator("[role=figure][aria-label^='Network']").first
    until(lambda: "layers of 1, 4, 1 units" in figure.get_attribute("aria-label"), 10, "it has not been described")
    box = figure.bounding_box()
    # Half way along the highest edge of the second layer.
    lab.page.mouse.move(box["x"] + 0.68 * box["width"], box["y"] + 0.32 * box["height"], steps=3)
    follow = lab.page.get_by_role("combobox", name="Follow")
    chosen = until(lambda: "weight[0, " in follow.input_value() and follow.input_value(), 20, "no edge was followed")
    heads = lab.page.locator("h2:visible")
    until(lambda: f"{chosen.partition(': ')[2]}, 4 chains" in heads.all_inner_texts(), 20, "the trace follows another")
