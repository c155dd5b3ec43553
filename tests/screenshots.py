"""Take the pictures of the README: ``make screenshots`` (needs Chromium).

Serves the dashboard, presses play in a real browser, and photographs the Lab in light and dark.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from conftest import BROWSER_FLAGS, ROOT, VIEWPORT, find_chromium, start_dashboard, stop_dashboard
from playwright.sync_api import sync_playwright

DOCS = ROOT / "docs"
PLAYED_S = 20.0  # long enough for the bands to settle and the trace to fill


def photograph(browser: Any, url: str, theme: str) -> Path:
    """Play the Lab for a while in one theme, keep its picture, and return the path."""
    page = browser.new_page(viewport=VIEWPORT)
    page.goto(f"{url}?theme={theme}")
    page.get_by_role("button", name="Play", exact=True).click()
    page.get_by_role("button", name="Pause", exact=True).wait_for()
    page.wait_for_timeout(1000 * PLAYED_S)
    path = DOCS / f"lab-{'dark' if theme == 'dark' else 'light'}.png"
    page.screenshot(path=path)
    page.close()
    return path


def main() -> None:
    """Take both pictures."""
    chromium = find_chromium()
    if chromium is None:
        sys.exit("Pictures need Chromium; install it (apt install chromium) or name it in CHROMIUM.")
    DOCS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        served = start_dashboard(Path(folder) / "server.log")
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER_FLAGS)
                for theme in ("default", "dark"):
                    sys.stdout.write(f"{photograph(browser, served.url, theme).relative_to(ROOT)}\n")
                browser.close()
        finally:
            stop_dashboard(served)


if __name__ == "__main__":
    main()
