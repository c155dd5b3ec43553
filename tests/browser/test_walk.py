"""A walk through all pages, and through a class: the tests in a browser that belong to `make test`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from driving import OVERFLOW, Lab, until

from bnnviz.lessons import content
from bnnviz_app.pages import PAGES

TEACHER, PUPIL = "the-teachers-token-of-this-test", "the-students-token-of-this-test"
ASKED, GERMAN = (content.find("thinning", code).question for code in ("en", "de"))


def test_every_page_opens_by_its_link(open_page: Callable[..., Any], dashboard: Any) -> None:
    page = open_page(dashboard.url, viewport={"width": 1280, "height": 720})
    for entry in PAGES.values():
        page.get_by_role("button", name="Menu", exact=True).click(timeout=60_000)
        page.get_by_role("menuitem", name=entry.title, exact=True).click()
        page.wait_for_url(f"**?page={entry.name}*")
        page.locator("h1", has_text=entry.title).wait_for(timeout=60_000)
        page.locator("h1, h2, canvas").filter(visible=True).nth(1).wait_for(timeout=60_000)
        assert page.evaluate(OVERFLOW)[0] == 0, f"{entry.name} scrolls sideways"


def address(lab: Lab) -> str:
    return lab.page.evaluate("location.search")


def test_the_lab_plays_steps_and_takes_a_setting(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = Lab(open_page(dashboard.url, viewport={"width": 1280, "height": 720})).ready()
    lab.press("Pause")
    until(lambda: lab.button("Play").is_visible(), 10, "it plays on")
    lab.rest()
    step = lab.number("step")
    lab.press("Next step")
    until(lambda: lab.number("step") == step + 1, 10, "the step did not come")
    before = lab.figures()
    lab.press("Play")
    until(lambda: lab.number("draws") > 20, 30, "it did not play")
    assert lab.figures()["prediction"] != before["prediction"]
    lab.field("Refresh rate").focus()
    lab.page.keyboard.press("End")
    until(lambda: "s.refresh_rate=20" in address(lab), 10, "the setting was not taken")
    lab.press("Pause")
    lab.press("Light or dark")
    until(lambda: "theme=dark" in address(lab), 10, "it stayed light")
    lab.page.set_viewport_size({"width": 390, "height": 844})
    lab.page.reload()
    lab.ready()
    assert lab.page.evaluate(OVERFLOW)[0] == 0


def test_a_class_answers_a_question_and_sees_where_it_is(
    serve: Callable[..., Any], open_page: Callable[..., Any]
) -> None:
    tokens = {"BNNVIZ_TOKEN": TEACHER, "BNNVIZ_STUDENT_TOKEN": PUPIL}
    url = serve(env=tokens, options=("--class", "--address", "127.0.0.1")).url
    laptop, phone = {"width": 1280, "height": 720}, {"width": 390, "height": 844}
    teacher = open_page(f"{url}?page=ask&lesson=thinning&token={TEACHER}", viewport=laptop)
    anna = open_page(f"{url}/../lessons/thinning.html?token={PUPIL}#1&lang=de", viewport=phone)
    ben = open_page(f"{url}?page=lab&token={PUPIL}", viewport=laptop)
    teacher.locator(".form .next").click(timeout=60_000)
    for page, asked in ((anna, GERMAN), (ben, ASKED)):
        page.locator(".poll summary", has_text=asked.text).wait_for(timeout=60_000)
        assert page.locator(".poll .choice span").all_inner_texts() == list(asked.choices)
    anna.locator(".poll .choice").nth(0).click()
    ben.locator(".poll .choice").nth(2).click()
    ben.locator(".poll .choice").nth(1).click()
    bars, both = teacher.locator(".bars .count"), ["1 (50%)", "1 (50%)", "0 (0%)"]
    until(lambda: bars.all_inner_texts() == both, 20, "the later of two answers does not count")
    assert ben.locator(".poll .count").count() == 0, "a student sees counts before they are shown"
    teacher.get_by_role("button", name="Show the counts").click()
    for page in (anna, ben):
        until(lambda page=page: page.locator(".poll .count").all_inner_texts() == both, 20, "no counts are shown")
        right = page.locator(".poll .choice").nth(ASKED.answer)
        assert "right" in right.get_attribute("class")

    # The students' link makes no student of a teacher, whose place is told to the class.
    teacher.goto(f"{url}/../lessons/thinning.html?token={PUPIL}#2")
    teacher.locator("nav button.on").click(timeout=60_000)
    for page, code in ((anna, "de"), (ben, "en")):
        page.locator("p.place", has_text="3").wait_for(timeout=20_000)
        assert content.find("thinning", code).title in page.locator("p.place").inner_text()
    ben.locator("p.place a").click()
    ben.wait_for_url("**/lessons/thinning.html#3*")
    assert anna.evaluate(OVERFLOW)[0] == 0
