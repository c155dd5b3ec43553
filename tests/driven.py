"""Runs, processes and commands that tests drive to their end."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from typing import Any

import pytest


def finished(run: Any, seconds: float = 0.1) -> Any:
    """Return a run after its last step."""
    while not run.finished:
        run.advance(seconds)
    return run


def until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def run_here(line: str) -> int:
    """Run a command in this process, without starting Python anew; return its exit code."""
    from bnnviz.cli.main import main

    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line))
    return ended.value.code
