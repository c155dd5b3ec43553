"""Every page for everybody: axe finds nothing, on a laptop and a phone, light and dark, and keys reach everything."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from driving import Lab, until

from bnnviz_app.pages import PAGES

pytestmark = pytest.mark.timeout(600)
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
RUN_AXE = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
SIZES = ((1280, 720), (390, 844))
#: What is looked at of each page; of those that play, once they do.
VIEWS = {name: f"page={name}&play=1" for name in PAGES} | {"your data": "page=lab&your_data=1"}
TEACHER, PUPIL = "the-teachers-token-of-this-test", "the-students-token-of-this-test"
#: The name of the control that has the focus, of its own or of its label; "" without one.
FOCUSED = """() => {
  let el = document.activeElement
  while (el?.shadowRoot?.activeElement) { el = el.shadowRoot.activeElement }
  return el === document.body ? "" : el.getAttribute("aria-label") ?? el.labels?.[0]?.textContent ?? el.textContent
}"""


def violations(page: Any) -> list[str]:
    """Return what axe finds wrong on a page."""
    page.evaluate(AXE)
    return [f"{rule['id']}: {node['html'][:160]}" for rule in page.evaluate(RUN_AXE) for node in rule["nodes"]]


def in_all_sizes(page: Any) -> list[str]:
    found = []
    for width, height in reversed(SIZES):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(1500)
        found += [f"{width}: {fault}" for fault in violations(page)]
    return found


@pytest.mark.parametrize("theme", ["default", "dark"])
@pytest.mark.parametrize("name", VIEWS)
def test_axe_finds_nothing(name: str, theme: str, open_page: Callable[..., Any], dashboard: Any) -> None:
    page = open_page(f"{dashboard.url}?{VIEWS[name]}&theme={theme}")
    until(lambda: page.locator("h1").count(), 60, "the page did not come")
    page.wait_for_timeout(6000)
    found = in_all_sizes(page)
    if name in PAGES:
        page.get_by_role("button", name="Menu", exact=True).click()
        page.get_by_role("menuitem", name="Keys", exact=True).click()
        page.get_by_role("dialog").wait_for()
        page.wait_for_timeout(1000)
        found += [f"keys: {fault}" for fault in violations(page)]
    assert found == []


@pytest.mark.parametrize("theme", ["default", "dark"])
def test_axe_finds_nothing_in_the_drawers_and_tabs_of_the_lab(
    theme: str, open_page: Callable[..., Any], dashboard: Any
) -> None:
    lab = Lab(open_page(f"{dashboard.url}?theme={theme}")).ready().diagnose()
    found = []
    for tab in ("Weights", "Network", "Prediction"):
        lab.page.get_by_role("button", name=tab, exact=True).click()
        lab.page.wait_for_timeout(1500)
        found += [f"{tab}: {fault}" for fault in violations(lab.page)]
    lab.page.locator("button[data-figure=prediction]").click()
    lab.page.wait_for_timeout(500)
    found += [f"a figure's menu: {fault}" for fault in violations(lab.page)]
    lab.page.keyboard.press("Escape")
    lab.settings()
    found += in_all_sizes(lab.page)
    lab.press("Share")
    lab.page.get_by_role("dialog").wait_for()
    lab.page.wait_for_timeout(1000)
    assert found + violations(lab.page) == []


def test_axe_finds_nothing_in_lessons_and_in_a_class(serve: Callable[..., Any], open_page: Callable[..., Any]) -> None:
    tokens = {"BNNVIZ_TOKEN": TEACHER, "BNNVIZ_STUDENT_TOKEN": PUPIL}
    url = serve(env=tokens, options=("--class", "--address", "127.0.0.1")).url
    teacher = open_page(f"{url}?page=ask&lesson=thinning&token={TEACHER}")
    teacher.locator(".form .next").click(timeout=60_000)
    found = in_all_sizes(teacher)
    for address in ("lessons/", "lessons/thinning.html", "app?page=lab", "app?page=uncertainty"):
        pupil = open_page(f"{url}/../{address}{'&' if '?' in address else '?'}token={PUPIL}")
        until(lambda page=pupil: page.locator("h1").count(), 60, "the page did not come")
        pupil.wait_for_timeout(4000)
        found += [f"{address}: {fault}" for fault in in_all_sizes(pupil)]
    assert found == []


def test_a_dialog_is_used_by_keys_and_returns_the_focus(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = Lab(open_page(dashboard.url)).ready()
    page, press = lab.page, lab.page.keyboard.press
    lab.button("Menu").focus()
    press("Enter")
    page.get_by_role("menuitem", name="Share", exact=True).focus()
    press("Enter")
    page.get_by_role("button", name="Copy link", exact=True).wait_for()
    page.wait_for_timeout(500)
    stops = []
    for _ in range(9):
        press("Tab")
        stops.append(page.evaluate(FOCUSED))
    assert {"close", "Copy link", "Copy as Python", "Copy as command"} <= set(stops)
    assert all(stops) and len(set(stops)) < len(stops), f"the focus leaves the dialog: {stops}"
    press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    assert page.evaluate(FOCUSED).startswith("Menu")


def test_the_settings_over_a_phones_page_return_the_focus(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = Lab(open_page(dashboard.url, viewport={"width": 390, "height": 844})).ready()
    page, press = lab.page, lab.page.keyboard.press
    lab.button("Settings").focus()
    press("Enter")
    page.get_by_role("textbox", name=re.compile("^Hidden layers")).wait_for()
    stops = []
    for _ in range(40):
        press("Tab")
        stops.append(page.evaluate(FOCUSED))
    assert any(re.match("Hidden layers", stop) for stop in stops)
    assert not any("Menu" in stop for stop in stops), "the focus leaves the settings"
    press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    assert "Settings" in page.evaluate(FOCUSED)
