"""The contract of samplers: what a family has to define, pure kernels, states in checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
import torch
from families import QUICK, target_of
from torch import Tensor
from traced_loop import traced_kernel

from bnnviz import BnnvizError, samplers, settings
from bnnviz.engine.run.run import Run
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.samplers import warmup
from bnnviz.samplers.base import Sampler, counters
from bnnviz.samplers.random import RandomNumbers, seeded
from bnnviz.samplers.tree import as_dicts, flat, restored
from bnnviz.specs.run import Spec
from bnnviz.targets import Gaussian

GAUSSIAN = Spec("gaussian", chains=3, draws=60, warmup=5, device="cpu", seed=2)


class State(NamedTuple):
    x: Tensor
    count: Tensor
    alive: Tensor


class Info(NamedTuple):
    accepted: Tensor
    failed: Tensor


class Walk(Sampler):
    """A random walk with a Metropolis test, in a family of its own."""

    registered = "walk"
    title = "Random walk"
    gradients_per_step = 1
    width_of_step = settings.Number(1.0, bounds=(0.01, 10.0), live=True)

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        return State(x0, *counters(x0))

    def kernel(self, rng: RandomNumbers, state: State) -> tuple[State, Info]:
        there = state.x + self.width_of_step * rng.normal(state.x.shape, state.x.dtype)
        here, after = (self.tempered_target(x)[0] for x in (state.x, there))
        accepted = rng.uniform(here.shape, here.dtype).log() < here - after
        after, failed = self.moved(state, torch.isfinite(here), x=torch.where(accepted[:, None], there, state.x))
        return after, Info(accepted.to(here.dtype), failed)


def finished(run: Run) -> np.ndarray:
    while not run.finished:
        run.advance(0.1)
    return run.draws


def walking(**changes: object) -> ViewedRun:
    return ViewedRun(GAUSSIAN.replace(**changes), sampler=Walk(width_of_step=0.7))


def test_a_family_of_one_s_own_runs_and_is_checkpointed() -> None:
    whole = finished(walking())
    assert whole.shape == (3, 60, 2) and np.isfinite(whole).all()
    half = walking()
    half.prepare()
    while half.store.counts.min() < 30:
        half.take(8)
    assert np.array_equal(finished(ViewedRun.restore(half.checkpoint(), sampler=Walk(width_of_step=0.7))), whole)


def test_a_family_of_one_s_own_is_compiled() -> None:
    sampler, rng = Walk(), seeded(1)
    sampler.prepare(Gaussian().to("cpu", torch.float32), None)
    state = sampler.init(torch.zeros(4, 2), rng)
    compiled = traced_kernel(sampler, state)
    eager, other, numbers = state, state, rng.generator.get_state()
    for _ in range(20):
        eager, _ = sampler.step(rng, eager)
    rng.generator.set_state(numbers)
    for _ in range(20):
        other, _ = compiled.step(rng, other)
    assert torch.equal(eager.x, other.x) and torch.equal(eager.count, other.count)


def every() -> Iterator[str]:
    for cls in samplers.REGISTRY:
        yield cls.registered


def equal(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one.nan_to_num(7, 8, 9), other.nan_to_num(7, 8, 9))


@pytest.mark.parametrize("name", list(every()))
def test_steps_change_nothing_of_the_sampler_and_states_come_back(name: str) -> None:
    chosen = {"mode_steps": 20} if "mode_steps" in settings.declared(samplers.REGISTRY.get(name)) else {}
    target, target_settings = target_of(name)
    run = Run(Spec(target, target_settings, name, chosen | QUICK[name], chains=2, draws=None, device="cpu").checked())
    try:
        run.prepare()
    except BnnvizError:  # a mode after so few steps may be none
        run = Run(run.spec.replace(settings=QUICK[name]).checked())
        run.prepare()
    held = {key: value for key, value in vars(run.sampler).items() if not key.startswith("_param")}
    state = run.state
    for step in range(1, 101):
        before, kept = state, [tensor.clone() for tensor in flat(state)]
        state, _ = warmup.step(run.sampler, run.numbers, state)
        assert all(equal(old, new) for old, new in zip(kept, flat(before), strict=True))
        if step % warmup.WINDOW == 0:
            state, _ = warmup.end_window(run.sampler, run.numbers, state, step)
    state = run.sampler.freeze(run.numbers, state)
    now = {key: value for key, value in vars(run.sampler).items() if not key.startswith("_param")}
    assert now.keys() == held.keys() and all(now[key] is held[key] for key in held)
    again = restored(type(state), as_dicts(state), torch.device("cpu"))
    assert type(again) is type(state)
    assert all(equal(a, b) for a, b in zip(flat(again), flat(state), strict=True))
