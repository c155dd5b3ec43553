"""A lesson's page as it is turned: other languages, other sizes of type, and a phone that is scrolled to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_lab import until

from bnnviz_app.learn import languages, lessons
from bnnviz_app.learn.wording import wording
from bnnviz_app.page import TOGGLE

GERMAN = "de"
# Scrolls all that scrolls to its end, and gives how far the bar of buttons is from the window's end, in pixels.
BAR_OFF = """() => {
  let bar = null
  const look = (root) => {
    for (const el of root.querySelectorAll("*")) {
      if (el.shadowRoot) { look(el.shadowRoot) }
      if (el.scrollHeight > el.clientHeight && getComputedStyle(el).overflowY === "auto") { el.scrollTop = 1e6 }
      if (el.matches(".tour-transport")) { bar = el }
    }
  }
  look(document)
  return Math.abs(innerHeight - bar.getBoundingClientRect().bottom)
}"""
# How many pixels of the chosen speed are cut.
SPEED_CUT = """() => {
  let cut = null
  const look = (root) => {
    for (const el of root.querySelectorAll("*")) {
      if (el.shadowRoot) { look(el.shadowRoot) }
      if (el.matches(".MuiSelect-select") && el.checkVisibility()) { cut = el.scrollWidth - el.clientWidth }
    }
  }
  look(document)
  return cut
}"""


def opened(open_page: Callable[..., Any], dashboard: Any, query: str, size: tuple[int, int]) -> Any:
    page = open_page(f"{dashboard.url}?page=learn&{query}", viewport={"width": size[0], "height": size[1]})
    page.wait_for_selector(".lesson .way", timeout=60_000)
    page.locator(".said").first.wait_for(timeout=60_000)
    return page


def test_the_bar_stays_at_the_end_of_a_phone_however_many_cards_there_are(
    open_page: Callable[..., Any], dashboard: Any
) -> None:
    page = opened(open_page, dashboard, "lesson=random-walk&step=2", (390, 844))
    assert len(lessons.load()["random-walk"].steps[1].picture.show) == 3
    until(lambda: page.evaluate(BAR_OFF) <= 1, 10, "the bar is not at the end of the window")


def test_a_page_that_changes_its_language_changes_all_of_it(open_page: Callable[..., Any], dashboard: Any) -> None:
    page = opened(open_page, dashboard, "lesson=thinning&lang=en", (1280, 720))
    page.get_by_role("button", name=languages.page(GERMAN)["language"]).click()
    titles = [*(step.title for step in lessons.load(GERMAN)["thinning"].steps), languages.page(GERMAN)["question"]]
    until(lambda: page.locator(".steps .name").all_inner_texts() == titles, 10, "the steps have other names")


def test_the_speed_is_read_whole_once_the_projector_is_switched_on(
    open_page: Callable[..., Any], dashboard: Any
) -> None:
    page = opened(open_page, dashboard, "lesson=events&step=3&lang=de", (1920, 1080))
    full = page.get_by_text(languages.page(GERMAN)["full_speed"])
    full.first.wait_for(timeout=60_000)
    page.get_by_role("button", name=wording(GERMAN)("Projector")).click()
    until(lambda: full.first.evaluate("el => parseFloat(getComputedStyle(el).fontSize)") > 16, 20, "type is small")
    until(lambda: page.evaluate(SPEED_CUT) == 0, 10, "the speed is cut")


# By how many pixels a warning is cut by its strip; None as long as there is no whole one.
WARNING_CUT = """() => {
  let cut = null
  const look = (root) => {
    for (const el of root.querySelectorAll("*")) {
      if (el.shadowRoot) { look(el.shadowRoot) }
      if (!el.matches(".said .warning") || !/should be|sein sollte/.test(el.textContent)) { continue }
      const strip = el.closest(".said").getBoundingClientRect()
      const over = (line) => Math.max(line.bottom - strip.bottom, strip.top - line.top, line.right - strip.right)
      cut = Math.max(...[...el.getClientRects()].map(over))
    }
  }
  look(document)
  return cut
}"""


@pytest.mark.parametrize(("language", "projector"), [("en", "&projector=1"), ("de", ""), ("de", "&projector=1")])
def test_a_warning_is_read_whole_on_a_small_screen(
    language: str, projector: str, open_page: Callable[..., Any], dashboard: Any
) -> None:
    page = opened(open_page, dashboard, f"lesson=bounds&step=3&lang={language}{projector}", (1280, 720))
    until(lambda: page.evaluate(WARNING_CUT) is not None, 240, "there is no warning of variances")
    assert page.evaluate(WARNING_CUT) <= 2


# The type of the figures of a run, and how far their last row lies below what is seen of them, in pixels.
FIGURES = """() => {
  let found = null
  const look = (root) => {
    for (const el of root.querySelectorAll("*")) {
      if (!el.shadowRoot) { continue }
      const row = el.matches(".bk-panel-models-markup-HTML") ? el.shadowRoot.querySelector("table tr:last-child") : null
      const [end, seen] = [row, el].map((each) => each?.getBoundingClientRect().bottom)
      if (row) { found = [parseFloat(getComputedStyle(row).fontSize), end - seen] }
      look(el.shadowRoot)
    }
  }
  look(document)
  return found
}"""


def test_figures_are_as_large_on_a_projector_as_their_card_allows(
    open_page: Callable[..., Any], dashboard: Any
) -> None:
    page = opened(open_page, dashboard, "lesson=refreshment&projector=1", (1280, 720))
    page.get_by_text("ESS of U").wait_for(timeout=120_000)
    letter, below = page.evaluate(FIGURES)
    assert letter >= 14.5 and below <= 1


def test_the_first_text_of_a_lesson_is_read_on_a_projector_without_scrolling(
    open_page: Callable[..., Any], dashboard: Any
) -> None:
    page = opened(open_page, dashboard, "lesson=thinning&projector=1", (1280, 720))
    text, way = (page.locator(place).bounding_box() for place in (".told .text:not(.reason)", ".lesson .way"))
    assert text["y"] + text["height"] <= way["y"]


# By how many pixels the table of a race is wider than what is seen of it.
TABLE_OVER = """() => {
  let over = null
  const look = (root) => {
    for (const el of root.querySelectorAll("*")) {
      if (el.shadowRoot) { look(el.shadowRoot) }
      const host = el.matches("table") && el.querySelector("td.name") ? el.getRootNode().host : null
      if (host) { over = host.scrollWidth - host.clientWidth }
    }
  }
  look(document)
  return over
}"""


def test_all_columns_of_a_race_are_seen_on_a_small_screen_in_a_language_with_long_words(
    open_page: Callable[..., Any], dashboard: Any
) -> None:
    page = opened(open_page, dashboard, "lesson=images&step=2&lang=de", (1280, 720))
    until(lambda: page.evaluate(TABLE_OVER) is not None, 60, "there is no table")
    assert page.evaluate(TABLE_OVER) <= 1


@pytest.mark.parametrize(("language", "written"), [(GERMAN, "1,30"), (languages.DEFAULT, "1.30")])
def test_a_slider_writes_its_number_as_the_language_does(
    language: str, written: str, open_page: Callable[..., Any], dashboard: Any
) -> None:
    page = open_page(f"{dashboard.url}?page=learn&lesson=importance-weights&lang={language}")
    page.get_by_role("slider").nth(1).wait_for(timeout=60_000)
    until(lambda: page.get_by_text(written).count() > 0, 20, f"there is no {written}")


# The type of what a caption offers, and how far it begins to the right of the caption's text, in pixels.
OFFERED = """() => {
  const found = {}
  const look = (root, within) => {
    for (const el of root.querySelectorAll("*")) {
      const here = within || el.matches(".tour-caption")
      if (el.shadowRoot) { look(el.shadowRoot, here) }
      if (here && el.matches(".said")) { found.said = el }
      if (here && el.matches("button")) { found.offer = el }
    }
  }
  look(document, false)
  if (!found.said || !found.offer) { return null }
  const range = document.createRange()
  range.selectNodeContents(found.offer)
  const type = (el) => parseFloat(getComputedStyle(el).fontSize), left = (at) => at.getBoundingClientRect().left
  return [type(found.offer) / type(found.said), left(range) - left(found.said)]
}"""


def test_what_a_caption_offers_is_read_as_well_as_its_text(open_page: Callable[..., Any], dashboard: Any) -> None:
    page = opened(open_page, dashboard, "lesson=mini-batches&step=2&projector=1", (1400, 900))
    until(lambda: page.evaluate(OFFERED) is not None, 120, "nothing is offered")
    until(lambda: page.evaluate(OFFERED)[0] > 0.8, 10, "its type is small on a projector")
    page.set_viewport_size({"width": 390, "height": 844})
    until(lambda: abs(page.evaluate(OFFERED)[1]) < 2, 10, "on a phone it does not begin where the text does")


def test_notes_in_a_window_of_their_own_follow_the_lesson_and_lead_it(
    open_page: Callable[..., Any], dashboard: Any
) -> None:
    lesson = lessons.load(GERMAN)["thinning"]
    page = opened(open_page, dashboard, "lesson=thinning&lang=de", (1280, 720))
    with page.expect_popup() as popup:
        page.locator("a.notes").click()
    notes = popup.value
    title = notes.locator(".notes h2")
    title.filter(has_text=lesson.steps[0].title).wait_for(timeout=60_000)
    page.locator(".way .next").click()
    title.filter(has_text=lesson.steps[1].title).wait_for(timeout=20_000)
    notes.locator(".way .next").click()
    page.locator(".told h2", has_text=lesson.steps[2].title).wait_for(timeout=20_000)
    title.filter(has_text=lesson.steps[2].title).wait_for(timeout=20_000)
    text = languages.text(GERMAN, languages.NOTES)["lessons"]["thinning"]["steps"][2]
    assert notes.locator(".note").inner_text().replace("\u00a0", " ") == text


# Pairs of words and controls in the bar of buttons that lie over each other.
OVERLAPS = """() => {
  const boxes = []
  const look = (root, within) => {
    for (const el of root.querySelectorAll("*")) {
      const here = within || el.matches(".tour-transport")
      if (el.shadowRoot) { look(el.shadowRoot, here) }
      if (!here || !el.checkVisibility() || !el.matches("button, .MuiSelect-select, .budget, .line")) { continue }
      boxes.push([el.innerText, el.getBoundingClientRect()])
    }
  }
  look(document, false)
  const over = (a, b) => a.left < b.right - 2 && b.left < a.right - 2 && a.top < b.bottom - 2 && b.top < a.bottom - 2
  const others = (a, i) => boxes.slice(i + 1).filter(([, b]) => over(a, b))
  return boxes.flatMap(([name, a], i) => others(a, i).map(([other]) => `${name}, ${other}`))
}"""


@pytest.mark.parametrize("name", ["race", "uncertainty"])
@pytest.mark.slow
def test_nothing_lies_over_the_buttons_of_a_phone(name: str, open_page: Callable[..., Any], dashboard: Any) -> None:
    page = open_page(f"{dashboard.url}?page={name}", viewport={"width": 390, "height": 844})
    page.get_by_text("gradients each").last.wait_for(timeout=60_000)
    assert page.evaluate(OVERLAPS) == []


# Paints all of a layer of Bokeh's, has it prepared for the next paint, and gives how much of the first is left.
LEFT = """() => {
  const {CanvasLayer} = Bokeh.require("core/util/canvas")
  const layer = new CanvasLayer("canvas", true)
  layer.resize(40, 30)
  layer.ctx.fillRect(0, 0, 400, 400)
  layer.prepare()
  layer.finish()
  const {width, height} = layer.canvas
  return Math.max(...layer.ctx.getImageData(0, 0, width, height).data)
}"""


def test_nothing_of_what_was_painted_stays_in_a_figure(open_page: Callable[..., Any], dashboard: Any) -> None:
    page = opened(open_page, dashboard, "lesson=thinning", (1280, 720))
    until(lambda: page.evaluate(LEFT) == 0, 20, "pixels of an earlier paint are left")


def test_settings_do_not_come_over_a_page_whose_window_narrows(open_page: Callable[..., Any], dashboard: Any) -> None:
    page = open_page(f"{dashboard.url}?target=banana&sampler=bps", viewport={"width": 1400, "height": 900})
    setting = page.get_by_text("Refresh rate (1/time)")
    setting.wait_for(timeout=60_000)
    page.set_viewport_size({"width": 1024, "height": 768})
    until(lambda: not setting.is_visible(), 10, "the settings lie over the page")
    page.wait_for_timeout(500)
    assert not setting.is_visible() and page.locator(".MuiBackdrop-root").count() == 0
    page.set_viewport_size({"width": 1400, "height": 900})
    until(setting.is_visible, 10, "the settings have not come back")


def test_light_and_dark_stay_in_sight_where_a_header_scrolls(open_page: Callable[..., Any], dashboard: Any) -> None:
    page = open_page(f"{dashboard.url}?page=learn&lang=de", viewport={"width": 390, "height": 844})
    toggle = page.get_by_role("button", name=wording(GERMAN)(TOGGLE))
    toggle.wait_for(timeout=60_000)
    box = toggle.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    toggle.click()
    until(lambda: page.locator(".mui-dark").count() > 0, 10, "it stays light")
    page.mouse.move(*(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2))
    hint = page.get_by_role("tooltip").get_by_text(wording(GERMAN)(TOGGLE))
    hint.wait_for(timeout=10_000)
    assert hint.bounding_box()["height"] < 36, "its words stand under each other"
