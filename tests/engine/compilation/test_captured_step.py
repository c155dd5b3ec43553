"""A step that is captured as a CUDA graph does what the step itself does; on a CPU the same tensors are filled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz.engine.compilation.captured_step import Capture, CapturedKernel
from bnnviz.engine.run import checkpoint
from bnnviz.engine.run.run import Run
from bnnviz.samplers import warmup
from bnnviz.samplers.random import PreDrawnNumbers, RandomNumbers
from bnnviz.samplers.tree import flat, rebuilt
from bnnviz.specs.run import Spec
from tests.driven import finished

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
SAMPLERS = {"nuts": {"step_size": 0.1, "metric": "unit"}, "bps": {}, "sgld": {"step_size": 0.01}}
SPEC = Spec("gaussian", {"size": 4, "correlation": 0.5}, chains=3, draws=None, dtype="float64")


def sampling(sampler: str, device: str) -> Run:
    """Return a run after its tuning, which is cut short."""
    run = Run(SPEC.replace(sampler=sampler, settings=SAMPLERS[sampler], device=device).checked())
    run.prepare()
    for _ in range(50):
        if run.phase == "tuning":
            run.step_proposal()
    if run.phase == "tuning":
        run._end_warmup()
    return run


def stepped(run: Run, steps: int) -> Any:
    run.sampler.host_sync, state = False, run.state
    for _ in range(steps):
        state, _ = run.sampler.step(run.numbers, state)
    return state


def close(one: Any, other: Any) -> bool:
    pairs = zip(flat(one), flat(other), strict=True)
    return all(torch.allclose(a.cpu().double(), b.cpu().double(), equal_nan=True) for a, b in pairs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_captured_steps_are_the_steps(sampler: str, device: str) -> None:
    run = sampling(sampler, device)
    begun = run.rng.get_state()
    kernel = CapturedKernel(run.sampler, run.state, run.numbers)
    assert torch.equal(run.rng.get_state(), begun)
    state, seen = run.state, []
    for _ in range(6):
        state, info = kernel.step(run.numbers, state)
        seen.append((state, info))
    ended = run.rng.get_state()
    run.rng.set_state(begun)
    run.sampler.host_sync, other = False, run.state
    for state, info in seen:
        other, expected = run.sampler.step(run.numbers, other)
        assert close(
            (state._replace(adaptation=None) if "adaptation" in state._fields else state, info),
            (other._replace(adaptation=None) if "adaptation" in other._fields else other, expected),
        )
    assert torch.equal(run.rng.get_state(), ended)


@pytest.mark.parametrize("device", DEVICES)
def test_a_captured_step_goes_on_from_any_state(device: str) -> None:
    run = sampling("nuts", device)
    kernel, begun = CapturedKernel(run.sampler, run.state, run.numbers), run.rng.get_state()
    first, _ = kernel.step(run.numbers, run.state)
    kernel.step(run.numbers, first)
    run.rng.set_state(begun)
    again, _ = kernel.step(run.numbers, run.state)
    assert close(again.x, first.x)
    run.rng.set_state(begun)
    assert close(stepped(run, 1).x, first.x)


@pytest.mark.gpu
def test_a_run_with_captured_steps_has_the_draws_of_one_without() -> None:
    given = {"chains": 3, "draws": 40, "seed": 2, "device": "cuda", "dtype": "float64"}
    plain, captured = (
        bnnviz.sample("banana", "nuts", kernel=kernel, **given).wait().draws for kernel in ("eager", "compiled")
    )
    assert torch.allclose(torch.as_tensor(plain), torch.as_tensor(captured))


@pytest.mark.gpu
def test_a_density_that_cannot_be_captured_is_reported_and_sampled_all_the_same() -> None:
    def potential(x: torch.Tensor) -> torch.Tensor:
        return 0.5 * (x**2).sum(-1) * (1.0 if float(x.detach().abs().sum()) < 1e9 else 2.0)

    run = bnnviz.sample(potential, "hmc", dim=2, chains=2, draws=30, warmup=20, device="cuda", kernel="compiled").wait()
    assert len(run.draws)


@pytest.mark.gpu
def test_what_reads_on_the_host_is_refused_and_leaves_the_generator_fit() -> None:
    run = sampling("hmc", "cuda") if "hmc" in SAMPLERS else sampling("sgld", "cuda")
    plain = type(run.sampler).kernel

    def reading(self, rng, state, drawn):
        float(state.x.sum())
        return plain(self, rng, state, drawn)

    run.sampler.__class__ = type("Reading", (type(run.sampler),), {"kernel": reading})
    begun = run.rng.get_state()
    capture = Capture(run.sampler, run.state, run.numbers)
    assert capture.kernel is None and "captured as a CUDA graph" in capture.error
    assert torch.equal(run.rng.get_state(), begun)
    assert torch.isfinite(stepped(run, 2).x).all()


@pytest.mark.parametrize("device", DEVICES)
def test_a_captured_step_takes_what_the_warm_up_learns(device: str) -> None:
    spec = SPEC.replace(sampler="hmc", warmup=40, device=device).checked()
    run = Run(spec)
    run.prepare()
    assert run.phase == "tuning"
    begun, state = run.rng.get_state(), run.state
    kernel = CapturedKernel(run.sampler, state, run.numbers)
    run.rng.set_state(begun)
    run.sampler.host_sync = False
    for _ in range(5):
        before, rng = state, run.rng.get_state()
        expected, _ = warmup.step(run.sampler, run.numbers, before)
        run.rng.set_state(rng)
        state, _ = warmup.step(run.sampler, run.numbers, before, kernel)
        assert close(state, expected)
    assert state.adaptation is not run.state.adaptation


@pytest.mark.gpu
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_kernel_on_a_gpu_does_what_it_does_on_the_cpu(sampler: str) -> None:
    here, there = sampling(sampler, "cpu"), sampling(sampler, "cuda")
    here.sampler.host_sync = False
    drawn = _Recorded(here.numbers)
    gifts = here.sampler.pre_draw(here.numbers, here.state)
    state, _ = here.sampler.kernel(drawn, here.state, *gifts)
    moved = [_on_gpu(part) for part in (here.state, gifts, tuple(drawn.made))]
    begun = moved[0]
    if "adaptation" in begun._fields:
        there.sampler.set_mode(None)
    found, _ = there.sampler.kernel(PreDrawnNumbers(moved[2]), begun, *moved[1])
    assert close(found, state)


class _Recorded(RandomNumbers):
    """Random numbers that keep what they made."""

    def __init__(self, numbers: RandomNumbers) -> None:
        super().__init__(numbers.generator)
        self.made: list[torch.Tensor] = []

    def make(self, draw: Any) -> torch.Tensor:
        self.made.append(super().make(draw))
        return self.made[-1]


def _on_gpu(value: Any) -> Any:
    return rebuilt(value, iter([part.cuda() for part in flat(value)]))


@pytest.mark.gpu
def test_a_run_on_a_gpu_samples_the_target_and_goes_on_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(SPEC.replace(sampler="bps", chains=64, draws=400, warmup=50, device="auto").checked())
    assert run.device.type == "cuda"
    while run.store.made.min() < 200:
        run.advance(0.2)
    saved = run.checkpoint()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    restored = Run.restore(saved)
    assert restored.notes[-1].code == "other_device"
    assert np.array_equal(restored.draws, run.draws)
    monkeypatch.undo()
    for each in (run, restored):
        finished(each)
        found = each.draws.mean(1)
        z = (found.mean(0) - each.target.mean()) / (found.std(0, ddof=1) / len(found) ** 0.5)
        assert np.abs(z).max() < 4.5


@pytest.mark.slow
def test_a_run_goes_on_from_the_random_numbers_of_another_kind_of_device() -> None:
    run = Run(SPEC.replace(sampler="bps", draws=60, warmup=5, device="cpu").checked())
    while run.store.made.min() < 20:
        run.advance(0.01)
    saved = checkpoint.unpack(run.checkpoint(), checkpoint._VERSION, "")
    # As a generator on a GPU gives its state: a seed and an offset.
    foreign = checkpoint.pack(saved | {"rng": torch.arange(16, dtype=torch.uint8)})
    runs = [Run.restore(foreign) for _ in range(2)]
    for each in runs:
        assert each.notes[-1].values == {"device": "cpu"}
        finished(each)
    assert np.array_equal(runs[0].draws, runs[1].draws), "the checkpoint alone says how it goes on"
