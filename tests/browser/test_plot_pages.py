"""Pages of figures in a real browser: everything is drawn, and nothing is asked of the network."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bnnviz import plots
from bnnviz.figures.listing import BY_NAME
from tests.example_parts import example_parts


@pytest.mark.parametrize("dark", [False, True])
def test_a_browser_draws_every_recorded_part(dark: bool, open_page: Callable, screenshot: Callable) -> None:
    parts = [(name, name, each) for name, found in example_parts().items() if name in BY_NAME for each in found]
    assert len(parts) > 10
    opened = open_page(viewport={"width": 1900, "height": 3600})
    opened.set_content(plots.page(plots.panels(parts, dark=dark), "panels", dark=dark))
    opened.wait_for_selector("canvas")
    opened.wait_for_timeout(500)
    assert opened.locator(".bk-Figure").count() == len(parts)
    screenshot(opened, f"plots-{'dark' if dark else 'light'}")
