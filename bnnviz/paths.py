"""Name the places of bnnviz's files: one folder of the user's, and what lies in it.

Nothing here makes a folder; whoever writes does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bnnviz.errors import BnnvizError


def home() -> Path:
    """Return the folder of this user's recordings, checkpoints and the like (``BNNVIZ_HOME`` moves it)."""
    given = os.environ.get("BNNVIZ_HOME")
    if given:
        return Path(given).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or _user() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = _user() / "Library" / "Application Support"
    else:
        base = os.environ.get("XDG_DATA_HOME") or _user() / ".local" / "share"
    return Path(base) / "bnnviz"


def _user() -> Path:
    """Return this user's home folder."""
    try:
        return Path.home()
    except RuntimeError:
        raise BnnvizError("This account has no home folder; set BNNVIZ_HOME to a folder of yours.", "home") from None


def recordings() -> Path:
    """Return the folder of the recordings that are known by their names."""
    return home() / "recordings"


def live() -> Path:
    """Return the folder of the checkpoints of live runs."""
    return home() / "live"


def draws() -> Path:
    """Return the folder of the draws that are too many for the memory, while their run lasts."""
    return home() / "draws"


def references() -> Path:
    """Return the folder of the finished reference runs of races."""
    return home() / "references"


def results() -> Path:
    """Return the folder of the records of experiments that this machine has made."""
    return home() / "measured"


def reproduced() -> Path:
    """Return the folder of the results of single runs of experiments."""
    return home() / "reproduced"


def compiled() -> Path:
    """Return the folder of compiled steps, beside PyTorch's own cache (``TORCH_HOME`` moves both)."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or _user() / ".cache")
    return Path(os.environ.get("TORCH_HOME") or cache / "torch").expanduser() / "bnnviz-kernels"
