"""Time travel in a real browser: back to an event, a change there, both futures over each other, one of them kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from driving import OVERFLOW, until
from test_draw import Drawing

# How many numbers of each future's line the trajectory has.
FUTURES = """() => {
  const figure = [...Bokeh.documents[0]._all_models.values()].find((m) => m.name === "trajectory")
  const lines = bnnviz_pens.get(figure).marks().filter(({kind, label}) => kind === "line" && /^[A-D]$/.test(label))
  return lines.map(({colour, data: {x}}) => ({colour, count: [...x].filter(Number.isFinite).length}))
}"""


@pytest.fixture
def opened(open_page: Callable[..., Any], dashboard: Any) -> Callable[..., Drawing]:
    """Return a function that opens the Lab by the rest of its address."""
    return lambda query, **options: Drawing(open_page(f"{dashboard.url}?page=lab{query}", **options)).ready()


def step(lab: Drawing) -> int:
    return int(lab.number("step"))


def rested(lab: Drawing) -> int:
    """Return the step at which a paused run has come to rest."""
    seen = [-1]

    def still() -> bool:
        seen.append(step(lab))
        lab.page.wait_for_timeout(400)
        return step(lab) == seen[-1]

    until(still, 20, "the run did not rest")
    return seen[-1]


def played(lab: Drawing, steps: int) -> int:
    """Play on to a step, pause, and return where that was."""
    lab.press("Play")
    until(lambda: step(lab) > steps, 60, f"no step {steps}")
    lab.press("Pause")
    return rested(lab)


def click_strip(lab: Drawing, share: float) -> None:
    box = lab.page.locator(".area-transport .bk-Figure").first.bounding_box()
    lab.page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)


def reported(lab: Drawing) -> str:
    """Return what the line over the stage says; nothing where it is not there."""
    bar = lab.page.locator(".futures")
    return " ".join(bar.locator(".reported, button").all_inner_texts()) if bar.is_visible() else ""


def says(lab: Drawing, *texts: str) -> None:
    try:
        until(lambda: all(text in reported(lab) for text in texts), 20, f"nothing of {texts}")
    except AssertionError as error:
        raise AssertionError(f"{error}: {reported(lab)!r}") from None


def quiet(lab: Drawing) -> None:
    until(lambda: not reported(lab), 20, "there are other times or futures still")


@pytest.mark.parametrize("theme", ["default", "dark"])
def test_back_to_an_event_a_change_there_and_both_futures(opened: Any, theme: str) -> None:
    lab = opened(f"&target=banana&sampler=bps&warmup=5&theme={theme}").diagnose()
    page = lab.page
    front = played(lab, 400)
    quiet(lab)
    click_strip(lab, 0.4)
    says(lab, f"of {front:,}")
    there = rested(lab)
    assert 0 < there < front
    # The event before, by the key; and the one after that is the one that was.
    page.keyboard.press("ArrowLeft")
    until(lambda: step(lab) < there, 10, "it did not go back")
    rested(lab)
    page.keyboard.press("e")
    until(lambda: step(lab) == there, 10, "another event came than the one that was")
    lab.press("Return to now")
    quiet(lab)
    assert rested(lab) == front
    click_strip(lab, 0.5)
    says(lab, f"of {front:,}")
    parted = rested(lab)
    slider = page.get_by_role("slider", name="Refresh rate")
    before = slider.input_value()
    slider.focus()
    page.keyboard.press("ArrowRight")
    says(lab, "A: as it was", "B: Refresh rate", f"Parted at step {parted:,}")
    played(lab, front + 150)
    lines = page.evaluate(FUTURES)
    assert [line["count"] > 5 for line in lines] == [True, True]
    assert lines[0]["colour"] != lines[1]["colour"]
    until(lambda: page.get_by_text("since the fork, A and B").count() == 1, 10, "no trace of both")
    assert max(page.evaluate(OVERFLOW)) <= 0
    # The controls show what is followed.
    lab.press("A: as it was")
    until(lambda: slider.input_value() == before, 10, "the slider shows the other future")
    lab.press("Keep A alone")
    quiet(lab)
    lab.press("Fork")
    says(lab, "B: nothing changed yet")
    lab.press("Restart")
    quiet(lab)


def test_other_data_are_another_future_on_a_small_screen(opened: Any) -> None:
    query = "&target=network&t.data=toy_c&t.hidden=8&sampler=hmc&warmup=5"
    lab = opened(query, viewport={"width": 1280, "height": 720})
    page = lab.page
    before = played(lab, 60)
    lab.press("Fork")
    says(lab, "B: nothing changed yet")
    lab.click_at(0.05, 0.35)
    says(lab, "B: other points")
    played(lab, before + 60)
    lab.press("Timeline: whole run")
    lab.press("Timeline: last events")
    page.wait_for_timeout(600)
    assert max(page.evaluate(OVERFLOW)) <= 0
