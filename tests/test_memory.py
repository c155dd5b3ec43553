"""Large networks: what they take of the memory."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# The classic LeNet-5 on random images: 61,706 weights. In a process of its own, whose peak is nobody else's.
SCRIPT = """
import json, resource, sys
import numpy as np, torch
from torch import nn
import bnnviz

net = nn.Sequential(
    nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5),
    nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(),
    nn.Linear(84, 10),
)
rng = np.random.default_rng(0)
images = rng.standard_normal((500, 784)), rng.integers(0, 10, 500)
settings = {"batch_size": 20, "bound": "interpolated", "mode_steps": 20, "spacing": float(sys.argv[2])}
target = bnnviz.BNN(net, images, likelihood="categorical")
run = bnnviz.sample(target, sys.argv[1], draws=200, chains=1, warmup=5, settings=settings)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"shape": run.draws.shape, "peak": peak}))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "spacing"), [("boomerang", 0.02), ("bps", 0.001)])
def test_two_hundred_draws_of_lenet_take_less_than_a_gigabyte_and_a_half(sampler: str, spacing: float) -> None:
    command = [sys.executable, "-c", SCRIPT, sampler, str(spacing)]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert said["shape"] == [1, 200, 61_706]
    assert said["peak"] < 1500
