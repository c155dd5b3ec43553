"""Keep the results of runs on disk: an experiment that was interrupted goes on where it was."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from bnnviz import files, paths
from bnnviz.version import VERSION


def place(spec: dict[str, Any], wanted: list[str]) -> Path:
    """Return where the result of a run is kept: under its spec, what is wanted of it, and the version."""
    key = json.dumps([VERSION, spec, sorted(wanted)], sort_keys=True)
    return paths.reproduced() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


def read(path: Path) -> dict[str, Any] | None:
    """Return a kept result; None where there is none that can be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def write(path: Path, result: dict[str, Any]) -> None:
    """Keep a result, whole or not at all; a folder that cannot be written to keeps nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_whole(path, json.dumps(result, default=_plain).encode(), sync=False)
    except OSError:
        return


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be kept")
