"""Every page for everybody: axe finds nothing serious, on a laptop and on a phone, light and dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from driving import until

from bnnviz_app.pages import PAGES

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
RUN_AXE = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
SIZES = ((1280, 720), (390, 844))
#: What is looked at of each page; of those that play, once they do.
VIEWS = {name: f"page={name}&play=1" for name in PAGES} | {
    "your data": "page=lab&your_data=1",
}


def serious(page: Any) -> list[str]:
    """Return what axe finds wrong on a page that keeps people out."""
    page.evaluate(AXE)
    return [
        f"{rule['id']}: {node['html'][:160]}"
        for rule in page.evaluate(RUN_AXE)
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("theme", ["default", "dark"])
@pytest.mark.parametrize("name", VIEWS)
def test_axe_finds_nothing_serious(name: str, theme: str, open_page: Callable[..., Any], dashboard: Any) -> None:
    address = f"{dashboard.url}?{VIEWS[name]}&theme={theme}"
    page = open_page(address, viewport={"width": SIZES[0][0], "height": SIZES[0][1]})
    until(lambda: page.locator("h1").count(), 60, "the page did not come")
    page.wait_for_timeout(6000)
    found = []
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(1500)
        found += [f"{width}: {fault}" for fault in serious(page)]
    assert found == []
