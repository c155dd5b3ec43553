"""All numbers that a page shows at one instant are of one step, also in a slow browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from driving import Lab, until

# Status line, screen reader's text and caption, read together.
READ = """() => {
  const found = {}
  const walk = root => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) { walk(element.shadowRoot) }
      if (element.matches(".line span b")) { found[element.parentElement.className] = element.textContent }
      if (element.matches(".narration")) { found.narration = element.textContent }
      if (element.matches(".happened")) { found.caption = element.textContent }
    }
  }
  walk(document)
  return found
}"""


@pytest.mark.slow
def test_the_lab_shows_one_step_in_a_slow_browser(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = Lab(open_page(f"{dashboard.url}?page=lab&target=banana&sampler=bps&play=1&speed=0")).ready()
    cdp = lab.page.context.new_cdp_session(lab.page)
    cdp.send("Emulation.setCPUThrottlingRate", {"rate": 6})
    until(lambda: lab.number("draws") > 20, 120, "it does not play")
    steps = set()
    for _ in range(20):
        found = lab.page.evaluate(READ)
        step = int(found["step"].replace(",", ""))
        narrated = re.search(r"Step ([\d,]+), ([\d,]+) draws", found["narration"])
        assert narrated, found
        assert int(narrated[1].replace(",", "")) == step, found
        assert found["caption"] in found["narration"], found
        steps.add(step)
        lab.page.wait_for_timeout(400)
    assert len(steps) > 2
