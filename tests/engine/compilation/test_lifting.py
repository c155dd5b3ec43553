"""One program for a sampler and a target, whatever its settings and what the warm-up has learnt."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bnnviz.engine.compilation import compiled_step
from bnnviz.engine.compilation.lifting import lift_floats
from bnnviz.engine.compilation.tracing import TracedStep, trace
from bnnviz.engine.run.run import Run
from bnnviz.specs.run import Spec

CHANGED = {
    "bps": ("refresh_rate", 0.3, 0.7),
    "zigzag": ("refresh_rate", 0.3, 0.7),
    "boomerang": ("refresh_rate", 0.3, 0.7),
    "nuts": ("step_size", 0.3, 0.7),
    "hmc": ("step_size", 0.3, 0.7),
    "sgld": ("step_size", 0.01, 0.02),
    "sghmc": ("friction", 0.3, 0.7),
}


def traced(sampler: str, settings: dict, seed: int) -> TracedStep:
    spec = Spec("gaussian", {"size": 3}, sampler, settings, chains=3, draws=None, seed=seed, device="cpu")
    run = Run(spec.checked())
    run.prepare()
    for _ in range(30):
        if run.phase == "tuning":
            run.step_proposal()
    if run.phase == "tuning":
        run._end_warmup()
    return trace(run.sampler, run.state)


@pytest.mark.parametrize("sampler", CHANGED)
def test_other_settings_and_another_warmup_need_no_other_program(sampler: str) -> None:
    name, one, other = CHANGED[sampler]
    first, second = traced(sampler, {name: one}, 0), traced(sampler, {name: other}, 1)
    assert compiled_step._key(first, 1) == compiled_step._key(second, 1)
    assert any(not torch.equal(a, b) for a, b in zip(first.constants, second.constants, strict=True))


def test_another_temperature_needs_no_other_program() -> None:
    first, second = (traced("sgld", {"temperature": value, "step_size": 0.01}, 0) for value in (1.0, 0.5))
    assert compiled_step._key(first, 1) == compiled_step._key(second, 1)


def test_floats_become_inputs_and_the_numbers_stay() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        filled = torch.full_like(x, 0.7)
        chosen = torch.where(x > 0.1, 0.3, -0.3)
        return (x * 0.2 + filled).clamp_min(0.9) / 3.3 + chosen + torch.zeros_like(x)

    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.linspace(-1, 1, 9)
    program: nn.Module = make_fx(function)(x)
    vectors = lift_floats(program, torch.device("cpu"))
    program.recompile()
    assert sorted(vectors[0].tolist()) == pytest.approx(sorted([0.7, 0.1, 0.3, -0.3, 0.2, 0.9, 3.3]))
    assert torch.equal(program(x, *vectors), function(x))
    assert not torch.equal(program(x, *(vector * 2 for vector in vectors)), function(x))
