"""The way down to a mode."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from bnnviz import targets
from bnnviz.engine.run.initialization import Descent

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


@pytest.mark.slow
def test_a_start_at_a_mode_leaves_torchs_compiler_alone() -> None:
    code = (
        "import sys, bnnviz; bnnviz.sample('network', 'boomerang', draws=2, chains=1,"
        " target_settings={'data': 'toy_c', 'hidden': '5'});"
        " sys.exit('torch._dynamo' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
