"""Compiled steps: the same draws, whatever was compiled when, and a run that goes on where nothing can be."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from conftest import needs_compiler
from families import DISCRETE, PDMPS, QUICK, STOCHASTIC, TRAINED, fitting, target_of

import bnnviz
from bnnviz import diagnostics, paths
from bnnviz.engine.compilation import compiled_step, eager_step
from bnnviz.engine.compilation.native_program import loaded
from bnnviz.engine.compilation.native_step import CompiledPartLoop
from bnnviz.engine.compilation.stretch import NativeLoop
from bnnviz.engine.run import run as run_module
from bnnviz.engine.run.run import Run
from bnnviz.samplers import warmup
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.pdmp.thinning import BOUNCE, REFRESH
from bnnviz.samplers.random import Draw, seeded
from bnnviz.samplers.tree import flat
from bnnviz.specs.run import Spec

TARGETS = {
    "gaussian": {"size": 3, "correlation": 0.5},
    "banana": {},
    "network": {"data": "toy_c", "hidden": "4"},
}
BANANA = Spec("banana", {}, "bps", {}, chains=4, draws=60, warmup=20, dtype="float64", device="cpu")


@pytest.fixture(scope="module", autouse=True)
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep compiled steps in a folder of this module's own."""
    base = tmp_path_factory.getbasetemp()
    # Tests that run side by side share it: compiling takes long.
    home = base.parent / "torch" if "PYTEST_XDIST_WORKER" in os.environ else base / "torch"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_HOME", str(home))
        yield paths.compiled()


def sampling(spec: Spec) -> Run:
    """Return a run whose tuning has just ended."""
    run = Run(spec.checked())
    run.prepare()
    while run.phase == "tuning":
        run.step_proposal()
    return run


def equal(one: object, other: object) -> bool:
    pairs = zip(flat(one), flat(other), strict=True)
    return all(torch.equal(a.nan_to_num(7, 8, 9), b.nan_to_num(7, 8, 9)) for a, b in pairs)


def bounds(target: str) -> list[str]:
    return ["grid", "interpolated", *(["exact"] if target == "gaussian" else [])]


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sampler", PDMPS)
def test_what_is_written_down_is_the_step(sampler: str, target: str) -> None:
    for bound in bounds(target):
        assert_same_steps(
            Spec(target, TARGETS[target], sampler, {"bound": bound, "refresh_rate": 0.7}, chains=4, draws=None)
        )


@pytest.mark.slow
@pytest.mark.parametrize("sampler", DISCRETE)
def test_a_move_is_written_down_too(sampler: str) -> None:
    settings = {"batch_size": 5, "control_variates": True, "decay": 0.5}
    if sampler not in STOCHASTIC:
        settings = fitting(sampler, batch_size=5) | QUICK[sampler]
    assert_same_steps(Spec(*target_of(sampler), sampler, settings, chains=3, draws=None), events=False)


@pytest.mark.parametrize("sampler", ["hmc", "nuts"])
@pytest.mark.parametrize("metric", ["diagonal", "low_rank", "dense"])
def test_one_program_takes_the_warm_up_too(sampler: str, metric: str) -> None:
    settings = {"metric": metric, **({"num_leapfrog_steps": 4} if sampler == "hmc" else {"max_depth": 3})}
    spec = Spec("gaussian", {"size": 3, "correlation": 0.8}, sampler, settings, chains=3, draws=50, warmup=60)
    run = Run(spec.replace(device="cpu").checked())
    run.prepare()
    traced = compiled_step.trace(run.sampler, run.state)
    kernel = compiled_step.CompiledKernel(run.sampler, traced, lambda numbers: traced.program(*numbers))
    start, numbers, states = run.state, run.rng.get_state(), []
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
    assert equal(states[0], state), "in blocks it learns something else"
    assert state.adaptation.step_size == states[0].adaptation.step_size


@pytest.mark.parametrize("sampler", TRAINED)
def test_a_step_of_the_training_is_written_down_too(sampler: str) -> None:
    spec = Spec("network", TARGETS["network"], sampler, QUICK[sampler] | {"batch_size": 50}, chains=3, draws=None)
    run = Run(spec.replace(device="cpu").checked())
    run.prepare()
    assert_same(run, 60)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 5},
        {"batch_size": 5, "batch": "event"},
        {"batch_size": 5, "control_variates": True},
        {"turn": "generalised"},
        {"bound": "interpolated", "clip_points": True, "alpha": 1.5},
    ],
    ids=str,
)
def test_so_it_is_with_every_setting(settings: dict) -> None:
    assert_same_steps(Spec("logistic_regression", {}, "sigma_bps", settings, chains=3, draws=None))


def assert_same_steps(spec: Spec, steps: int = 60, events: bool = True) -> None:
    states = assert_same(sampling(spec.replace(device="cpu")), steps)
    if not events:
        return
    kinds = torch.stack([info.kind for _, info in states])
    assert ((kinds == BOUNCE) | (kinds == REFRESH)).any(), "nothing happened in these steps"


def assert_same(run: Run, steps: int) -> list:
    traced = compiled_step.trace(run.sampler, run.state)
    compiled = compiled_step.CompiledKernel(run.sampler, traced, lambda numbers: traced.program(*numbers))
    start, numbers = run.state, run.rng.get_state()
    states = {}
    for name, step in (("eager", run.sampler.step), ("compiled", compiled.step)):
        run.rng.set_state(numbers)
        state, states[name] = start, []
        for _ in range(steps):
            state, info = step(run.numbers, state)
            states[name].append((state, info))
    for eager, other in zip(states["eager"], states["compiled"], strict=True):
        assert equal(eager, other)
    run.rng.set_state(numbers)
    assert_same_block(run, compiled.take(run.numbers, start, steps), start, states["eager"])
    return states["eager"]


def assert_same_block(run: Run, block: StepBatch, start: Any, steps: list) -> None:
    """Compare what is seen of a block of compiled steps with the states and infos of steps one by one."""
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


@pytest.mark.slow
@needs_compiler
@pytest.mark.timeout(400)  # a busy machine compiles for minutes
def test_draws_are_those_of_the_spec_and_the_log(kept: Path) -> None:
    eager, first, second = (finished(BANANA.replace(kernel=name)) for name in ("eager", "compiled", "compiled"))
    assert first.kernel == "compiled"
    assert eager.kernel == "eager"
    assert first.changes == [(first.compiled_since, {"kernel": "compiled"})]
    assert np.array_equal(first.draws, second.draws)
    assert list(kept.glob("*.pt2"))
    # The same draws but for rounding, which on a banana takes long to matter.
    assert np.allclose(eager.draws[:, :10], first.draws[:, :10], atol=1e-6)


def finished(spec: Spec) -> Run:
    run = Run(spec.checked())
    while not run.finished:
        run.advance(0.2)
    assert run.phase == "done"
    assert not run.notes
    return run


@needs_compiler
@pytest.mark.slow
@pytest.mark.timeout(400)  # a busy machine compiles for minutes
def test_play_goes_on_while_it_compiles_and_the_log_repeats_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    live = Run(BANANA.replace(kernel="compiled", draws=None).checked())
    live.wait_for_compile = False
    end = time.monotonic() + 300
    while live.kernel != "compiled" and time.monotonic() < end:
        live.advance(0.01)
        time.sleep(0.1)
    assert live.compiled_since > 200, "it waited for the compiler"
    live.advance(0.05)
    again = Run(live.spec.replace(kernel="eager"))
    again.prepare()
    for step, change in live.changes:
        advance_to(again, step)
        again.change(change)
    advance_to(again, live.steps)
    assert again.changes == live.changes
    assert equal(again.state, live.state)


class ByHand:
    """A compilation that is done when it is told to be, of the traced program itself."""

    def __init__(self, sampler: Any, state: Any, threads: int) -> None:
        traced = compiled_step.trace(sampler, state)
        self.kernel = compiled_step.CompiledKernel(sampler, traced, lambda numbers: traced.program(*numbers))
        self.done, self.error = False, None

    def wait(self, seconds: float | None = None) -> None:
        raise AssertionError("it waited")


def test_a_long_run_takes_a_kernel_over_that_was_compiled_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_step, "Compilation", ByHand)
    spec = BANANA.replace(kernel="auto", sampler="nuts", settings={"max_depth": 4})
    eager = finished(spec.replace(kernel="eager"))
    run = Run(spec.checked())
    run.prepare()
    run.step_proposal()
    assert run.kernel == "eager", "a short run is not worth compiling"
    monkeypatch.setattr(run_module, "_SHORT_S", 0.0)
    monkeypatch.setattr(run_module, "_COMPILE_S", 0.0)
    while run.kernel == "eager":
        run.step_proposal()
    assert run.kernel == "compiling" and not run.finished
    run._switch._compilation.done = True
    while not run.finished:
        run.advance(0.1)
    assert run.changes == [(run.compiled_since, {"kernel": "compiled"})]
    assert np.array_equal(run.draws, eager.draws)


def advance_to(run: Run, step: int) -> None:
    while run.steps < step:
        run._block(min(run._block_length(1.0), step - run.steps))


@needs_compiler
@pytest.mark.slow
def test_a_checkpoint_goes_on_with_the_same_draws() -> None:
    whole = finished(BANANA.replace(kernel="compiled"))
    run = Run(BANANA.replace(kernel="compiled").checked())
    while run.store.made.min() < 40:
        run.advance(0.001)
    assert not run.finished
    restored = Run.restore(run.checkpoint())
    restored.wait_for_compile = False
    while not restored.finished:
        restored.advance(0.2)
    assert restored.compiled_since == whole.compiled_since
    assert np.array_equal(restored.draws, whole.draws)


@needs_compiler
@pytest.mark.slow
@pytest.mark.timeout(400)  # a busy machine compiles for minutes
@pytest.mark.parametrize("sampler", ["nuts", "hmc"])
def test_a_loop_over_steps_gives_the_draws_of_calls(sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"max_depth": 4} if sampler == "nuts" else {"num_leapfrog_steps": 4}
    spec = BANANA.replace(sampler=sampler, settings=settings, kernel="compiled", draws=300)
    monkeypatch.setattr(compiled_step, "fits", lambda native, traced: False)
    looped = finished(spec)
    monkeypatch.setattr(compiled_step, "loaded", lambda path: None)
    called = finished(spec)
    assert looped._switch.compiled._loop is not None
    assert called._switch.compiled._loop is None
    assert np.array_equal(looped.draws, called.draws)


@needs_compiler
@pytest.mark.slow
@pytest.mark.timeout(400)  # a busy machine compiles for minutes
@pytest.mark.parametrize("metric", ["unit", "dense"])
def test_steps_in_cpp_give_the_draws_of_the_sampler(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager_step, "library_of", lambda source: None)  # the eager run takes the Python step
    settings = {"metric": metric, "step_size": 0.2, "max_depth": 6}
    spec = Spec("gaussian", {"size": 20, "correlation": 0.5}, "nuts", settings, chains=4, draws=100, warmup=0)
    spec = spec.replace(dtype="float64", device="cpu")
    eager, in_cpp = (finished(spec.replace(kernel=kernel)) for kernel in ("eager", "compiled"))
    assert isinstance(in_cpp._switch.compiled._loop, CompiledPartLoop)
    np.testing.assert_allclose(in_cpp.draws, eager.draws, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("laws", [["uniform"], ["uniform", "uniform"], ["normal", "uniform"]], ids=str)
def test_numbers_of_many_steps_are_those_of_each_in_turn(laws: list[str]) -> None:
    draws = [Draw(law, (3, 2 + number), torch.float64) for number, law in enumerate(laws)]
    loop = NativeLoop.__new__(NativeLoop)
    loop.trace, loop.together = SimpleNamespace(draws=draws), set(laws) == {"uniform"}
    many, each = seeded(3), seeded(3)
    found = loop.drawn(many, 40)
    for step in range(40):
        for column, draw in zip(found, draws, strict=True):
            assert torch.equal(column[step].view(draw.shape), each.make(draw))
    assert torch.equal(many.generator.get_state(), each.generator.get_state())


def test_a_package_without_a_loop_is_called_step_by_step(tmp_path: Path) -> None:
    package = tmp_path / "step.pt2"
    package.write_bytes(b"no archive")
    assert loaded(package) is None
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("step/data/program.so", b"no program")
    assert loaded(package) is None


@needs_compiler
@pytest.mark.slow
def test_a_change_of_settings_takes_the_kernel_back() -> None:
    run = Run(BANANA.replace(kernel="compiled", draws=None).checked())
    run.wait_for_compile = True
    while run.kernel != "compiled":
        run.advance(0.05)
    run.wait_for_compile = False
    run.change({"refresh_rate": 0.5})
    assert run.kernel == "eager"
    run.advance(0.05)
    assert run.kernel == "compiling"
    run.change({"kernel": "eager"})
    steps = run.steps
    run.advance(0.05)
    assert run.kernel == "eager"
    assert run.steps > steps
    assert [change for _, change in run.changes] == [{"kernel": "compiled"}, {"refresh_rate": 0.5}, {"kernel": "eager"}]


@needs_compiler
@pytest.mark.slow
def test_a_damaged_file_is_made_anew(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = finished(BANANA.replace(kernel="compiled")).draws
    shutil.copytree(kept, tmp_path / kept.name)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    kept = paths.compiled()
    for path in kept.glob("*.pt2"):
        path.write_bytes(b"no archive")
    again = finished(BANANA.replace(kernel="compiled"))
    assert again.kernel == "compiled"
    assert np.array_equal(again.draws, expected)


def test_other_numbers_are_refused() -> None:
    run = sampling(BANANA.replace(draws=None))
    traced = compiled_step.trace(run.sampler, run.state)
    compiled_step._compare(traced, lambda numbers: traced.program(*numbers))
    with pytest.raises(compiled_step.BnnvizError, match="other numbers"):
        compiled_step._compare(traced, lambda numbers: [number + 1 for number in traced.program(*numbers)])


@pytest.mark.slow
def test_a_density_that_reads_on_the_host_is_told_in_one_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    def potential(x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x.square().sum(-1) * (1.0 if float(x.detach().abs().sum()) < 1e9 else 2.0)

    given = {"dim": 2, "chains": 2, "draws": 30, "warmup": 20, "seed": 1}
    run, plain = (bnnviz.sample(potential, "hmc", kernel=kernel, **given) for kernel in ("compiled", "eager"))
    assert np.array_equal(run.draws, plain.draws)
    (note,) = run.summary()["notes"]
    assert note.code == "not_compiled" and "is the usual cause" in str(note)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.slow
def test_without_a_compiler_it_says_so_and_goes_on(tmp_path: Path) -> None:
    environment = os.environ | {"CXX": "no-such-compiler", "TORCH_HOME": str(tmp_path)}
    options = ["--target", "banana", "--draws", "20", "--kernel", "compiled"]
    done = subprocess.run(
        [sys.executable, "-m", "bnnviz.cli", "sample", *options],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "needs a C++ compiler" in done.stderr
    assert not list(tmp_path.rglob("*.pt2"))


@needs_compiler
@pytest.mark.slow
def test_compiled_draws_agree_with_the_truth() -> None:
    run = finished(BANANA.replace(target="gaussian", target_settings={"size": 3}, chains=256, kernel="compiled"))
    moments = run.draws.mean(1), (run.draws**2).mean(1)
    truth = run.target.mean(), np.diag(run.target.cov()) + run.target.mean() ** 2
    for found, known in zip(moments, truth, strict=True):
        z = (found.mean(0) - known) / (found.std(0, ddof=1) / len(found) ** 0.5)
        assert np.abs(z).max() < 4.5
    assert diagnostics.ess(run.draws[..., 0]) > 1000
