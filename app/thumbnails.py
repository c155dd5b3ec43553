"""Small pictures of the papers' figures (`tests/draw_thumbnails.py`)."""

from __future__ import annotations

import base64
from pathlib import Path

FOLDER = Path(__file__).parent / "thumbnails"


def address(name: str) -> str:
    """Return the picture of an experiment as a data URL, or nothing."""
    file = FOLDER / f"{name}.png"
    return f"data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}" if file.is_file() else ""
