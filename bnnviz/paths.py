"""Define the folders of bnnviz's files, without creating them."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def home() -> Path:
    """Return the folder of this user's recordings, checkpoints and the like (``BNNVIZ_HOME`` moves it)."""
    given = os.environ.get("BNNVIZ_HOME")
    return Path(given).expanduser() if given else platformdirs.user_data_path("bnnviz", appauthor=False)


def recordings() -> Path:
    """Return the folder of named recordings."""
    return home() / "recordings"


def live() -> Path:
    """Return the folder of the checkpoints of live runs."""
    return home() / "live"


def draws() -> Path:
    """Return the folder of draws that exceed memory during a run."""
    return home() / "draws"


def results() -> Path:
    """Return the folder of experiment records made on this machine."""
    return home() / "measured"


def reproduced() -> Path:
    """Return the folder of the results of single runs of experiments."""
    return home() / "reproduced"


def compiled() -> Path:
    """Return the folder of compiled steps (``TORCH_HOME`` moves it, as it does PyTorch's own cache)."""
    torch_home = os.environ.get("TORCH_HOME")
    if torch_home:
        return Path(torch_home).expanduser() / "bnnviz-kernels"
    return platformdirs.user_cache_path("bnnviz", appauthor=False) / "kernels"
