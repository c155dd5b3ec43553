"""Take the pictures of the README: ``make screenshots`` (needs Chromium).

Serves the dashboard, presses play in a real browser, and photographs the Lab in light and dark. With ``scenes``
as an argument (``make screenshots WHAT=scenes``), or with the names of some: every step of the guided scenes,
in light and dark, 1280x720 and 1920x1080, under tests/artifacts/scenes, to be looked at.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from conftest import ARTIFACTS, BROWSER_FLAGS, ROOT, VIEWPORT, find_chromium, start_dashboard, stop_dashboard
from playwright.sync_api import sync_playwright

from benchmarks.chromium import REMEDY

DOCS = ROOT / "docs"
NETWORK = "?target=network&t.hidden=25-10&t.prior_sd=2&sampler=boomerang&s.refresh_rate=2&warmup=20"
DRAWS = 400  # of each chain: the bands have settled and the trace has something to show
PATIENCE_S = 180.0
SCENES = ROOT / "app" / "scenes"
FOLDER = ARTIFACTS / "scenes"
SIZES = ((1280, 720), (1920, 1080))
SCENE_MS = 4000  # from a step to its picture


def draws_shown(page: Any) -> int:
    """Return the draws of each chain in the status line."""
    found = re.search(r"([\d,]+) × \d+ draws", page.get_by_text("frames/s").locator("..").inner_text())
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


def photograph_scene(browser: Any, url: str, name: str) -> list[Path]:
    """Keep a picture of each step of a scene, in each size and theme, and return the paths."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    steps = json.loads((SCENES / f"{name}.json").read_text(encoding="utf-8"))["steps"]
    paths = []
    for width, height in SIZES:
        for theme in ("default", "dark"):
            page = browser.new_page(viewport={"width": width, "height": height})
            page.goto(f"{url}?theme={theme}&scene={name}")
            for number, step in enumerate(steps, start=1):
                page.get_by_text(f"{number} of {len(steps)}", exact=True).wait_for()
                if "ask" in step:
                    page.get_by_role("button", name="Reveal", exact=True).click()
                page.wait_for_timeout(SCENE_MS)
                path = FOLDER / f"{name}-{number}-{width}x{height}-{'dark' if theme == 'dark' else 'light'}.png"
                page.screenshot(path=path)
                paths.append(path)
                if number < len(steps):
                    page.get_by_role("button", name="Next", exact=True).click()
            page.close()
    return paths


def main() -> None:
    """Take both pictures of the Lab, or those of the scenes."""
    names = sys.argv[1:]
    if names == ["scenes"]:
        names = sorted(path.stem for path in SCENES.glob("*.json"))
    chromium = find_chromium()
    if chromium is None:
        sys.exit(f"Pictures need Chromium: {REMEDY}.")
    DOCS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        served = start_dashboard(Path(folder) / "server.log")
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER_FLAGS)
                if names:
                    paths = [path for name in names for path in photograph_scene(browser, served.url, name)]
                else:
                    paths = [photograph(browser, served.url, theme) for theme in ("default", "dark")]
                sys.stdout.write("".join(f"{path.relative_to(ROOT)}\n" for path in paths))
                browser.close()
        finally:
            stop_dashboard(served)


if __name__ == "__main__":
    main()
