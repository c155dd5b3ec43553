"""Every page for everybody: axe finds nothing that matters, light and dark, on a laptop and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_class_page import PUPIL, TEACHER
from test_everybody import AXE, RUN_AXE, THEMES
from test_lab import until

from bnnviz_app.pages import PAGES

SIZES = ((1280, 720), (390, 844))
#: What is looked at of each page; of those that play, once they do.
VIEWS = {name: f"page={name}&play=1" for name in PAGES if name != "lab"} | {
    "lab": "page=lab&play=1&target=banana",
    "your data": "page=lab&your_data=1",
    "a step": "page=learn&lesson=thinning&step=3&lang=de",
    "a question": "page=learn&lesson=bounds&step=8",
    "a piece": "page=learn&lesson=importance-weights&step=2",
    "a race in a lesson": "page=learn&lesson=images&step=2",
}
OFTEN = ("lab", "a step", "papers")  # the others run nightly


def serious(page: Any) -> list[str]:
    """Return what axe finds wrong on a page that keeps people out."""
    page.evaluate(AXE)
    return [
        f"{rule['id']}: {node['html'][:160]}"
        for rule in page.evaluate(RUN_AXE)
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def found_at_all_sizes(open_page: Callable[..., Any], address: str) -> list[str]:
    """Return what axe finds on a page that is opened on a laptop and goes over to a phone."""
    page = open_page(address, viewport={"width": SIZES[0][0], "height": SIZES[0][1]})
    until(lambda: page.locator("h1").count(), 60, "the page did not come")
    page.wait_for_timeout(6000)
    found = []
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(1500)
        found += [f"{width}: {fault}" for fault in serious(page)]
    page.close()  # its server may end before the test does
    return found


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    "name", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in VIEWS]
)
def test_axe_finds_nothing_serious(name: str, theme: str, open_page: Callable[..., Any], dashboard: Any) -> None:
    assert found_at_all_sizes(open_page, f"{dashboard.url}?{VIEWS[name]}&theme={theme}") == []


@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious_on_the_pages_of_a_class(
    theme: str, open_page: Callable[..., Any], serve: Callable[..., Any]
) -> None:
    tokens = {"BNNVIZ_TOKEN": TEACHER, "BNNVIZ_STUDENT_TOKEN": PUPIL}
    url = serve(env=tokens, options=("--class", "--address", "127.0.0.1")).url
    assert found_at_all_sizes(open_page, f"{url}?page=ask&lesson=thinning&theme={theme}&token={TEACHER}") == []
    assert found_at_all_sizes(open_page, f"{url}?page=follow&theme={theme}&token={PUPIL}") == []
