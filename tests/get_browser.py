"""Gets a browser for the tests where there is none; says in one line what it did, or how to get one.

``python tests/get_browser.py`` exits with 0 where a browser is there at the end, else with 1. It installs Debian's
Chromium where it may (as root, or by a sudo that asks nothing), else it lets Playwright download one; both end within a
bounded time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bnnviz.replays.chromium import REMEDY, find_chromium

PACKAGES = ("chromium", "fonts-dejavu-core")
APT_S, DOWNLOAD_S, START_S = 600, 300, 60  # at most
_CONNECT_MS = 5000  # until Playwright takes a host for silent


def get() -> tuple[bool, str]:
    """Return whether there is a browser, got where it had to be, and one sentence on it."""
    if not find_chromium() and not os.environ.get("CHROMIUM"):  # whoever names one wants no other
        any(way() and find_chromium() for way in (_by_apt, _by_playwright))
    found = find_chromium()
    if found is None:
        return False, f"The tests in a browser are skipped, since there is none here: {REMEDY}."
    if not _quietly([found, "--version"], START_S):
        return False, f"The tests in a browser are skipped, since {found} does not start: {REMEDY}."
    return True, f"The tests in a browser run in {found}."


def _by_apt() -> bool:
    """Install Debian's package where that is allowed without a question."""
    apt = shutil.which("apt-get")
    before = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if apt is None or (before and not _quietly(["sudo", "-n", "true"], 10)):
        return False
    before += ["env", "DEBIAN_FRONTEND=noninteractive", apt, "-qq", "-o", "DPkg::Lock::Timeout=60"]
    _quietly([*before, "update"], APT_S)  # what is known of the packages may do where this fails
    return _quietly([*before, "install", "-y", "--no-install-recommends", *PACKAGES], APT_S)


def _by_playwright() -> bool:
    """Have Playwright download its own, which needs no rights but a host that answers."""
    environment = {"PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": str(_CONNECT_MS), **os.environ}
    return _quietly([sys.executable, "-m", "playwright", "install", "chromium"], DOWNLOAD_S, environment)


def _quietly(command: list[str], seconds: float, environment: dict[str, str] | None = None) -> bool:
    """Return whether a command did what it should; one that takes longer is ended with all that it began."""
    try:
        child = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    try:
        return child.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        if child.poll() is None:
            os.killpg(child.pid, 9)
            child.wait()


if __name__ == "__main__":
    there, said = get()
    sys.stderr.write(f"{said}\n")
    sys.exit(not there)
