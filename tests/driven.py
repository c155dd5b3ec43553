"""Runs that tests drive to their end."""

from __future__ import annotations

from typing import Any


def finished(run: Any, seconds: float = 0.1) -> Any:
    """Return a run after its last step."""
    while not run.finished:
        run.advance(seconds)
    return run
