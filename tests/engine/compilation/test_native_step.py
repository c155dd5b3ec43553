"""Steps in C++ are the steps of their sampler, and raise what the density raises."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import needs_compiler
from families import some_quick
from traced_loop import begun

from bnnviz import cpp
from bnnviz.engine.compilation.native_step import eager_kernel
from bnnviz.engine.compilation.step_loop import CompiledKernel
from bnnviz.engine.run.run import Run
from bnnviz.samplers import warmup
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.tree import flat
from bnnviz.specs.run import Spec
from bnnviz.targets import Callable as OwnDensity

TARGETS = {
    "gaussian": {"size": 12, "correlation": 0.5},
    "banana": {},
    "network": {"data": "toy_c", "hidden": "4"},
}
BLOCK = 5  # steps


def spec_of(target: str, **more: Any) -> Spec:
    return Spec(target, TARGETS.get(target, {}), "nuts", **{"chains": 3, "draws": None, "device": "cpu"} | more)


def numbers(value: Any) -> torch.Tensor:
    return torch.cat([part.double().flatten() for part in flat(value)])


def compared(run: Run, kernel: CompiledKernel, learns: bool, tolerance: float) -> StepBatch:
    """Take a block both ways from the state of a run, and continue from the Python step's."""
    before = run.rng.get_state()
    expected = warmup.take(run.sampler, run.numbers, run.state, BLOCK, learns=learns)
    after = run.rng.get_state()
    run.rng.set_state(before)
    got = kernel.take(run.numbers, run.state, BLOCK, learns=learns)
    assert torch.equal(after, run.rng.get_state())
    one, other = (numbers((step_batch.after, list(step_batch.infos))) for step_batch in (expected, got))
    torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
    run.state = expected.after
    return expected


@needs_compiler
@pytest.mark.parametrize(
    ("target", "metric", "dtype", "start"),
    some_quick(
        [
            ("gaussian", "low_rank", "float64", "random"),
            ("banana", "dense", "float64", "random"),
            ("network", "diagonal", "float64", "random"),
            # Not from random points: U is 400,000 there, of which the last digit of single precision is .03.
            ("network", "diagonal", "float32", "mode"),
        ],
        2,
    ),
)
def test_steps_in_cpp_are_the_steps_in_the_warm_up_and_after_it(
    target: str, metric: str, dtype: str, start: str
) -> None:
    settings = {"metric": metric, "max_treedepth": 3, "start": start}
    run = begun(spec_of(target, settings=settings, warmup=12, dtype=dtype))
    kernel = eager_kernel(run.sampler, run.state)
    assert kernel.is_native is (target == "network")
    tolerance, sizes = 1e-9 if dtype == "float64" else 2e-3, set()
    while not run.sampler.is_tuned(run.state):
        compared(run, kernel, True, tolerance)
        sizes.add(run.state.adaptation.step_size)
    assert len(sizes) > 3
    ended = [compared(run, kernel, False, tolerance).column("ended") for _ in range(6)]
    assert torch.cat(ended).any() and not torch.cat(ended).all()


@needs_compiler
def test_steps_that_diverge_are_those_too() -> None:
    run = begun(
        spec_of("banana", settings={"step_size": 3.0, "metric": "unit", "max_treedepth": 4}, warmup=0, dtype="float64")
    )
    run.state = run.state._replace(adaptation=run.state.adaptation._replace(stage=None))
    kernel = eager_kernel(run.sampler, run.state)
    assert sum(float(compared(run, kernel, False, 1e-9).column("diverging").sum()) for _ in range(5)) > 0


@needs_compiler
def test_a_chain_whose_potential_is_not_finite_is_left_behind() -> None:
    run = begun(spec_of("banana", settings={"max_treedepth": 4}, warmup=0, dtype="float64"))
    kernel, state = eager_kernel(run.sampler, run.state), run.sampler.resume(run.numbers, run.state)
    lost = state.proposal.potential.clone()
    lost[1] = torch.nan
    state = state._replace(proposal=state.proposal._replace(potential=lost))
    batches = []
    for take in (kernel.take, lambda *args: warmup.take(run.sampler, *args)):
        run.rng.manual_seed(5)
        batches.append(take(run.numbers, state, 30))
        assert batches[-1].after.alive.tolist() == [True, False, True]
        assert batches[-1].infos[0].failed.tolist() == [False, True, False]
    for a, b in zip(batches[0].infos, batches[1].infos, strict=True):
        for one, other in zip(flat(a), flat(b), strict=True):
            torch.testing.assert_close(one[[0, 2]], other[[0, 2]], rtol=1e-9, atol=1e-9)


@pytest.fixture
def no_library_yet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Have no C++ compiled, in this process or on disk."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    cpp._library.cache_clear()
    yield
    cpp._library.cache_clear()


@pytest.mark.usefixtures("no_library_yet")
@pytest.mark.parametrize("compiler", ["", "false"])
def test_without_a_compiler_the_python_step_goes_on(
    compiler: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path)) if not compiler else None
    monkeypatch.setenv("CXX", compiler)
    run = begun(spec_of("gaussian", warmup=20))
    assert eager_kernel(run.sampler, run.state) is None
    before = run.rng.get_state()
    run.take(8, 1e9)
    again = begun(spec_of("gaussian", warmup=20))
    again.rng.set_state(before)
    expected = warmup.take(again.sampler, again.numbers, again.state, run.steps, learns=True)
    assert torch.equal(numbers(expected.after), numbers(run.state))
    assert not any("compiler" in str(note) for note in run.notes)


class Failing:
    """A density that raises an error from one call on."""

    def __init__(self, error: BaseException) -> None:
        self.error, self.calls, self.fails_at = error, 0, math.inf

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls >= self.fails_at:
            raise self.error
        return x.square().sum(-1) / 2


@needs_compiler
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("of the caller's")])
def test_what_a_density_raises_is_raised_and_the_run_is_where_it_was(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = []
    for native in (True, False):
        if not native:
            monkeypatch.setattr("bnnviz.engine.compilation.compiled_step.eager_kernel", lambda *args: None)
        density = Failing(error)
        run = begun(spec_of("Your function", warmup=20, dtype="float64"), target=OwnDensity(density, 2))
        run.take(3, 1e9)
        steps, state = run.steps, run.state
        density.fails_at = density.calls + 4
        with pytest.raises(type(error)) as raised:
            run.take(10, 1e9)
        assert raised.value is error
        density.fails_at = math.inf
        assert run.steps == steps and run.state is state
        left.append(run.rng.get_state())
        run.take(10, 1e9)
        assert run.steps > steps
        left.append(run.state.x)
    assert torch.equal(left[0], left[2])
    torch.testing.assert_close(left[1], left[3], rtol=1e-9, atol=1e-9)


@needs_compiler
@pytest.mark.parametrize(
    "density",
    [
        lambda x: x.sum(-1),  # whose gradient is one number, expanded
        lambda x: (x.T.contiguous().T ** 2).sum(-1) / 2,  # in another order
    ],
)
def test_what_a_density_returns_may_have_any_layout(density: Callable[[torch.Tensor], torch.Tensor]) -> None:
    run = begun(spec_of("Your function", settings={"max_treedepth": 4}, warmup=10), target=OwnDensity(density, 3))
    kernel = eager_kernel(run.sampler, run.state)
    for _ in range(3):
        compared(run, kernel, not run.sampler.is_tuned(run.state), 2e-3)


@needs_compiler
def test_new_rows_are_read_by_the_next_steps() -> None:
    run = begun(spec_of("network", settings={"metric": "diagonal"}, warmup=20, draws=20, dtype="float64"))
    kernel = eager_kernel(run.sampler, run.state)
    compared(run, kernel, True, 1e-9)
    rows = run.target.all_rows()
    run.target.x, run.target.y = rows.x[:3] + 1, rows.y[:3] - 1
    run.state = run.sampler.resume(run.numbers, run.state)
    compared(run, kernel, True, 1e-9)
