"""A traced step is the step of its sampler, bit for bit, and one program serves all settings."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from families import DISCRETE, PDMPS, QUICK, STOCHASTIC, TRAINED, fitting, some_quick, target_of
from traced_loop import begun, sampling, traced_kernel

from bnnviz.engine.compilation import compiled_step
from bnnviz.engine.compilation.tracing import TracedProgram, form_of, trace
from bnnviz.engine.run.run import Run
from bnnviz.samplers import warmup
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.pdmp.thinning import BOUNCE, REFRESH
from bnnviz.samplers.tree import flat
from bnnviz.specs.run import Spec
from bnnviz.targets import mlp_native

TARGETS = {
    "gaussian": {"size": 3, "correlation": 0.5},
    "banana": {},
    "network": {"data": "toy_c", "hidden": "4"},
}


@pytest.fixture(autouse=True)
def without_cpp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have PyTorch compute the derivatives of networks, as a traced program does: C++ rounds otherwise."""
    monkeypatch.setattr(mlp_native, "derivatives", lambda *args: None)


def equal(one: object, other: object) -> bool:
    pairs = zip(flat(one), flat(other), strict=True)
    return all(torch.equal(a.nan_to_num(7, 8, 9), b.nan_to_num(7, 8, 9)) for a, b in pairs)


@pytest.mark.parametrize(
    ("sampler", "target", "bound"),
    some_quick(
        [
            ("zigzag", "banana", "regression"),
            *((sampler, "network", "grid") for sampler in PDMPS),
            *((sampler, "gaussian", "exact") for sampler in PDMPS),
            ("bps", "banana", "interpolated"),
        ],
        2,
    ),
)
def test_a_traced_process_is_the_process(sampler: str, target: str, bound: str) -> None:
    settings = {"bound": bound, "refresh_rate": 0.7}
    assert_events(Spec(target, TARGETS[target], sampler, settings, chains=4, draws=None))


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 5},
        {"batch_size": 5, "batch": "event"},
        {"batch_size": 5, "control_variates": True},
        {"bound": "interpolated", "clip_points": True, "alpha": 1.5},
    ],
    ids=str,
)
def test_so_it_is_with_every_setting(settings: dict) -> None:
    assert_events(Spec("logistic_regression", {}, "sigma_bps", settings, chains=3, draws=None))


def assert_events(spec: Spec) -> None:
    kinds = torch.stack([info.kind for _, info in assert_same(sampling(spec.replace(device="cpu")), 60)])
    assert ((kinds == BOUNCE) | (kinds == REFRESH)).any()


@pytest.mark.parametrize("sampler", some_quick(DISCRETE, 4))
def test_a_traced_move_is_the_move(sampler: str) -> None:
    settings = {"batch_size": 5, "control_variates": True, "decay": 0.5}
    if sampler not in STOCHASTIC:
        settings = fitting(sampler, batch_size=5) | QUICK[sampler]
    assert_same(sampling(Spec(*target_of(sampler), sampler, settings, chains=3, draws=None, device="cpu")), 40)


@pytest.mark.parametrize("sampler", some_quick(TRAINED, 1))
def test_a_traced_step_of_the_training_is_the_step(sampler: str) -> None:
    settings = QUICK[sampler] | {"batch_size": 50}
    assert_same(begun(Spec("network", TARGETS["network"], sampler, settings, chains=3, draws=None, device="cpu")), 40)


def assert_same(run: Run, steps: int) -> list:
    """Compare the steps of a sampler with those of its traced program, one by one and in a block."""
    kernel, start, numbers = traced_kernel(run.sampler, run.state), run.state, run.rng.get_state()
    states: dict[str, list] = {}
    for name, step in (("eager", run.sampler.step), ("traced", kernel.step)):
        run.rng.set_state(numbers)
        state, states[name] = start, []
        for _ in range(steps):
            state, info = step(run.numbers, state)
            states[name].append((state, info))
    for eager, other in zip(states["eager"], states["traced"], strict=True):
        assert equal(eager, other)
    run.rng.set_state(numbers)
    assert_same_block(run, kernel.take(run.numbers, start, steps), start, states["eager"])
    return states["eager"]


def assert_same_block(run: Run, block: StepBatch, start: Any, steps: list) -> None:
    states = [start, *(state for state, _ in steps)]
    assert len(block.before) == len(block.infos) == len(steps)
    for at, (state, info) in enumerate(steps):
        assert equal(run.sampler.outline(states[at]), block.before[at])
        assert equal(info, block.infos[at])
        assert equal(run.sampler.outline(state), run.sampler.outline(block.state_after(at)))
    assert equal(states[-1], block.after)
    assert torch.equal(block.history("x"), torch.stack([state.x for state in states]))
    for name in info._fields:
        expected = torch.stack([getattr(info, name) for _, info in steps])
        assert torch.equal(block.column(name).nan_to_num(7, 8, 9), expected.nan_to_num(7, 8, 9))


@pytest.mark.parametrize(
    ("sampler", "metric"), some_quick(itertools.product(("hmc", "nuts"), ("diagonal", "low_rank", "dense")), 2)
)
def test_one_program_takes_the_warm_up_too(sampler: str, metric: str) -> None:
    settings = {"metric": metric, **({"num_leapfrog_steps": 4} if sampler == "hmc" else {"max_treedepth": 3})}
    spec = Spec("gaussian", {"size": 3, "correlation": 0.8}, sampler, settings, chains=3, draws=50, warmup=60)
    run = begun(spec.replace(device="cpu"))
    kernel, start, numbers, states = traced_kernel(run.sampler, run.state), run.state, run.rng.get_state(), []
    for stepper in (run.sampler, kernel):
        run.rng.set_state(numbers)
        state = start
        while not run.sampler.is_tuned(state):
            state, _ = warmup.step(run.sampler, run.numbers, state, stepper)
        states.append(state)
    assert states[0].adaptation.step_size == states[1].adaptation.step_size != start.adaptation.step_size
    assert equal(states[0], states[1])
    run.rng.set_state(numbers)
    state, sizes = start, itertools.cycle([1, 7, 2, 32])
    while not run.sampler.is_tuned(state):
        state = kernel.take(run.numbers, state, next(sizes), learns=True).after
    assert equal(states[0], state)
    assert state.adaptation.step_size == states[0].adaptation.step_size


@pytest.mark.parametrize(
    ("sampler", "name", "one", "other"),
    some_quick(
        [
            ("bps", "refresh_rate", 0.3, 0.7),
            ("zigzag", "refresh_rate", 0.3, 0.7),
            ("boomerang", "refresh_rate", 0.3, 0.7),
            ("nuts", "step_size", 0.3, 0.7),
            ("hmc", "step_size", 0.3, 0.7),
            ("sgld", "step_size", 0.01, 0.02),
            ("sgld", "temperature", 1.0, 0.5),
            ("sghmc", "friction", 0.3, 0.7),
        ],
        2,
    ),
)
def test_other_settings_and_another_warmup_need_no_other_program(
    sampler: str, name: str, one: float, other: float
) -> None:
    first, second = (program(sampler, {name: value}, seed) for seed, value in enumerate((one, other)))
    assert compiled_step._key(first, 1) == compiled_step._key(second, 1)
    assert any(not torch.equal(a, b) for a, b in zip(first.constants, second.constants, strict=True))


def program(sampler: str, settings: dict, seed: int) -> TracedProgram:
    if sampler == "sgld":
        settings = {"step_size": 0.01} | settings
    run = begun(Spec("gaussian", {"size": 3}, sampler, settings, chains=3, draws=None, seed=seed, device="cpu"))
    for _ in range(30):
        if run.phase == "tuning":
            run.step_proposal()
    if run.phase == "tuning":
        run._end_warmup()
    return trace(run.sampler, run.state, form_of(run.sampler, run.state))
