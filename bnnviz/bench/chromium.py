"""Where a Chromium is, and how it is started without a screen."""

from __future__ import annotations

import os
import shutil

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Software drawing, and no request of the browser's own.
BROWSER_FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> str | None:
    """Return the path of a Chromium: ``CHROMIUM``, the system's, or none."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    return next(filter(None, map(shutil.which, _BROWSERS)), None)
