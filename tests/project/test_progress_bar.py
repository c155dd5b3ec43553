"""A run shows its progress in a terminal and is silent in a pipe."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

pytest.importorskip("rich")

SAMPLE = """
import bnnviz
run = bnnviz.sample("gaussian", "hmc", draws=1000, chains=2, seed=1)
print(run.draws.shape)
"""


def in_a_terminal(code: str) -> str:
    """Return what a program shows in a terminal."""
    shown = b""

    def read(terminal: int) -> bytes:
        nonlocal shown
        part = os.read(terminal, 65536)
        shown += part
        return part

    assert pty.spawn([sys.executable, "-c", code], read, lambda stdin: b"") == 0, shown.decode()
    return shown.decode()


@pytest.mark.slow
def test_a_terminal_shows_phase_and_share_and_a_pipe_what_the_program_prints() -> None:
    shown = in_a_terminal(SAMPLE)
    assert "sampling" in shown and "%" in shown
    done = subprocess.run([sys.executable, "-c", SAMPLE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["(2,", "1000,", "2)"] and not done.stderr
