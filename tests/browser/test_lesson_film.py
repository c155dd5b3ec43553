"""The page of a lesson's films in a browser without a network: texts, films, the question, languages and sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from driving import OVERFLOW

from bnnviz.replays.lesson import ReplayLesson
from bnnviz.replays.player import lesson_page
from bnnviz.views.palette import in_light
from bnnviz_app.learn import films, languages, lessons

SIZES = [(1280, 720), (390, 844)]
# Steps with a film and without, and two of one run.
LESSON = "mixing"
SHOWN = (
    "async () => { const p = await bnnviz_player; return p && [...p.cards.keys()].filter((part) => part != 'events') }"
)
#: What of the page lies beyond its edges, and what of a text beyond its box.
BEYOND = """() => [
  document.documentElement.scrollWidth - innerWidth,
  ...[...document.querySelectorAll("#lesson *")].map((el) => el.scrollWidth - el.clientWidth).filter((x) => x > 1),
]"""


@pytest.fixture(scope="module", params=languages.names())
def filmed(request: pytest.FixtureRequest) -> tuple[str, ReplayLesson]:
    return request.param, films.film(LESSON, request.param, frames=12, steps=200)


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a page from its file, offline; nothing may go wrong on it."""
    problems: list[str] = []
    contexts = []

    def opened(told: ReplayLesson, **options: Any) -> Any:
        place = tmp_path / "lesson.html"
        place.write_text(lesson_page(told), encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 720}, "offline": True, **options})
        contexts.append(context)
        shown = context.new_page()
        shown.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        shown.on("pageerror", lambda error: problems.append(str(error)))
        shown.on("request", lambda r: None if r.url == place.as_uri() else problems.append(f"asked for {r.url[:200]}"))
        shown.goto(place.as_uri())
        shown.evaluate(SHOWN)
        return shown

    yield opened
    for context in contexts:
        context.close()
    assert not problems, "\n".join(problems)


def text_of(shown: Any, place: str) -> str:
    return shown.inner_text(place).replace("\u00a0", " ").replace("\u2060", "")


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_each_step_has_its_text_and_its_film(
    filmed: tuple[str, ReplayLesson], opened: Callable[..., Any], size: tuple[int, int], screenshot: Callable[..., Any]
) -> None:
    language, told = filmed
    lesson = lessons.load(language)[LESSON]
    shown = opened(told, viewport={"width": size[0], "height": size[1]})
    assert shown.get_attribute("html", "lang") == language and shown.inner_text("#title") == lesson.title
    for number, step in enumerate(lesson.steps):
        assert text_of(shown, "#lesson-heading") == f"{number + 1}. {step.title}"
        assert step.text in text_of(shown, ".told")
        assert shown.locator(".told > dl dt").count() == len(told.steps[number].terms) > 0
        cards = shown.evaluate(SHOWN)
        assert set(cards or ()) == set(step.picture.show) - {"table"}
        assert shown.locator(".card:visible").count() == len(step.picture.show)
        assert shown.is_visible("#play") == bool(cards)
        assert shown.is_visible("details") == (number == len(lesson.steps) - 1)
        assert shown.evaluate(BEYOND) == [0]
        if cards:
            shown.evaluate("async () => { const p = await bnnviz_player; p.seek(p.last); await p.when_painted() }")
            assert shown.inner_text("#where") == "12 / 12"
            screenshot(shown, f"lesson-film-{language}-{size[0]}-{number + 1}")
        if number + 1 < len(lesson.steps):
            shown.get_by_role("button", name=languages.page(language)["next"], exact=True).first.click()
    shown.keyboard.press("p")
    assert text_of(shown, "#lesson-heading").startswith("4. ") and shown.evaluate(SHOWN)


def test_the_answer_is_hidden_until_somebody_chooses(
    filmed: tuple[str, ReplayLesson], opened: Callable[..., Any]
) -> None:
    language, told = filmed
    asked, words = lessons.load(language)[LESSON].question, languages.page(language)
    shown = opened(told)
    shown.get_by_role("button", name=str(len(told.steps)), exact=True).click()
    shown.evaluate(SHOWN)
    shown.click("summary")
    assert asked.text in text_of(shown, "details")
    assert asked.reason not in text_of(shown, "details") and not shown.inner_text(".verdict")
    assert shown.locator(".choices .right").count() == 0
    wrong = next(i for i in range(len(asked.choices)) if i != asked.answer)
    shown.locator(".choices button").nth(wrong).click()
    assert text_of(shown, ".verdict") == words["wrong"].format(choice=asked.choices[asked.answer])
    assert asked.reason in text_of(shown, "details")
    shown.locator(".choices button").nth(asked.answer).click()
    assert text_of(shown, ".verdict") == words["right"]
    assert shown.locator(".choices .right").count() == 1 and shown.locator(".choices .wrong").count() == 0


def test_colours_size_and_pace_stay_from_film_to_film(
    filmed: tuple[str, ReplayLesson], opened: Callable[..., Any], screenshot: Callable[..., Any]
) -> None:
    language, told = filmed
    shown = opened(told, color_scheme="dark")
    ground = "getComputedStyle(document.getElementById('lesson')).backgroundColor"
    letter = "parseFloat(getComputedStyle(document.getElementById('lesson')).fontSize)"
    axis = """async () => { const p = await bnnviz_player, [card] = [...p.cards.values()]
      return p.doc.get_model_by_id(card.axes[0]).axis_label_text_font_size }"""
    assert shown.evaluate(ground) == "rgb(27, 37, 48)"
    shown.get_by_role("button", name="4", exact=True).click()
    assert shown.evaluate(axis) == "13px"
    small = shown.evaluate(letter)
    shown.click("#projector")
    assert shown.evaluate(axis) == "18.2px" and shown.evaluate(letter) > 1.15 * small
    shown.select_option("#speed", "60")
    shown.click("#theme")
    assert shown.evaluate(ground) == "rgb(255, 255, 255)"
    shown.keyboard.press("n")
    assert shown.evaluate(axis) == "18.2px" and shown.evaluate("async () => (await bnnviz_player).dark") is False
    assert shown.input_value("#speed") == "60"
    shown.click("#play")
    shown.wait_for_function("document.body.dataset.frame == 11", timeout=30_000)
    assert shown.evaluate(BEYOND) == [0]
    screenshot(shown, f"lesson-film-{language}-projector")


# What is printed: what besides the sheet, what can be pressed or is wider than the paper, and the colours of words.
PRINTED = """() => {
  const sheet = document.getElementById("paper"), all = [...sheet.querySelectorAll("*")]
  const drawings = [...sheet.querySelectorAll(".drawing svg")]
  return {
    beside: [...document.body.children].filter((el) => el !== sheet && el.checkVisibility()).length,
    pressed: all.filter((el) => el.matches("button, input, select, nav")).length,
    over: Math.max(...all.map((el) => el.getBoundingClientRect().right)) - innerWidth,
    drawings: drawings.length,
    choices: sheet.querySelectorAll(".choice").length,
    words: sheet.textContent,
    html: sheet.outerHTML,
    colours: [...new Set(all.map((el) => getComputedStyle(el).color))],
  }
}"""
PAPER = (718, 1020)  # pixels of A4 within its margins


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_step_prints_as_a_hand_out(filmed: tuple[str, ReplayLesson], opened: Callable[..., Any], scheme: str) -> None:
    language, told = filmed
    step, asked = lessons.load(language)[LESSON].steps[3], lessons.load(language)[LESSON].question
    shown = opened(told, color_scheme=scheme)
    shown.get_by_role("button", name="4", exact=True).click()
    shown.evaluate(SHOWN)
    pages = re.findall(rb"/Type\s*/Page\b", shown.pdf(format="A4"))
    shown.set_viewport_size({"width": PAPER[0], "height": PAPER[1]})
    shown.emulate_media(media="print")
    shown.wait_for_selector("#paper", timeout=10_000)
    found = shown.evaluate(PRINTED)
    assert len(pages) == 1 and found["beside"] == 0 and found["pressed"] == 0 and found["over"] <= 1
    assert found["drawings"] == len(step.picture.show) - ("table" in step.picture.show) and found["choices"] == 0
    words = found["words"].replace("\u00a0", " ").replace("\u2060", "")
    assert step.title in words and step.text[:40] in words and asked.text[:20] not in words
    # Nothing has been played: the film's end is on paper, and its beginning is still shown.
    assert "200 " in words and shown.evaluate("async () => (await bnnviz_player).frame") == 0
    dark = set(re.findall(r"#[0-9a-f]{6}\b", found["html"])) & in_light().keys() - set(in_light().values())
    assert not dark, f"colours of the dark theme: {dark}"
    assert "rgb(230, 237, 243)" not in found["colours"], "pale words on white"
    shown.emulate_media(media="screen")
    shown.wait_for_selector("#paper", state="detached", timeout=10_000)


def test_the_question_is_on_paper_with_boxes_to_tick(
    filmed: tuple[str, ReplayLesson], opened: Callable[..., Any]
) -> None:
    language, told = filmed
    asked = lessons.load(language)[LESSON].question
    shown = opened(told)
    shown.get_by_role("button", name="5", exact=True).click()
    shown.evaluate(SHOWN)
    shown.emulate_media(media="print")
    shown.wait_for_selector("#paper", timeout=10_000)
    found = shown.evaluate(PRINTED)
    words = found["words"].replace("\u00a0", " ").replace("\u2060", "")
    assert asked.text in words and asked.reason not in words and found["choices"] == len(asked.choices)


def test_the_page_can_be_read_by_everybody(filmed: tuple[str, ReplayLesson], opened: Callable[..., Any]) -> None:
    for scheme in ("light", "dark"):
        shown = opened(filmed[1], color_scheme=scheme, bypass_csp=True)
        for asked in (False, True):
            if asked:
                shown.get_by_role("button", name="5", exact=True).click()
                shown.evaluate(SHOWN)
                shown.click("summary")
                shown.locator(".choices button").first.click()
            found = Axe().run(shown)
            serious = [each["id"] for each in found.response["violations"] if each["impact"] in ("serious", "critical")]
            assert not serious, found.generate_report()


@pytest.mark.parametrize("size", [(1280, 720), (390, 844)], ids=str)
def test_the_dashboard_hands_out_the_step_that_is_shown(
    open_page: Callable[..., Any],
    dashboard: Any,
    browser: Any,
    screenshot: Callable[..., Any],
    size: tuple[int, int],
    tmp_path: Path,
) -> None:
    address = f"{dashboard.url}?page=learn&lang=de&lesson=thinning&step=3&theme=dark"
    page = open_page(address, viewport={"width": size[0], "height": size[1]})
    words = languages.page("de")
    page.wait_for_selector(".told h2", timeout=60_000)
    page.get_by_role("button", name=words["replay"], exact=True).click()
    ready = page.locator("a, button").filter(has_text=words["replay_ready"])
    ready.first.wait_for(timeout=120_000)
    assert page.evaluate(OVERFLOW)[0] == 0
    screenshot(page, f"lesson-film-offered-{size[0]}")
    with page.expect_download(timeout=60_000) as download:
        ready.first.click()
    assert download.value.suggested_filename == "thinning-3.html"
    download.value.save_as(tmp_path / "thinning-3.html")
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, offline=True)
    shown = context.new_page()
    shown.goto((tmp_path / "thinning-3.html").as_uri())
    shown.evaluate(SHOWN)
    assert text_of(shown, "#lesson-heading") == f"3. {lessons.load('de')['thinning'].steps[2].title}"
    assert shown.evaluate("async () => (await bnnviz_player).dark")
    context.close()
