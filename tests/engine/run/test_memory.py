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
    statement = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert statement["shape"] == [1, 200, 61_706]
    assert statement["peak"] < 1500


# Draws are few moves apart, for what is asked is not whether they are good; each is kept, and asked at every test row.
JUDGED = """
import json, resource, sys
import bnnviz

images = {"data": sys.argv[1], "network": sys.argv[2], "train_rows": 40, "test_rows": 60}
settings = {"batch_size": 4, "thin": 1, "mode_steps": 2, "step_size": 1e-7}
run = bnnviz.sample("images", "sgld", target_settings=images, settings=settings, draws=200, chains=1, warmup=5)
accuracy = bnnviz.measure(run)["averaged"]["accuracy"]
said = bnnviz.uncertainty(run)["summary"]
run.summary()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"shape": run.draws.shape, "peak": peak, "accuracy": [accuracy, said["accuracy"]]}))
"""


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("data", "network", "dim"),
    [
        ("mnist", "lenet5_swish", 545_546),
        pytest.param("cifar10", "resnet20", 273_258, marks=pytest.mark.slow),  # two minutes
    ],
)
def test_two_hundred_draws_of_a_large_network_are_judged_in_a_gigabyte_and_a_half(
    data: str, network: str, dim: int
) -> None:
    command = [sys.executable, "-c", JUDGED, data, network]
    statement = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert statement["shape"] == [1, 200, dim]
    assert statement["accuracy"][0] == statement["accuracy"][1]
    assert statement["peak"] < 1500
