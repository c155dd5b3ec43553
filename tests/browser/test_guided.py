"""Scenes and projector in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driving import ON_NETWORK, OVERFLOW, Lab, until
from test_share import address, opened

SCENES = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in (Path(__file__).resolve().parents[2] / "app" / "scenes").glob("*.json")
}
SMALL = {"viewport": {"width": 1280, "height": 720}}


def shown_step(lab: Lab) -> str:
    return lab.page.locator(".scene .place").inner_text()


def statement_by_scene(lab: Lab) -> str:
    return lab.page.locator(".scene .text").inner_text()


ORDERED = sorted(SCENES, key=lambda name: SCENES[name]["order"])


@pytest.mark.parametrize("name", ORDERED)
def test_a_scene_plays_to_its_end(open_page: Callable[..., Any], dashboard: Any, name: str) -> None:
    lab = Lab(open_page(f"{dashboard.url}?scene={name}", **SMALL))
    steps = SCENES[name]["steps"]
    for number, step in enumerate(steps, start=1):
        until(lambda number=number: shown_step(lab) == f"{number} of {len(steps)}", 20, f"step {number} did not come")
        assert step["text"] in statement_by_scene(lab)
        if "ask" in step:
            assert lab.page.locator(".scene .choice").count() == len(step["ask"]["choices"])
            lab.press(step["ask"]["choices"][0] if number % 2 else "Reveal")
            until(lambda step=step: step["ask"]["reveal"] in statement_by_scene(lab), 10, "nothing was revealed")
        # A run is there, and drawn, before the next step.
        until(lambda: lab.number("step") > 0 and any(lab.figures().values()), 60, f"step {number} drew nothing")
        assert lab.page.evaluate(OVERFLOW) == [0, 0]
        assert address(lab)["scene"] == name
        if number < len(steps):
            lab.press("Next")
    lab.press("More scenes")
    until(lambda: lab.page.locator(f"a[href$='scene={name}']").is_visible(), 10, "the list did not open")
    assert lab.page.locator("a[href*='scene=']").count() == len(SCENES)
    assert "Traceback" not in lab.page.content()


def test_a_link_opens_a_scene_at_its_step_with_the_same_picture(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = opened(open_page, dashboard, "?scene=event", **SMALL)
    for _ in range(3):
        lab.page.keyboard.press("n")
        lab.page.wait_for_timeout(700)
    until(lambda: "2nd proposal was accepted" in lab.statement(), 10, "no bounce")
    until(lambda: address(lab)["step"] == "4", 5, lab.page.url)
    other = opened(open_page, dashboard, "?scene=event&step=4", **SMALL)
    until(lambda: "2nd proposal was accepted" in other.statement(), 10, "no bounce")
    assert other.number("step") == lab.number("step") == 4
    assert set(address(other)) == {"page", "scene", "step"}
    lab.page.keyboard.press("p")
    until(lambda: lab.number("step") == 3 and shown_step(lab) == "3 of 7", 15, "back did not begin the run anew")


def test_a_changed_scene_is_held_by_the_address_and_can_be_left(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = opened(open_page, dashboard, "?scene=horizon&step=2", **SMALL)
    lab.field("Seed").fill("5")
    lab.page.keyboard.press("Enter")
    until(lambda: address(lab).get("seed") == "5" and "scene" in address(lab), 10, lab.page.url)
    lab.page.reload()
    lab.ready()
    assert lab.field("Seed").input_value() == "5"
    lab.press("Close scene")
    until(lambda: not lab.page.locator(".scene").is_visible(), 5, "the scene stayed")
    until(lambda: "scene" not in address(lab), 5, lab.page.url)


def test_leave_returns_to_the_run_before_the_scene(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = opened(open_page, dashboard, "?page=lab&target=banana&sampler=bps&play=1&speed=50")
    run = lab.run()
    lab.page.goto(f"{dashboard.url}?page=lab&scene=event")
    until(lambda: lab.run() not in (None, run), 60, "the scene has no run")
    lab.page.locator("a[title='Open this run']").wait_for(timeout=30_000)
    lab.press("Close scene")
    until(lambda: lab.run() == run, 30, "the run before did not come back")


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("?scene=nonsense", "There is no scene 'nonsense'; choose one under Break it."),
        ("?scene=event&step=99", "step 7 was taken"),
    ],
)
def test_a_scene_that_is_not_there_gets_a_sentence(
    open_page: Callable[..., Any], dashboard: Any, query: str, sentence: str
) -> None:
    lab = opened(open_page, dashboard, query)
    until(lambda: sentence in lab.statement(), 15, "nothing was said")


# --- projector


def test_projector_is_large_and_needs_no_scrolling(open_page: Callable[..., Any], dashboard: Any) -> None:
    viewport = {"width": 1280, "height": 720}
    lab = Lab(open_page(dashboard.url + ON_NETWORK + "&projector=1", viewport=viewport))
    lab.button("Play").wait_for(timeout=60_000)
    until(lambda: any(lab.figures().values()), 60, "the first run drew nothing")
    assert lab.page.evaluate(OVERFLOW) == [0, 0]
    assert not lab.page.get_by_text("RUN", exact=True).count()
    font = lab.page.locator(".statement").evaluate("(el) => parseFloat(getComputedStyle(el).fontSize)")
    assert font >= 16
    bar = lab.button("Play").bounding_box()
    assert bar["y"] + bar["height"] <= 720
