"""A class in real browsers: a question that is asked, answered and counted, and a picture that is frozen."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from test_lab import until

from bnnviz_app import following
from bnnviz_app.learn import languages, lessons

TEACHER, PUPIL = "the-teachers-token-of-this-test", "the-students-token-of-this-test"
ASKED, GERMAN = (lessons.load(code)["thinning"].question for code in ("en", "de"))


def test_a_question_is_asked_answered_counted_and_shown(
    serve: Callable[..., Any], open_page: Callable[..., Any], screenshot: Callable[..., None]
) -> None:
    tokens = {"BNNVIZ_TOKEN": TEACHER, "BNNVIZ_STUDENT_TOKEN": PUPIL}
    url = serve(env=tokens, options=("--class", "--address", "127.0.0.1")).url
    teacher = open_page(f"{url}?page=ask&lesson=thinning&token={TEACHER}", viewport={"width": 1280, "height": 720})
    phone = {"width": 390, "height": 844}
    anna = open_page(f"{url}?page=learn&lang=de&lesson=thinning&token={PUPIL}", viewport=phone)
    ben = open_page(f"{url}?page=follow&token={PUPIL}", viewport={"width": 1280, "height": 720})
    teacher.locator(".form .next").click(timeout=60_000)
    for page, asked in ((anna, GERMAN), (ben, ASKED)):
        page.locator(".poll summary").wait_for(timeout=120_000)
        until(lambda page=page, asked=asked: page.locator(".poll summary").inner_text() == asked.text, 20, "not asked")
        assert page.locator(".poll .choice span").all_inner_texts() == list(asked.choices)
    screenshot(anna, "poll-asked-phone")

    anna.locator(".poll .choice").nth(0).click()
    ben.locator(".poll .choice").nth(2).click()
    ben.locator(".poll .choice").nth(1).click()
    counted = languages.text("de", languages.POLL)["card"]["counted"]
    until(lambda: anna.locator(".poll .said").inner_text() == counted, 20, "Anna's answer was not taken")
    assert anna.locator(".poll .choice[aria-pressed=true]").count() == 1
    numbers = teacher.locator(".numbers")
    until(lambda: numbers.inner_text() == "Answers: 2. Students who look at it: 2.", 20, "the teacher has not heard")
    bars, both = teacher.locator(".bars .count"), ["1 (50 %)", "1 (50 %)", "0 (0 %)"]
    until(lambda: bars.all_inner_texts() == both, 20, "the later of two answers does not count")
    assert ben.locator(".poll .count").count() == 0, "a student sees numbers before they are shown"
    screenshot(teacher, "poll-teacher")

    teacher.get_by_role("button", name="Close", exact=True).click()
    until(lambda: ben.locator(".poll .said").inner_text() == "No more answers are taken.", 20, "it was not closed")
    assert ben.locator(".poll .choice:disabled").count() == 3 and ben.locator(".poll .count").count() == 0
    teacher.get_by_role("button", name="Show the numbers").click()
    for page in (anna, ben):
        until(lambda page=page: page.locator(".poll .count").count() == 3, 20, "the numbers are not shown")
        assert page.locator(".poll .count").all_inner_texts() == both
        right = page.locator(".poll .choice.right")
        assert right.count() == 1 and page.locator(".poll .choice").nth(ASKED.answer).get_attribute("class").count(
            "right"
        )
    widths = [bar["width"] for bar in (bar.bounding_box() for bar in ben.locator(".poll .choice").all())]
    assert max(widths) - min(widths) < 1, "bars that cannot be compared"
    screenshot(ben, "poll-shown-follow")
    screenshot(anna, "poll-shown-phone")
    teacher.get_by_role("button", name="Take it off").click()
    for page in (anna, ben):
        until(lambda page=page: not page.locator(".poll").is_visible(), 20, "the question stays")

    # The header of the page with the most buttons, where a class has the most pages, in the largest type.
    lab = open_page(f"{url}?page=lab&projector=1&token={TEACHER}", viewport={"width": 1280, "height": 720})
    lab.get_by_role("button", name="Keys and marks").first.wait_for(timeout=60_000)
    lab.get_by_role("button", name="Freeze", exact=True).click()
    names = ("Unfreeze", "Record", "Scenes", "Share", "Projector", "Keys and marks")
    parts = [lab.get_by_role("link", name="Ask", exact=True), *(lab.get_by_role("button", name=name) for name in names)]
    for width in (1341, 1280, 1279, 1141, 1140, 1101, 1100, 1061, 1060, 1024):
        lab.set_viewport_size({"width": width, "height": 768})
        lab.wait_for_timeout(900)
        boxes = [part.first.bounding_box() for part in parts]
        for left, right in pairwise(boxes):
            assert left["x"] + left["width"] <= right["x"] + 1, width
        assert boxes[-1]["x"] + boxes[-1]["width"] < width
        theme = lab.get_by_role("button", name="Toggle theme").first.bounding_box()
        assert boxes[-1]["x"] + boxes[-1]["width"] <= theme["x"] + 1, f"the header scrolls at {width}"


def test_the_teacher_freezes_what_the_class_sees_and_shows_it_again(
    serve: Callable[..., Any], open_page: Callable[..., Any], screenshot: Callable[..., None]
) -> None:
    tokens = {"BNNVIZ_TOKEN": TEACHER, "BNNVIZ_STUDENT_TOKEN": PUPIL}
    url = serve(env=tokens, options=("--class", "--address", "127.0.0.1")).url
    view = {"width": 1280, "height": 720}
    teacher = open_page(f"{url}?page=lab&play=1&token={TEACHER}", viewport=view)
    anna = open_page(f"{url}?page=follow&token={PUPIL}", viewport=view)

    def table(page: Any) -> str:
        return " ".join(page.locator("td:visible").all_inner_texts())

    def frozen(page: Any) -> bool:
        return following._HELD in page.locator("div.said").inner_text()

    until(lambda: "ESS" in table(anna), 120, "the run does not come")
    teacher.get_by_role("button", name="Freeze", exact=True).click()
    until(lambda: frozen(anna), 10, "nothing says that the picture is frozen")
    kept, seen = table(anna), table(teacher)
    until(lambda: table(teacher) != seen, 20, "the teacher's run does not go on")
    # The page of the other theme nobody has opened before.
    ben = open_page(f"{url}?page=follow&theme=dark&token={PUPIL}", viewport=view)
    until(
        lambda: ben.locator("div.said").count() and frozen(ben) and "ESS" in table(ben),
        60,
        "who comes late sees nothing",
    )
    late = table(ben)
    screenshot(teacher, "freeze-teacher")
    screenshot(ben, "freeze-late")
    teacher.wait_for_timeout(2_000)
    screenshot(anna, "freeze-student")
    assert (table(anna), table(ben)) == (kept, late), "a frame came through"

    teacher.get_by_role("button", name="Unfreeze", exact=True).click()
    for page, before in ((anna, kept), (ben, late)):
        until(lambda page=page: not frozen(page), 10, "it stays frozen")
        until(lambda page=page, before=before: "ESS" in table(page) and table(page) != before, 20, "nothing moves")
