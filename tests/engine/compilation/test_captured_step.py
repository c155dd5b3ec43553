"""A step that is captured as a CUDA graph does what the step itself does; on a CPU the same tensors are filled."""

from __future__ import annotations

import pytest
import torch
from test_step_graph import SAMPLERS, SPEC, close, sampling, stepped

import bnnviz
from bnnviz.engine.compilation.captured_step import Capture, CapturedKernel
from bnnviz.engine.run.run import Run
from bnnviz.samplers import warmup

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


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
def test_a_density_that_cannot_be_captured_is_told_and_sampled_all_the_same() -> None:
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
