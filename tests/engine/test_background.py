"""A script that is a process of its own from the beginning ends without an abort when it is interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

_SAMPLES = """
import torch, bnnviz
net = torch.nn.Sequential(torch.nn.Linear(1, 20), torch.nn.Tanh(), torch.nn.Linear(20, 1))
x = torch.linspace(-1, 1, 50)[:, None]
def ready(run):
    if run.phase == "sampling" and run.draws.shape[1] > 3:
        print("ready", flush=True)
bnnviz.sample(bnnviz.BNN(net, (x, x**2)), "bps", draws=10**6, warmup=2, chains=2, callback=ready)
"""


@pytest.mark.slow
def test_an_interrupt_that_nobody_catches_ends_without_an_abort() -> None:
    with subprocess.Popen([sys.executable, "-c", _SAMPLES], stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGINT, 130)
    assert "terminate called" not in errors and "KeyboardInterrupt" in errors
