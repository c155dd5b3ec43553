"""Compile the step of a sampler: traced here, compiled in a process of its own, kept on disk.

A step is a pure function of a state and of random numbers (`Sampler.kernel`), so it can be written down
operation by operation as it is taken (`trace`), whatever module or density is in it. PyTorch's compiler
(Inductor, ahead of time) makes machine code of that, which does in one call what are hundreds of calls
otherwise, and passes over the numbers less often. The random numbers are drawn as before, in the same order.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bnnviz import cpp, paths
from bnnviz.engine.compilation.captured_step import Capture, CapturedKernel
from bnnviz.engine.compilation.compile_worker import NO_COMPILER
from bnnviz.engine.compilation.compiled_kernel import CompiledKernel
from bnnviz.engine.compilation.eager_step import eager_kernel
from bnnviz.engine.compilation.native_program import HEADER, SOURCE, NativeProgram, loaded
from bnnviz.engine.compilation.native_step import CompiledPartLoop, fits
from bnnviz.engine.compilation.stretch import NativeLoop
from bnnviz.engine.compilation.tracing import (
    READS_ON_HOST,
    TracedPart,
    TracedStep,
    moving_part,
    of_tensors,
    trace,
    trace_part,
)
from bnnviz.errors import BnnvizError
from bnnviz.messages import Message
from bnnviz.samplers import Sampler, warmup
from bnnviz.samplers.native import NativeStep
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.random import RandomNumbers, seeded
from bnnviz.samplers.tree import flat
from bnnviz.targets import Target

log = logging.getLogger(__name__)

_KEPT = 64  # compiled steps on disk
_AGREE, _SHARE = 1e-3, 0.99  # so close to the step that is not compiled must be so many of its numbers
# One process compiles at a time: it takes a core for some ten seconds.
_ONE = threading.Lock()
_STEPS = 20  # of which a step in C++ has to be the same
_ENDS_S = 5.0  # that a process which is killed may take


class Compilation:
    """A step that is being compiled in the background."""

    def __init__(self, sampler: Sampler, state: Any, threads: int) -> None:
        self.kernel: CompiledKernel | None = None
        self.error: str | None = None
        self._sampler, self._threads = sampler, threads
        self._cancelled = False
        self._child: subprocess.Popen | None = None
        self._thread = threading.Thread(target=self._work, args=(state,), daemon=True, name="bnnviz-compile")
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether there is a kernel, or an error."""
        return not self._thread.is_alive()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it is done, or for so many seconds."""
        self._thread.join(seconds)

    def cancel(self) -> None:
        """Give up as soon as may be, and end the process that compiles."""
        self._cancelled = True
        if self._child is not None:
            self._child.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(_ENDS_S)

    def _work(self, state: Any) -> None:
        try:
            traced = trace(self._sampler, state)
            native = self._sampler.native_step()
            self.kernel = self._in_cpp(native, traced, state) if fits(native, traced) else None
            self.kernel = self.kernel or self._whole(traced)
        except BnnvizError as error:
            self.error = error.sentence
        except Exception as error:  # whatever a compiler may raise, the run goes on without it
            log.debug("The step could not be compiled.", exc_info=True)
            first = str(error).strip().splitlines()
            self.error = (
                f"The step could not be compiled ({first[0] if first else type(error).__name__}); the run goes on"
                f" without it. {READS_ON_HOST}"
            )

    def _whole(self, traced: TracedStep) -> CompiledKernel:
        """Return the kernel of a step that is compiled as a whole."""
        code, program = self._code(traced, SOURCE)
        got = _compare(traced, code)
        if program is None or not _agrees(program, traced, got):
            return CompiledKernel(self._sampler, traced, code)
        return CompiledKernel(self._sampler, traced, code, partial(NativeLoop, program, traced))

    def _in_cpp(self, native: NativeStep, traced: TracedStep, state: Any) -> CompiledKernel | None:
        """Return the kernel of a step in C++ around a part that is compiled; None where it would take other steps."""
        sampler = of_tensors(self._sampler)
        part = trace_part(sampler, native, state)
        code, program = self._code(part, native.source)
        if program is None or not all(number.is_contiguous() for number in code(list(part.examples))):
            return None
        learnt = sampler.adaptation_inputs(state.adaptation)
        kernel = CompiledKernel(
            self._sampler, traced, None, partial(CompiledPartLoop, program, part, native, traced, learnt)
        )
        written_down = CompiledKernel(self._sampler, traced, lambda numbers: traced.program(*numbers))
        return kernel if _same_steps(written_down, kernel, state) else None

    def _code(self, traced: TracedStep | TracedPart, source: Path) -> tuple[Any, NativeProgram | None]:
        """Return a program, which is kept from before or made now, as a function and with a loop over steps."""
        path = paths.compiled() / f"{_key(traced, self._threads, source)}.pt2"
        if path.is_file():
            try:
                return _load(path)
            except RuntimeError as error:
                log.warning("The compiled step %s is made anew: it could not be read (%s).", path, error)
        self._make(traced, source, path)
        return _load(path)

    def _make(self, traced: TracedStep | TracedPart, source: Path, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _ONE, tempfile.TemporaryDirectory(prefix="bnnviz-", dir=path.parent) as work:
            self._compile(traced, source, Path(work)).replace(path)
        cpp.remove_oldest(path.parent, "*.pt2", _KEPT)

    def _compile(self, traced: TracedStep | TracedPart, source: Path, work: Path) -> Path:
        """Compile in another process, whose work does not hold this one's interpreter up; return the file made."""
        program, made = work / "program.pt", work / "step.pt2"
        torch.save((traced.program, traced.examples), program)
        command = [
            sys.executable,
            "-m",
            "bnnviz.engine.compilation.compile_worker",
            str(program),
            str(made),
            str(self._threads),
            str(source),
        ]
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(work / "inductor")}
        if self._cancelled:
            raise BnnvizError("Nobody waits for the compiled step any more.", "kernel")
        pipe = subprocess.PIPE
        # It ends when this process does: its standard input ends then.
        with subprocess.Popen(
            command, stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe, text=True, env=environment
        ) as self._child:
            if self._cancelled:  # meanwhile
                self._child.kill()
            said = self._child.stderr.read()
        if self._cancelled:
            raise BnnvizError("Nobody waits for the compiled step any more.", "kernel")
        if self._child.returncode == NO_COMPILER:
            raise BnnvizError(
                "The compiled kernel needs a C++ compiler, and none was found (g++ or clang++, or what CXX names);"
                ' install one, or choose kernel = "eager". The run goes on without it.',
                "kernel",
            )
        if self._child.returncode or not made.is_file():
            log.warning("The compiler failed:\n%s", said)
            raise BnnvizError(f"The step could not be compiled ({_why(self._child.returncode, said)}).", "kernel")
        return made


def _why(status: int, said: str) -> str:
    """Return why a compiler has ended, by its exit status and what it wrote."""
    if status < 0:
        return f"the compiler, or what it had made, ended by {signal.Signals(-status).name}"
    lines = said.strip().splitlines()
    return lines[-1] if lines else "no word of why"


class KernelSwitch:
    """Have a sampler's step compiled, and take it over between two blocks."""

    def __init__(self) -> None:
        self.compiled: CompiledKernel | CapturedKernel | None = None
        self.compiled_since: int | None = None
        self._compilation: Compilation | Capture | None = None
        self._sampler: Sampler | None = None
        self._eager: Callable[..., StepBatch] | None = None
        self._is_native = False

    def taker(self, sampler: Sampler, state: Any) -> Callable[..., StepBatch]:
        """Return what takes some steps of a sampler: as `bnnviz.samplers.warmup.take` does, or compiled."""
        if self.compiled is not None:
            return self.compiled.take
        if self._sampler is not sampler:
            kernel = eager_kernel(sampler, state)
            self._sampler, self._eager = sampler, partial(warmup.take, sampler) if kernel is None else kernel.take
            self._is_native = kernel is not None and kernel.is_native
        return self._eager

    def is_native(self, sampler: Sampler, state: Any) -> bool:
        """Return whether steps that are not compiled are C++ throughout, which no compiled step is faster than."""
        self.taker(sampler, state)
        return self._is_native

    @property
    def state(self) -> str:
        """What computes a step: "eager", "compiling" (eager still) or "compiled"."""
        if self.compiled is not None:
            return "compiled"
        return "compiling" if self._compilation is not None and not self._compilation.done else "eager"

    def begin(self, sampler: Sampler, state: Any, numbers: RandomNumbers, threads: int) -> None:
        """Begin to compile, unless that was begun before; on a GPU the step is captured at once."""
        if self._compilation is not None:
            return
        on_gpu = numbers.generator.device.type == "cuda"
        self._compilation = Capture(sampler, state, numbers) if on_gpu else Compilation(sampler, state, threads)

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it is compiled, or for so many seconds."""
        self._compilation.wait(seconds)

    @property
    def due(self) -> bool:
        """Whether there is a compiled step, or an error, that is yet to be taken over."""
        return self.compiled is None and self._compilation is not None and self._compilation.done

    def take_over(self, steps: int) -> tuple[bool, str | None]:
        """Take the compiled step over after so many steps; return whether that is a change, or why there is none."""
        self.compiled = self._compilation.kernel
        if self.compiled is None:
            self.compiled_since = None
            return False, self._compilation.error
        first = self.compiled_since is None
        if first:
            self.compiled_since = steps
        return first, None

    def give_up(self) -> None:
        """End a compilation that is under way."""
        if self._compilation is not None and not self._compilation.done:
            self._compilation.cancel()

    def drop(self) -> None:
        """Go on without the compiled step: it was made for other settings."""
        if self._compilation is not None:
            self._compilation.cancel()
        self.compiled = self._compilation = self.compiled_since = None


def remarks(sampler: Sampler, target: Target) -> list[Message]:
    """Return why steps of a sampler on a target are not compiled, though that was asked for."""
    if not sampler.compiles:
        return [Message("not_compiled", reason=f"each phase of {sampler.title} is another computation")]
    if not target.compiles:
        return [Message("not_compiled", reason=target.not_compiled)]
    return []


def _key(traced: TracedStep | TracedPart, threads: int, source: Path = SOURCE) -> str:
    """Return a name for what is compiled: the same program for the same processor has the same one."""
    shapes = [(str(example.dtype), tuple(example.shape), str(example.device)) for example in traced.examples]
    machine = platform.machine(), torch.backends.cpu.get_cpu_capability()
    loop = [path.read_text(encoding="utf-8") for path in (source, HEADER)]
    text = repr((traced.program.code, shapes, threads, torch.__version__, machine, loop))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _load(path: Path) -> tuple[Any, NativeProgram | None]:
    # What torch._inductor.aoti_load_package ends in; that one imports the whole compiler, which takes a second or two.
    loader = torch._C._aoti.AOTIModelPackageLoader(str(path), "model", False, 1, -1)
    path.touch()
    return loader.run, loaded(path)


def _compare(traced: TracedStep, code: Any) -> list[Tensor]:
    """Return what the compiled step makes of an example; raise unless that is what the step itself does."""
    expected, got = traced.program(*traced.examples), code(list(traced.examples))
    if not all(number.is_contiguous() for number in got):
        raise BnnvizError("The compiled step lays its numbers out otherwise than the step itself; it is not used.")
    alike = torch.cat([_alike(a, b) for a, b in zip(expected, got, strict=True)])
    if alike.double().mean() < _SHARE:
        raise BnnvizError(
            f"The compiled step gives other numbers than the step itself ({int((~alike).sum())} of {len(alike)}); it is"
            " not used.",
            "kernel",
        )
    return got


def _agrees(native: NativeProgram, traced: TracedStep, got: list[Tensor]) -> bool:
    """Return whether a loop over the steps of a program can take the place of calls that give such numbers."""
    others = {part.data_ptr() for part in traced.examples[traced.packing.vectors :] if part.numel()}
    if any(part.data_ptr() in others for part in got):
        # It returns a random number as it is, which the next step's would overwrite.
        return False
    try:
        again = native.call(traced.examples, got)
    except RuntimeError:
        return False
    return all(bool(_alike(a, b).all()) for a, b in zip(got, again, strict=True))


def _same_steps(expected: CompiledKernel, kernel: CompiledKernel, state: Any) -> bool:
    """Return whether a kernel takes the steps that are expected of it, each from the same state."""
    numbers, alike = seeded(0), []
    for _ in range(_STEPS):
        before = numbers.generator.get_state()
        one = expected.take(numbers, state, 1)
        numbers.generator.set_state(before)
        other = kernel.take(numbers, state, 1)
        told = flat((moving_part(one.after), one.infos[0])), flat((moving_part(other.after), other.infos[0]))
        alike += [_alike(a, b) for a, b in zip(*told, strict=True)]
        state = one.after
    return bool(torch.cat(alike).double().mean() >= _SHARE)


def _alike(a: Tensor, b: Tensor) -> Tensor:
    return torch.isclose(a.double(), b.double(), rtol=_AGREE, atol=_AGREE, equal_nan=True).flatten()
