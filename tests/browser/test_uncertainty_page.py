"""The page of uncertainty in a browser: it opens, plays, and is asked about images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bnnviz import data
from bnnviz.errors import BnnvizError

PLOTS = {"digit", "entropy", "reliability", "attack", "attack_entropy", "course", "turned"}
LINK = (
    "?page=uncertainty&target=images&t.data=mnist&t.network=mlp&t.train_rows=300&t.test_rows=80&chains=1&seed=1"
    "&entries=map,sgld&1.batch_size=50&1.steps=60&2.batch_size=50&2.step_size=0.0001&2.mode_steps=60&2.warmup=2"
    "&budget=30000&play=1"
)
NAMES = """() => [...Bokeh.documents[0]._all_models.values()].filter((m) => m.type === "Figure").map((m) => m.name)"""
OVERFLOW = (
    "() => [document.documentElement.scrollWidth - innerWidth, document.documentElement.scrollHeight - innerHeight]"
)
# How many marks of a figure have data.
DRAWN = """(name) => {
  const figure = [...Bokeh.documents[0]._all_models.values()].find((m) => m.type === "Figure" && m.name === name)
  const [marks, moving, still] = figure.tags
  return marks.tags.filter((mark) => (mark.still ? still : moving).data.packed.length).length
}"""
# The probabilities that the page shows of the chosen image.
SAID = """() => {
  const figure = [...Bokeh.documents[0]._all_models.values()].find((m) => m.type === "Figure" && m.name === "digit")
  return JSON.stringify(figure.tags.map((source) => [...source.data.packed ?? []].map((v) => Math.round(1000 * v))))
}"""


def _needs_images() -> None:
    try:
        data.load("mnist")
    except BnnvizError as error:
        pytest.skip(str(error))


@pytest.fixture
def page(open_page: Callable[..., Any], dashboard: Any) -> Any:
    _needs_images()
    found = open_page(f"{dashboard.url}{LINK}")
    found.get_by_role("button", name="Pause", exact=True).wait_for(timeout=30_000)
    found.locator(".wall button").first.wait_for(timeout=60_000)
    return found


def test_it_shows_what_entries_are_unsure_of(page: Any) -> None:
    assert set(page.evaluate(NAMES)) == PLOTS
    for name in sorted(PLOTS - {"attack", "attack_entropy"}):
        page.wait_for_function(f"(name) => ({DRAWN})(name) >= 2", arg=name, timeout=60_000)
    # The attacks are made when there is nothing else to ask.
    page.wait_for_function(f"(name) => ({DRAWN})(name) >= 2", arg="attack", timeout=90_000)
    assert page.evaluate(OVERFLOW) == [0, 0]
    assert page.locator(".wall button").count() >= 20


def test_an_image_is_picked_drawn_and_turned(page: Any) -> None:
    page.wait_for_function(f"(name) => ({DRAWN})(name) >= 2", arg="digit", timeout=60_000)
    before = page.evaluate(SAID)
    tile = page.locator(".wall button").nth(1)
    tile.click()
    page.wait_for_function(f"(before) => ({SAID})() !== before", arg=before, timeout=15_000)
    page.locator(".wall button[aria-pressed=true]").wait_for(timeout=15_000)

    before = page.evaluate(SAID)
    page.get_by_label("Angle in degrees").fill("90")
    page.wait_for_function(f"(before) => ({SAID})() !== before", arg=before, timeout=15_000)
