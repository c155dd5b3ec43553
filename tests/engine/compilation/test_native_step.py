"""A step in C++ is the step of its sampler, whatever the target, the metric and the data type are."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import needs_compiler
from torch import Tensor

from bnnviz import cpp
from bnnviz.engine.compilation.compiled_kernel import CompiledKernel
from bnnviz.engine.compilation.native_program import HEADER, Interface, NativeSteps
from bnnviz.engine.compilation.native_step import CompiledPartLoop, fits
from bnnviz.engine.compilation.tracing import TracedPart, of_tensors, trace, trace_part
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError
from bnnviz.samplers.tree import flat
from bnnviz.specs.run import Spec
from tests.quick_cases import some_quick

_HANDLES = ctypes.POINTER(ctypes.c_void_p)
_RUN = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    _HANDLES,
    ctypes.c_size_t,
    _HANDLES,
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_void_p,
)
_SHARE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t))
_DROP = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_size_t)
TARGETS = {
    "gaussian": {"size": 12, "correlation": 0.5},
    "banana": {},
    "network": {"data": "toy_c", "hidden": "4"},
}

pytestmark = needs_compiler


class Evaluated:
    """A part of a step that is evaluated operation by operation, in the place of a compiled program."""

    def __init__(self, part: TracedPart, library: Path, fails_at: int = -1) -> None:
        self._part, self._tensors, self._calls, self._fails_at = part, {}, 0, fails_at
        self._take = ctypes.CDLL(str(library)).take_native
        self._take.restype = ctypes.c_int64
        self._take.argtypes = [ctypes.POINTER(NativeSteps), _HANDLES, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64]
        self._functions = _RUN(self._run), _SHARE(self._share), _SHARE(self._address), _DROP(self.drop)
        self._interface = Interface(*(ctypes.cast(function, ctypes.c_void_p) for function in self._functions))

    def handle(self, tensor: Tensor) -> int:
        number = len(self._tensors) + 1
        self._tensors[number] = tensor
        return number

    def drop(self, handle: int) -> int:
        return 0

    def steps(self, **parts: Any) -> NativeSteps:
        return NativeSteps(torch=self._interface, **parts)

    def take_native(self, steps: NativeSteps, inputs: Any, first: bool, row: int, count: int) -> int:
        taken = self._take(ctypes.byref(steps), inputs, first, row, count)
        if taken < 0:
            raise RuntimeError("The compiled step has failed.")
        return taken

    def _run(self, _: Any, inputs: Any, count: int, outputs: Any, made: int, *rest: Any) -> int:
        self._calls += 1
        if self._calls == self._fails_at:
            return 1
        found = self._part.program(*(self._tensors[inputs[at]] for at in range(count)))
        assert len(found) == made
        for at, tensor in enumerate(found):
            outputs[at] = self.handle(tensor.contiguous().clone())
        return 0

    def _share(self, handle: int, another: Any) -> int:
        another[0] = handle
        return 0

    def _address(self, handle: int, data: Any) -> int:
        data[0] = self._tensors[handle].data_ptr()
        return 0


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from bnnviz.samplers.mcmc.nuts import NUTS

    place, compiler = tmp_path_factory.mktemp("native"), os.environ.get("CXX", "g++")
    return cpp.compiled_library(NUTS().native_step().source, place, compiler, ["-I", str(HEADER.parent)])


def sampling(spec: Spec) -> Run:
    run = Run(spec.checked())
    run.prepare()
    while run.phase == "tuning":
        run.step_proposal()
    return run


def kernels(run: Run, library: Path, **options: Any) -> tuple[CompiledKernel, CompiledKernel]:
    """Return the kernels of the step that is written down, and of the one in C++."""
    traced = trace(run.sampler, run.state)
    sampler, native = of_tensors(run.sampler), run.sampler.native_step()
    assert fits(native, traced)
    part = trace_part(sampler, native, run.state)
    learnt = sampler.adaptation_inputs(run.state.adaptation)
    program = Evaluated(part, library, **options)
    return (
        CompiledKernel(run.sampler, traced, lambda numbers: traced.program(*numbers)),
        CompiledKernel(
            run.sampler,
            traced,
            None,
            lambda ends, nothing: CompiledPartLoop(program, part, native, traced, learnt, ends, nothing),
        ),
    )


def assert_same_steps(run: Run, library: Path, steps: int, tolerance: float) -> list[Any]:
    """Compare what both do, from the same states: rounding would lead them apart sooner or later."""
    expected, kernel = kernels(run, library)
    state, infos = run.state, []
    for _ in range(steps):
        before = run.rng.get_state()
        one = expected.take(run.numbers, state, 5)
        after = run.rng.get_state()
        run.rng.set_state(before)
        other = kernel.take(run.numbers, state, 5)
        assert torch.equal(after, run.rng.get_state())
        for a, b in zip(one.infos, other.infos, strict=True):
            close(flat(a), flat(b), tolerance)
        close(flat(one.after), flat(other.after), tolerance)
        for name in ("x", "fresh", "alive", "count"):
            assert torch.equal(one.history(name), other.history(name)) or name == "x"
            torch.testing.assert_close(one.history(name), other.history(name), rtol=tolerance, atol=tolerance)
        state = one.after
        infos += one.infos
    return infos


def close(one: list[Tensor], other: list[Tensor], tolerance: float) -> None:
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize(
    ("target", "metric", "dtype"),
    some_quick(
        (
            (target, *case)
            for target in TARGETS
            for case in (("diagonal", "float32"), ("low_rank", "float64"), ("dense", "float64"))
        ),
        3,
    ),
)
def test_a_step_in_cpp_is_the_step(target: str, metric: str, dtype: str, library: Path) -> None:
    settings = {"metric": metric, "max_depth": 4}
    spec = Spec(target, TARGETS[target], "nuts", settings, chains=3, draws=None, warmup=40, dtype=dtype, device="cpu")
    infos = assert_same_steps(sampling(spec), library, 24, 1e-9 if dtype == "float64" else 2e-3)
    ended = torch.stack([info.ended for info in infos])
    depths = torch.stack([info.n_steps for info in infos])[ended]
    assert ended.any() and not ended.all()
    # The small trees of the network all double as often as they may.
    assert len(set(depths.tolist())) > 1 or target == "network"


def test_steps_that_diverge_end_a_tree(library: Path) -> None:
    settings = {"step_size": 3.0, "metric": "unit", "max_depth": 4}
    spec = Spec("banana", {}, "nuts", settings, chains=4, draws=None, warmup=0, dtype="float64", device="cpu")
    infos = assert_same_steps(sampling(spec), library, 24, 1e-9)
    assert sum(float(info.diverging.sum()) for info in infos) > 0


def test_a_chain_whose_potential_is_not_finite_is_left_behind(library: Path) -> None:
    spec = Spec("banana", {}, "nuts", {"max_depth": 4}, chains=3, draws=None, warmup=20, dtype="float64", device="cpu")
    run = sampling(spec)
    expected, kernel = kernels(run, library)
    state = run.sampler.resume(run.numbers, run.state)
    lost = state.proposal.potential.clone()
    lost[1] = torch.nan
    state = state._replace(proposal=state.proposal._replace(potential=lost))
    told = []
    for each in (expected, kernel):
        run.rng.manual_seed(5)
        step_batch = each.take(run.numbers, state, 30)
        told.append(step_batch)
        assert step_batch.after.alive.tolist() == [True, False, True]
        assert step_batch.infos[0].failed.tolist() == [False, True, False]
    for a, b in zip(told[0].infos, told[1].infos, strict=True):
        close([part[[0, 2]] for part in flat(a)], [part[[0, 2]] for part in flat(b)], 1e-9)


def test_a_program_that_fails_is_an_error(library: Path) -> None:
    spec = Spec("banana", {}, "nuts", {"max_depth": 4}, chains=3, draws=None, warmup=20, dtype="float64", device="cpu")
    run = sampling(spec)
    _, kernel = kernels(run, library, fails_at=3)
    with pytest.raises((RuntimeError, BnnvizError), match="has failed"):
        kernel.take(run.numbers, run.state, 10)


def test_what_cpp_cannot_take_is_compiled_as_a_whole() -> None:
    run = sampling(Spec("banana", {}, "hmc", {}, chains=3, draws=None, warmup=20, device="cpu"))
    assert not fits(run.sampler.native_step(), trace(run.sampler, run.state))
