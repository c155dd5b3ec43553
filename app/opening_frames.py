"""Frames of recorded runs that pages open on (`tests/record_openings.py`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bnnviz.engine.frames import codec

FOLDER = Path(__file__).parent / "presets"


def read(page: str, spec: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return scene and frame of the recorded run of a spec that a page opens on; None without one."""
    file = FOLDER / f"{page}.npz"
    found = codec.unpack(file.read_bytes()) if file.is_file() else None
    return None if found is None or found["spec"] != spec.checked().to_json() else (found["scene"], found["frame"])
