"""Learn in a real browser: a lesson is walked to its question, and what was seen is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from driving import OVERFLOW, until

from bnnviz_app.learn import languages, lessons

# How far the end of the reason lies below what is seen of the panel, in pixels; on a phone the page scrolls.
REASON_HIDDEN = """() => {
  let reason = null, way = null
  const look = (root) => {
    for (const el of root.querySelectorAll("*")) {
      if (el.shadowRoot) { look(el.shadowRoot) }
      if (el.matches(".reason")) { reason = el }
      if (el.matches(".lesson .way")) { way = el }
    }
  }
  look(document)
  const stays = getComputedStyle(way).position === "sticky"
  return reason.getBoundingClientRect().bottom - (stays ? way.getBoundingClientRect().top : innerHeight)
}"""
LESSON = lessons.load()["thinning"]
SIZES = [(1280, 720), (390, 844)]


def at(page: Any, number: int) -> None:
    """Wait for a step, from 1."""

    def there() -> bool:
        # Asked of the page itself: what Playwright has kept of the address does not change while nothing is asked.
        return f"step={number}" in page.evaluate("location.search")

    until(lambda: there() and page.locator(".steps [aria-current]").count() == 1, 20, f"step {number} is not there")


@pytest.mark.parametrize("size", SIZES)
def test_a_lesson_is_walked_to_its_question(
    open_page: Callable[..., Any], dashboard: Any, screenshot: Callable[..., None], size: tuple[int, int]
) -> None:
    page = open_page(f"{dashboard.url}?page=learn", viewport={"width": size[0], "height": size[1]})
    page.wait_for_selector(".lessons li", timeout=60_000)
    assert page.locator(".lessons li").count() == len(lessons.load())
    assert page.evaluate(OVERFLOW)[0] == 0
    page.get_by_role("link", name=LESSON.title).click()
    at(page, 1)
    for number, step in enumerate(LESSON.steps, start=1):
        at(page, number)
        until(lambda step=step: step.title in page.locator(".told h2").inner_text(), 10, "another step")
        assert page.evaluate(OVERFLOW)[0] == 0
        if number == 1:
            # The picture is there before the next step goes on with it.
            until(lambda: "sets out" in page.locator(".said").inner_text(), 60, "the chain did not set out")
        page.keyboard.press("n")
    at(page, len(LESSON.steps) + 1)
    assert page.locator(".choice").count() == len(LESSON.question.choices)
    assert page.get_by_text(LESSON.question.reason[:20]).count() == 0, "the answer was told before it was given"
    assert page.locator("button.next").is_disabled()
    page.locator(".choice").nth((LESSON.question.answer + 1) % len(LESSON.question.choices)).click()
    until(lambda: page.locator(".verdict").inner_text().startswith("No. It is: "), 10, "no verdict")
    assert page.get_by_text(LESSON.question.reason[:20]).count() == 1
    until(lambda: page.evaluate(REASON_HIDDEN) <= 0, 10, "the reason lies below the way on, or below the window")
    assert page.locator(".choice.right").inner_text().startswith(LESSON.question.choices[LESSON.question.answer])
    screenshot(page, f"learn-question-{size[0]}")
    page.get_by_role("button", name="All lessons").first.click()
    until(lambda: page.locator(".lessons .done").count() == 1, 10, "the lesson has no tick")
    until(lambda: "lesson=" not in page.evaluate("location.search"), 10, "the address still names the lesson")
    page.reload()
    page.wait_for_selector(".lessons .done", timeout=60_000)


def test_a_term_says_what_it_means_to_pointer_keyboard_and_touch(open_page: Callable[..., Any], dashboard: Any) -> None:
    page = open_page(f"{dashboard.url}?page=learn&lesson=importance-weights", viewport={"width": 1280, "height": 720})
    page.wait_for_selector("button.term", timeout=60_000)
    term, meaning = page.locator("button.term").first, page.locator(".meaning")
    assert not meaning.is_visible()
    term.hover()
    assert meaning.is_visible() and meaning.locator("b").inner_text() == term.get_attribute("data-term")
    page.mouse.move(0, 0)
    until(lambda: not meaning.is_visible(), 5, "it stayed")
    term.focus()
    assert meaning.is_visible() and term.get_attribute("aria-describedby") == "meaning"
    page.keyboard.press("Escape")
    assert not meaning.is_visible()
    # The pieces need no worker: the figure's words follow the slider.
    until(lambda: page.get_by_text("d = 2: 8,").count() == 1, 20, "no figures")
    page.get_by_role("slider").first.focus()
    page.keyboard.press("End")
    until(lambda: page.get_by_text("d = 100: ").count() == 1, 20, "the slider did nothing")


def test_a_language_is_chosen_kept_and_walked_in_to_a_question(
    open_page: Callable[..., Any], dashboard: Any, screenshot: Callable[..., None]
) -> None:
    german, words = lessons.load("de"), languages.page("de")
    lesson = german["thinning"]
    page = open_page(f"{dashboard.url}?page=learn", viewport={"width": 1280, "height": 720})
    page.wait_for_selector(".lessons li", timeout=60_000)
    page.get_by_role("button", name="Deutsch").click()
    until(lambda: page.get_by_role("heading", name=words["heading"]).count() == 1, 10, "still English")
    until(lambda: "lang=de" in page.evaluate("location.search"), 10, "the address does not say it")
    assert page.locator(".learn").get_attribute("lang") == "de"
    screenshot(page, "learn-german")
    # An address without a language: this browser keeps it.
    page.goto(f"{dashboard.url}?page=learn")
    page.get_by_role("link", name=lesson.title).click(timeout=60_000)
    for number, step in enumerate(lesson.steps, start=1):
        at(page, number)
        until(lambda step=step: step.title in page.locator(".told h2").inner_text(), 10, "another step")
        assert page.evaluate(OVERFLOW)[0] == 0
        page.keyboard.press("n")
    at(page, len(lesson.steps) + 1)
    assert page.locator("button.next").inner_text() == words["next_lesson"]
    page.locator(".choice").nth(lesson.question.answer).click()
    until(lambda: page.locator(".verdict").inner_text() == words["right"], 10, "no verdict")
