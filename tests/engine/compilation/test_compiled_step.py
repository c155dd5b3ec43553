"""Compiled steps: the draws of the spec and the change log, and a run that continues where nothing can be compiled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import needs_compiler
from traced_loop import begun, finished

from bnnviz import paths
from bnnviz.engine.compilation import compiled_step
from bnnviz.engine.compilation.native_step import NativeLoop, ProgramPartLoop
from bnnviz.engine.run.run import Run
from bnnviz.samplers.tree import flat
from bnnviz.specs.run import Spec

BANANA = Spec("banana", {}, "bps", {}, chains=4, draws=60, warmup=20, dtype="float64", device="cpu")

compiles = [needs_compiler, pytest.mark.timeout(400)]  # a busy machine compiles for minutes


@pytest.fixture(scope="module", autouse=True)
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep compiled steps in a folder of this module's own."""
    base = tmp_path_factory.getbasetemp()
    # Tests that run side by side share it: compiling takes long.
    home = base.parent / "torch" if "PYTEST_XDIST_WORKER" in os.environ else base / "torch"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_HOME", str(home))
        yield paths.compiled()


class TestCompiled:
    """With the compiler."""

    pytestmark = compiles

    @pytest.mark.slow
    def test_draws_are_those_of_the_spec_and_the_log(self, kept: Path) -> None:
        eager, first = (finished(BANANA.replace(kernel=name)) for name in ("eager", "compiled"))
        assert (eager.kernel, first.kernel) == ("eager", "compiled")
        assert first.changes == [(first.compiled_since, {"kernel": "compiled"})]
        # The same draws but for rounding, which on a banana takes long to matter.
        assert np.allclose(eager.draws[:, :10], first.draws[:, :10], atol=1e-6)
        (made,) = kept.glob("*.step")
        number = made.stat().st_ino
        assert np.array_equal(first.draws, finished(BANANA.replace(kernel="compiled")).draws)
        assert made.stat().st_ino == number, "it was compiled twice"

    @pytest.mark.slow
    def test_a_checkpoint_continues_with_the_same_draws(self) -> None:
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

    @pytest.mark.slow
    def test_play_continues_while_it_compiles_and_the_log_repeats_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TORCH_HOME", str(tmp_path))
        live = Run(BANANA.replace(kernel="compiled", draws=None).checked())
        live.wait_for_compile = False
        end = time.monotonic() + 300
        while live.kernel != "compiled" and time.monotonic() < end:
            live.advance(0.01)
            time.sleep(0.1)
        assert live.compiled_since > 200
        live.advance(0.05)
        again = begun(live.spec.replace(kernel="eager"))
        for step, change in live.changes:
            advance_to(again, step)
            again.change(change)
        advance_to(again, live.steps)
        assert again.changes == live.changes
        assert all(torch.equal(a, b) for a, b in zip(flat(again.state), flat(live.state), strict=True))

    @pytest.mark.slow
    @pytest.mark.parametrize("metric", ["unit", "dense"])
    def test_steps_in_cpp_around_a_program_give_the_draws_of_the_sampler(
        self, metric: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = {"metric": metric, "step_size": 0.2, "max_treedepth": 6}
        spec = Spec("gaussian", {"size": 20, "correlation": 0.5}, "nuts", settings, chains=4, draws=100, warmup=0)
        spec = spec.replace(dtype="float64", device="cpu")
        in_cpp = finished(spec.replace(kernel="compiled"))
        assert isinstance(in_cpp._switch.compiled._loop, ProgramPartLoop)
        monkeypatch.setattr(compiled_step, "eager_kernel", lambda *args: None)  # the eager run takes the Python step
        np.testing.assert_allclose(in_cpp.draws, finished(spec).draws, rtol=1e-9, atol=1e-9)

    @pytest.mark.slow
    def test_a_change_of_settings_takes_the_kernel_back(self) -> None:
        run = Run(BANANA.replace(kernel="compiled", draws=None).checked())
        run.wait_for_compile = True
        while run.kernel != "compiled":
            run.advance(0.05)
        run.wait_for_compile = False
        run.change({"refresh_rate": 0.5})
        assert run.kernel == "eager"
        run.advance(0.05)
        run.change({"kernel": "eager"})
        steps = run.steps
        run.advance(0.05)
        assert run.kernel == "eager"
        assert run.steps > steps
        changes = [change for _, change in run.changes]
        assert changes[0] == {"kernel": "compiled"} and changes[-1] == {"kernel": "eager"}

    @pytest.mark.slow
    def test_a_damaged_file_is_made_anew(self, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        expected = finished(BANANA.replace(kernel="compiled")).draws
        shutil.copytree(kept, tmp_path / kept.name)
        monkeypatch.setenv("TORCH_HOME", str(tmp_path))
        for path in paths.compiled().glob("*.step"):
            path.write_bytes(b"no library")
        again = finished(BANANA.replace(kernel="compiled"))
        assert again.kernel == "compiled"
        assert np.array_equal(again.draws, expected)


def advance_to(run: Run, step: int) -> None:
    while run.steps < step:
        run._block(min(run._block_length(1.0), step - run.steps))


@needs_compiler
def test_steps_in_cpp_throughout_are_not_compiled_again() -> None:
    spec = Spec("network", {"data": "toy_c", "hidden": "4"}, "nuts", {"metric": "diagonal", "max_treedepth": 4})
    eager, compiled = (
        finished(spec.replace(kernel=name, chains=2, draws=10, warmup=20, device="cpu"))
        for name in ("eager", "compiled")
    )
    assert type(compiled._switch.compiled._loop) is NativeLoop
    assert np.array_equal(eager.draws, compiled.draws)


@pytest.mark.slow
def test_without_a_compiler_a_run_continues_with_a_note(tmp_path: Path) -> None:
    environment = os.environ | {"CXX": "no-such-compiler", "TORCH_HOME": str(tmp_path)}
    options = ["--target", "banana", "--draws", "20", "--kernel", "compiled"]
    done = subprocess.run(
        [sys.executable, "-m", "bnnviz", "sample", *options],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "C++ compiler" in done.stderr
    assert not list(tmp_path.rglob("*.step"))
