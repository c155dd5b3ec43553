"""Drive the dashboard in a browser, and look at the runs behind it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

#: The Lab's second example, which feeds all views.
ON_NETWORK = "?target=network&t.hidden=25-10&t.prior_sd=2&sampler=boomerang&s.refresh_rate=2&warmup=20"

# A number for each figure that changes with what it draws.
FIGURES = """() => {
  const sums = {}
  for (const model of Bokeh.documents[0]._all_models.values()) {
    if (model.type !== "Figure") { continue }
    let sum = 0, place = 1
    const drawn = [...model.renderers.map((r) => r.data_source), ...model.tags]
    for (const source of new Set(drawn)) {
      for (const column of Object.values(source?.data ?? {})) {
        for (const value of column) { place += 1; if (Number.isFinite(value)) { sum += value * (place % 97) } }
      }
    }
    sums[model.name] = sum
  }
  return sums
}"""
# By how many pixels a page is wider and higher than its window.
OVERFLOW = (
    """() => [document.documentElement.scrollWidth - innerWidth, document.documentElement.scrollHeight - innerHeight]"""
)

# Take the focus away from whatever has it.
BLUR = """() => {
  let focused = document.activeElement
  while (focused?.shadowRoot?.activeElement) { focused = focused.shadowRoot.activeElement }
  focused?.blur()
}"""


_STEPS = ("Next step", "Next event", "Next phase", "Next iteration", "Previous step")
_OF_PAGE = (
    "Share",
    "Restart",
    "Record",
    "Stop recording",
    "Fork",
    "Keys",
    "Projector mode",
    "Leave projector mode",
    "Light or dark",
    "Your data (CSV)",
    "Timeline: whole run",
    "Timeline: last events",
)
#: Items of menus, each with the button that opens its menu.
MENUS = dict.fromkeys(_STEPS, "Step") | dict.fromkeys(_OF_PAGE, "Menu")
#: Items of the menu in the settings.
POINTS = ("Undo", "Clear: no points, the prior alone")


class Lab:
    """The page as a user sees it."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def ready(self) -> Lab:
        """Wait for the first steps of the run, up to the first event of one that waits."""
        self.page.wait_for_selector(".step b", timeout=60_000, state="attached")
        until(self.run, 60, "no run began")  # until then the page may show a recorded one
        until(lambda: self.number("step") > 0, 60, "the first run made no step")
        if self.button("Play").is_visible():
            self.rest()
        return self

    def diagnose(self) -> Lab:
        """Open the diagnostics, with which come the status line, trace and ACF."""
        if not self.page.get_by_role("combobox", name="Follow").is_visible():
            self.page.get_by_role("button", name=re.compile("^Diagnostics$| draws ")).click()
        until(lambda: {"trace", "acf"} <= self.figures().keys(), 20, "the diagnostics did not open")
        return self

    def settings(self, shown: bool = True) -> None:
        """Open the settings, or close them."""
        if self.page.locator(".area-sidebar:visible").count() != shown:
            self.button("Settings").click()
            self.page.wait_for_timeout(500)

    def number(self, name: str) -> float:
        """Return a number of the status line."""
        text = self.page.locator(f".{name} b").text_content().replace(",", "").split(" ")[0]
        return float("nan") if text == "–" else float(text)

    def run(self) -> str:
        """Return the id of the run that the page shows."""
        return self.page.evaluate("new URLSearchParams(location.search).get('run')")

    def rest(self) -> None:
        """Wait until the status line shows the last frame of a paused run."""
        seen = [float("nan")]

        def unchanged() -> bool:
            self.page.wait_for_timeout(1000)
            seen.append(self.number("step"))
            return seen[-1] == seen[-2]

        until(unchanged, 30, "the step still changes")

    def figures(self) -> dict[str, float]:
        """Return a number for each figure that changes with its data."""
        return self.page.evaluate(FIGURES)

    def press(self, label: str) -> None:
        """Click a button, or an item of a menu."""
        if label in MENUS:
            self.button(MENUS[label]).click()
            self.page.get_by_role("menuitem", name=label, exact=True).click()
        elif label in POINTS:
            self.settings()
            self.button("Points").click()
            self.page.get_by_role("menuitem", name=label, exact=True).click()
            self.settings(False)
        else:
            self.button(label).click()

    def button(self, label: str) -> Any:
        """Return a button by its label."""
        return self.page.get_by_role("button", name=label, exact=True)

    def select(self, label: str) -> Any:
        """Return a select by its label."""
        found = self.page.get_by_role("combobox", name=re.compile(rf"^{label}\b"))
        if not found.count():
            self.settings()
        return found

    def pick(self, label: str, option: str) -> None:
        """Choose an option of a select."""
        self.select(label).click()
        self.page.get_by_role("option", name=option, exact=True).click()
        self.page.wait_for_timeout(200)

    def field(self, label: str) -> Any:
        """Return a text field or a slider's handle by its label."""
        found = self.page.locator(f".MuiFormControl-root:has(label:text-matches('^{label}')) input:visible")
        if not found.count():
            self.settings()
        return found.first

    def statement(self) -> str:
        """Return what the strip above the views says."""
        return self.page.locator(".statement").inner_text()


def until(condition: Callable[[], Any], seconds: float, otherwise: str) -> Any:
    """Wait for a condition and return its value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{otherwise} within {seconds:g} s")
