"""Take the pictures of the README: ``make screenshots`` (needs Chromium)."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from conftest import BROWSER_FLAGS, ROOT, VIEWPORT, find_chromium
from playwright.sync_api import sync_playwright

from benchmarks.chromium import REMEDY
from benchmarks.dashboard import start_dashboard

DOCS = ROOT / "docs"
NETWORK = "?target=network&t.hidden=25-10&t.prior_sd=2&sampler=boomerang&s.refresh_rate=2&warmup=20"
DRAWS = 400  # of each chain: the bands have settled and the trace has something to show
PATIENCE_S = 180.0


def draws_shown(page: Any) -> int:
    """Return the draws of each chain in the status line."""
    found = re.search(r"([\d,]+) × \d+ draws", page.get_by_text("frames per s").locator("..").inner_text())
    return int(found[1].replace(",", "")) if found else 0


def photograph(browser: Any, url: str, theme: str) -> Path:
    """Play the Lab for a while in one theme, keep its picture, and return the path."""
    page = browser.new_page(viewport=VIEWPORT)
    page.goto(f"{url}{NETWORK}&theme={theme}")
    page.get_by_role("button", name="Play", exact=True).click()
    page.get_by_role("button", name="Pause", exact=True).wait_for()
    until = time.monotonic() + PATIENCE_S
    while draws_shown(page) < DRAWS:
        if time.monotonic() > until:
            sys.exit(f"The Lab made {draws_shown(page)} of {DRAWS} draws within {PATIENCE_S:g} s.")
        page.wait_for_timeout(500)
    path = DOCS / f"lab-{'dark' if theme == 'dark' else 'light'}.png"
    page.screenshot(path=path)
    page.close()
    return path


def main() -> None:
    """Take both pictures of the Lab."""
    chromium = find_chromium()
    if chromium is None:
        sys.exit(f"Pictures need Chromium: {REMEDY}.")
    with tempfile.TemporaryDirectory() as folder:
        served = start_dashboard(Path(folder) / "server.log")
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER_FLAGS)
                for theme in ("default", "dark"):
                    sys.stdout.write(f"{photograph(browser, served.url, theme).relative_to(ROOT)}\n")
                browser.close()
        finally:
            served.stop()


if __name__ == "__main__":
    main()
