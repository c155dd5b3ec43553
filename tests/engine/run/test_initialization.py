"""The way down to a mode."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from bnnviz import targets
from bnnviz.engine.run.initialization import Descent, StartSearch
from bnnviz.samplers import BPS, HMC, Boomerang
from bnnviz.samplers.base import SHORT_DESCENT

STEPS = 200


@pytest.fixture(scope="module")
def target() -> targets.Target:
    return targets.REGISTRY.get("network")(data="toy_c", hidden="10")


def test_it_is_adam_with_a_rate_that_falls_to_zero(target: targets.Target) -> None:
    x0 = target.initial(3, torch.Generator().manual_seed(1))
    descent = Descent(target, x0, STEPS)
    descent.advance(50)
    descent.advance(STEPS)

    theirs = x0.clone().requires_grad_(True)
    adam = torch.optim.Adam([theirs], lr=target.descent_rate)
    schedule = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.0, total_iters=STEPS)
    for _ in range(STEPS):
        _, theirs.grad = target.gradient(theirs.detach())
        adam.step()
        schedule.step()

    moved = (theirs.detach() - x0).abs().max()
    assert descent.done and moved > 0.1
    assert torch.allclose(descent.ends(), theirs.detach(), atol=1e-3 * float(moved))


def test_a_network_that_learns_its_noise_does_not_set_out_where_it_fits_the_noise() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (30, 10))
    module = torch.nn.Sequential(torch.nn.Linear(10, 50), torch.nn.Tanh(), torch.nn.Linear(50, 1))
    target = targets.BNN(module, (x, x[:, 0] + rng.normal(0, 1, 30)), noise="learned")
    x0 = target.initial(4, torch.Generator().manual_seed(1))

    def noise(**settings: Any) -> torch.Tensor:
        search = StartSearch(target, [HMC(**settings)], x0)
        search.advance(10_000)
        return target.own_values(search.start().x)["noise_sd"]

    # The observations have the noise 1, and thirty rows do not tell it from a function of ten inputs.
    assert noise().min() > 0.2
    assert noise(start="mode").max() < 0.02
    # A reference is at the mode itself, and so is what is told to begin there.
    assert HMC(start="mode").descent_steps(target) == Boomerang().descent_steps(target) == 3000
    fixed = targets.BNN(module, (x, x[:, 0]), noise="fixed")
    assert HMC().descent_steps(fixed) == BPS().descent_steps(fixed) == 3000
    assert HMC().descent_steps(target) == BPS().descent_steps(target) == SHORT_DESCENT


@pytest.mark.slow
def test_a_start_at_a_mode_leaves_torchs_compiler_alone() -> None:
    code = (
        "import sys, bnnviz; bnnviz.sample('network', 'boomerang', draws=2, chains=1,"
        " target_settings={'data': 'toy_c', 'hidden': '5'});"
        " sys.exit('torch._dynamo' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
