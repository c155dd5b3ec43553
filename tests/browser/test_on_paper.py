"""What a page is on paper: its texts, figures and tables in the light theme's colours, and nothing to press."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from driving import until

from bnnviz.figures.palette import in_light

PAPER = (718, 1020)  # pixels of A4 within its margins
# Black, and the marks of a key in the colours of the light theme.
_COLOURS = ("#000000", *in_light().values())
INKS = {f"rgb({', '.join(map(str, bytes.fromhex(colour[1:])))})" for colour in _COLOURS}
MAPPED = "Mean and spread of the probability on two moons"
SHEET = "document.getElementById('bnnviz-paper')"
# What would be printed: how much of the page beside the sheet, what can be pressed, what is wider than the paper,
# what may be cut by the end of a page, and in which colour words and the points of maps are.
PRINTED = """async () => {
  const colours_of = async (picture) => {
    const image = new Image()
    image.src = picture.getAttribute("xlink:href") ?? picture.getAttribute("href")
    await image.decode()
    const canvas = Object.assign(document.createElement("canvas"), {width: image.width, height: image.height})
    canvas.getContext("2d").drawImage(image, 0, 0)
    const {data} = canvas.getContext("2d").getImageData(0, 0, image.width, image.height)
    const hex = (i) => "#" + [...data.slice(i, i + 3)].map((part) => part.toString(16).padStart(2, "0")).join("")
    return Array.from({length: data.length / 4}, (_, i) => data[4 * i + 3] ? hex(4 * i) : "#000000")
  }
  const sheet = document.getElementById("bnnviz-paper"), all = [...sheet.querySelectorAll("*")]
  const whole = all.filter((el) => el.matches(".card, .drawing, tr"))
  const speaks = (el) => [...el.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())
  const words = all.filter((el) => !el.closest(".drawing") && speaks(el))
  const style = getComputedStyle(sheet)
  return {
    beside: [...document.body.children].filter((el) => el !== sheet && el.checkVisibility()).length,
    pressed: all.filter((el) => el.matches("button, input, select, textarea, nav, header, [role=slider]")).length,
    over: Math.max(...all.map((el) => el.getBoundingClientRect().right)) - innerWidth,
    cut: whole.filter((el) => getComputedStyle(el).breakInside !== "avoid").length,
    colours: [...new Set(words.map((el) => getComputedStyle(el).color))],
    ground: style.backgroundColor,
    small: Math.min(...words.map((el) => parseFloat(getComputedStyle(el).fontSize))),
    drawings: sheet.querySelectorAll(".drawing").length,
    rows: sheet.querySelectorAll("tr").length,
    address: sheet.querySelector(".from a").href,
    words: sheet.textContent.replace(/\\s+/g, " "),
    html: sheet.outerHTML,
    mapped: [...new Set((await Promise.all([...sheet.querySelectorAll("image")].map(colours_of))).flat())],
  }
}"""

# Every figure of the page has been laid out.
DRAWN = """() => Bokeh.documents.flatMap((doc) => [...doc.all_models]).filter((model) => model.type === "Figure")
  .every((model) => Bokeh.index.find_one(model)?.bbox.width > 0)"""


def printed(page: Any) -> dict[str, Any]:
    """Return what a page is on paper; it is on the screen again afterwards."""
    page.set_viewport_size({"width": PAPER[0], "height": PAPER[1]})
    page.emulate_media(media="print")
    until(lambda: page.evaluate(f"{SHEET} !== null"), 20, "there is no sheet")
    found = page.evaluate(PRINTED)
    page.emulate_media(media="screen")
    until(lambda: page.evaluate(f"{SHEET} === null"), 20, "the sheet stays on the screen")
    return found


def check(found: dict[str, Any]) -> None:
    """Check what holds of every page on paper."""
    assert found["beside"] == 0, "more than the sheet is printed"
    assert found["pressed"] == 0 and found["cut"] == 0
    assert found["over"] <= 1, "something is wider than the paper"
    assert found["ground"] == "rgb(255, 255, 255)" and set(found["colours"]) <= INKS
    assert found["small"] >= 9  # pixels: some 7 points
    dark = {*re.findall(r"#[0-9a-f]{6}\b", found["html"]), *found["mapped"]} & in_light().keys()
    assert not dark, f"colours of the dark theme: {dark}"
    assert "token=" not in found["address"]


def test_the_lab_is_printed_with_its_settings(open_page: Callable[..., Any], dashboard: Any) -> None:
    page = open_page(f"{dashboard.url}?target=banana&sampler=bps&theme=dark&play=1")
    page.get_by_text("Accepted proposals").wait_for(timeout=60_000)
    page.emulate_media(media="print")
    until(lambda: page.evaluate(f"{SHEET} !== null"), 20, "there is no sheet")
    found = page.evaluate(PRINTED)
    check(found | {"over": 0})  # the window is wider than paper
    assert "Sampler: Bouncy Particle" in found["words"] and "Accepted proposals" in found["words"]
    assert found["drawings"] >= 3
    assert "target=banana" in found["address"] and "theme" not in found["address"]


@pytest.mark.parametrize(
    ("query", "text", "least"),
    [
        # The last of the papers' experiments, which lies far below what the window shows.
        ("?page=papers&open=pdmp-table1&theme=dark", "Training and validation curves on traffic signs", 1),
        # Maps of colours between those of a theme.
        ("?page=papers&open=pdmp-fig4&theme=dark", MAPPED, 1),
        ("?page=recordings&theme=dark", "bnnviz resume boston", 0),
    ],
)
def test_pages_of_text_are_printed_whole(
    query: str, text: str, least: int, open_page: Callable[..., Any], dashboard: Any
) -> None:
    page = open_page(dashboard.url + query)
    page.get_by_text(text).wait_for(timeout=60_000)
    page.wait_for_function(DRAWN)
    found = printed(page)
    check(found)
    assert text in found["words"] and found["drawings"] >= least
    assert bool(found["mapped"]) == (text == MAPPED)
