"""All numbers that a page shows at one instant belong to one step, also in a slow browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from driving import Lab, until

# Every text of the page, read together: "CLASS: text" by line, with the unit of the status line after its number.
READ = """() => {
  const found = []
  const walk = root => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) { walk(element.shadowRoot) }
      if (["STYLE", "SCRIPT"].includes(element.tagName)) { continue }
      const whole = element.matches(".line > span, tr, .happened, .narration")
      const own = [...element.childNodes].filter(node => node.nodeType === Node.TEXT_NODE)
      const text = whole ? element.innerText ?? element.textContent : own.map(node => node.textContent).join(" ")
      if (text.trim()) { found.push(`${element.className}: ${text.replace(/\\s+/g, " ").trim()}`) }
    }
  }
  walk(document)
  return found.join("\\n")
}"""

NUMBER = r"(\d+(?:,\d{3})*)"
LAB = "?page=lab&target=banana&sampler=bps&play=1&speed=0"
_OF_RACE = (
    (
        rf"^spent: {NUMBER}",
        rf": {NUMBER} of [\d,]+ gradients each",
        rf"happened.*After {NUMBER} grad",
        rf"narration.*After {NUMBER} grad",
    ),
)
#: For each page its address, and groups of patterns whose numbers are equal; a caption may be about something else.
PAGES = {
    "lab": (
        LAB,
        (
            (rf"^step: {NUMBER}", rf"narration.*Step {NUMBER}"),
            (
                rf"^ess: {NUMBER}",
                rf"· ESS {NUMBER} ·",
                rf"Bulk ESS \(\w+\) {NUMBER}",
                rf"narration.*sample size {NUMBER}",
            ),
            (rf"^draws: {NUMBER}", rf"narration.*Step [\d,]+, {NUMBER} draws"),
        ),
    ),
    "race": ("?page=race&play=1&speed=0", _OF_RACE),
    "uncertainty": ("?page=uncertainty&play=1&speed=0", _OF_RACE),
}


def differing(text: str, groups: tuple[tuple[str, ...], ...]) -> list[str]:
    """Return the lines of each group whose numbers differ, or that occur once."""
    wrong = []
    for group in groups:
        matches = [match for pattern in group for match in re.finditer(pattern, text, re.MULTILINE)]
        if len(matches) < 2 or len({match[1] for match in matches}) > 1:
            wrong += [f"{group[0]}: {[match[0] for match in matches]}"]
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_one_step_in_a_slow_browser(page: str, open_page: Callable[..., Any], dashboard: Any) -> None:
    address, groups = PAGES[page]
    shown = open_page(dashboard.url + address)
    if page == "lab":
        Lab(shown).diagnose()
    with suppress(AssertionError):
        until(lambda: not differing(shown.evaluate(READ), groups), 60, "the page does not fill")
    assert not differing(shown.evaluate(READ), groups)
    shown.context.new_cdp_session(shown).send("Emulation.setCPUThrottlingRate", {"rate": 6})
    read = set()
    for _ in range(20):
        text = shown.evaluate(READ)
        assert not differing(text, groups)
        read.add(text)
        shown.wait_for_timeout(400)
    assert len(read) > 2
