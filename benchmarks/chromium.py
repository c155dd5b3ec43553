"""Find a Chromium, and start it without a screen."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

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


#: Installation hint, appended to a message about the feature that needs Chromium.
REMEDY = "install one (apt install chromium, or playwright install chromium) or name it in CHROMIUM"


def find_chromium() -> str | None:
    """Return the path of a Chromium: ``CHROMIUM``, the system's, the newest that Playwright has downloaded, or none."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    return next(filter(None, map(shutil.which, _BROWSERS)), None) or _downloaded()


def _downloaded() -> str | None:
    folder = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright"
    found = [path for path in Path(folder).glob("chromium-*/chrome-linux*/chrome") if os.access(path, os.X_OK)]
    return str(max(found, key=_revision)) if found else None


def _revision(path: Path) -> int:
    return int(re.sub(r"\D", "", path.parent.parent.name) or 0)
