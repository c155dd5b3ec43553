"""Installs Chromium for the tests if there is none: from Debian if allowed without a password, else by Playwright."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.chromium import REMEDY, find_chromium

SUDO = [] if os.geteuid() == 0 else ["sudo", "-n"]
APT = [*SUDO, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=60"]
COMMANDS = (
    [*APT, "update"],
    [*APT, "install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"],
    [sys.executable, "-m", "playwright", "install", "chromium"],
)

if __name__ == "__main__":
    for command in COMMANDS:
        if find_chromium() or os.environ.get("CHROMIUM"):
            break
        try:
            subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=600, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            sys.stderr.write(f"{command[-1]}: {error}\n")
    if find_chromium() is None:
        sys.exit(f"No Chromium found; the tests in a browser are skipped. {REMEDY}.")
