"""Lessons in a browser without a server: steps open on their frames, knobs change films, choices have feedback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from driving import OVERFLOW, until

from bnnviz.lessons import content, site

THINNING = content.find("thinning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of one lesson."""
    found = tmp_path_factory.mktemp("lessons")
    for name in site.names():
        if "/" not in name or name.startswith("films/thinning-"):
            place = found / name
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(site.file(name))
    return found


@pytest.fixture
def opened(folder: Path, open_page: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Yield what opens the lesson at a place, and waits until its picture is shown."""

    def go(place: str = "1", **options: Any) -> Any:
        page = open_page(f"{(folder / 'thinning.html').as_uri()}#{place}", **options)
        page.wait_for_function("document.body.dataset.frame !== undefined")
        return page

    yield go


def frame(page: Any) -> int:
    return int(page.evaluate("document.body.dataset.frame"))


def test_a_step_opens_on_its_frame_and_plays_up_to_it(opened: Callable[..., Any]) -> None:
    page = opened("4")
    requested = site.opening_frame(THINNING, THINNING.steps[3])
    assert frame(page) == requested
    assert page.locator("#lesson-heading").inner_text().startswith("4.")
    page.locator("#play").click()
    until(lambda: frame(page) == requested and page.locator("#play").inner_text() == "Play", 20, "it does not stop")
    page.locator("nav button.on").click()
    until(lambda: frame(page) == site.opening_frame(THINNING, THINNING.steps[4]), 10, "the next step is not shown")
    assert "#5" in page.url


def test_the_knob_shows_another_film(opened: Callable[..., Any]) -> None:
    page = opened("6")
    shown = page.locator("#lesson-bar output")
    before = shown.inner_text()
    page.locator(".knob button").first.click()
    until(lambda: shown.inner_text() not in (before, ""), 10, "the number stays")
    assert page.locator(".knob [aria-pressed=true]").inner_text() == "1"


def test_a_question_comes_before_its_picture_and_each_choice_has_feedback(opened: Callable[..., Any]) -> None:
    page = opened("3")
    asked = THINNING.steps[2].ask
    assert not page.locator(".card:visible").count()
    for number, label in enumerate(asked.choices):
        page.locator(".ask .choices button").nth(number).click()
        assert page.locator(".ask .answer").inner_text().count(asked.feedback[number][:20]) == 1, label
    page.locator(".ask .show").click()
    until(lambda: page.locator(".card:visible").count(), 10, "the picture is not shown")
    claim = page.locator(".claim").first
    claim.hover()
    assert page.locator(".lit").count() == 1


def test_a_lesson_is_shown_in_german_for_a_projector_and_on_a_phone(opened: Callable[..., Any]) -> None:
    page = opened("2&lang=de&projector&dark", viewport={"width": 1280, "height": 720})
    assert content.find("thinning", "de").steps[1].title in page.locator("#lesson-heading").inner_text()
    sizes = page.locator("#lesson .text, #lesson nav button, #lesson-bar .named, #play, #where").evaluate_all(
        "parts => parts.map((part) => parseFloat(getComputedStyle(part).fontSize))"
    )
    assert min(sizes) >= 20
    page.locator("#language").click()
    until(lambda: THINNING.steps[1].title in page.locator("#lesson-heading").inner_text(), 10, "it stays German")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate(OVERFLOW)[0] == 0


def test_a_lesson_works_in_a_frame_of_another_site(folder: Path, tmp_path: Path, open_page: Callable[..., Any]) -> None:
    slides = tmp_path / "slides.html"
    source = (folder / "thinning.html").as_uri()
    slides.write_text(f'<iframe src="{source}#2" width="1000" height="600"></iframe>', encoding="utf-8")
    page = open_page(slides.as_uri())
    inside = page.frame_locator("iframe")
    inside.locator("#lesson-heading", has_text="2.").wait_for()
    inside.locator(".card canvas").first.wait_for()
