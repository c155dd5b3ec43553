"""Compile the step of a sampler in the background, keep it on disk, and switch a run to it.

A step is a pure function of a state and of random numbers (`Sampler.kernel`), so it can be traced. On a CPU PyTorch's
compiler (Inductor, ahead of time) makes a library of the whole step, or of the part of it that evaluates the target
where the sampler has the rest in C++; on a GPU the step is captured as a CUDA graph. Random numbers are drawn in the
same order as without compilation.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import platform
import shutil
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

from bnnviz import cpp, paths
from bnnviz.engine.compilation.captured_step import Capture, CapturedKernel
from bnnviz.engine.compilation.native_step import ProgramPartLoop, eager_kernel, native_form
from bnnviz.engine.compilation.step_loop import CompiledKernel, ProgramLoop
from bnnviz.engine.compilation.torch_internals import Program
from bnnviz.engine.compilation.tracing import (
    READS_ON_HOST,
    TracedProgram,
    form_of,
    moving_part,
    of_tensors,
    trace,
    trace_part,
)
from bnnviz.errors import BnnvizError
from bnnviz.messages import Message
from bnnviz.samplers import Sampler, warmup
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.random import RandomNumbers, seeded
from bnnviz.samplers.tree import flat
from bnnviz.targets import Target

log = logging.getLogger(__name__)

_KEPT = 64  # libraries on disk
_STEPS = 20  # compared with those of the sampler
_AGREE, _SHARE = 1e-3, 0.99  # tolerance, and the fraction of the numbers that must be within it
# One process compiles at a time: it takes a core for some ten seconds.
_ONE = threading.Lock()
_ENDS_S = 5.0  # maximum time for a killed process to end


class Compilation:
    """A background compilation of a step."""

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
        """Wait until it is done, or for ``seconds``."""
        self._thread.join(seconds)

    def cancel(self) -> None:
        """Cancel as soon as possible, and end the compiling process."""
        self._cancelled = True
        if self._child is not None:
            self._child.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(_ENDS_S)

    def _work(self, state: Any) -> None:
        try:
            self.kernel = self._compiled(state)
        except BnnvizError as error:
            self.error = error.sentence
        except Exception as error:  # the run continues without a kernel after any error of a compiler
            log.debug("The step could not be compiled.", exc_info=True)
            first = str(error).strip().splitlines()
            self.error = (
                f"The step could not be compiled ({first[0] if first else type(error).__name__}); the run continues"
                f" without it. {READS_ON_HOST}"
            )

    def _compiled(self, state: Any) -> CompiledKernel:
        native = eager_kernel(self._sampler, state)
        if native is not None and native.is_native:
            return native
        sampler = of_tensors(self._sampler)
        form = native_form(sampler, state)
        if form is None:
            form = form_of(sampler, state)
            step = trace(sampler, state, form)
            loop = ProgramLoop(form, self._program(step), step)
        else:
            in_cpp, learned = sampler.native_step(), sampler.adaptation_inputs(state.adaptation)
            part = trace_part(sampler, in_cpp, state)
            loop = ProgramPartLoop(form, sampler, in_cpp, learned, self._program(part), part)
        kernel = CompiledKernel(self._sampler, loop)
        _compare(self._sampler, kernel, state)
        return kernel

    def _program(self, traced: TracedProgram) -> Program:
        """Return the compiled program, from disk or newly compiled."""
        path = paths.compiled() / f"{_key(traced, self._threads)}.step"
        if path.is_file():
            try:
                program = Program(path)
            except OSError as error:
                log.warning("The compiled step %s could not be read (%s); it is compiled again.", path, error)
            else:
                path.touch()
                return program
        path.parent.mkdir(parents=True, exist_ok=True)
        with _ONE, tempfile.TemporaryDirectory(prefix="bnnviz-", dir=path.parent) as work:
            self._compile(traced, Path(work)).replace(path)
        cpp.remove_oldest(path.parent, "*.step", _KEPT)
        return Program(path)

    def _compile(self, traced: TracedProgram, work: Path) -> Path:
        """Compile in another process; return the file."""
        if cpp.compiler() is None or shutil.which(cpp.compiler()) is None:
            raise BnnvizError(
                "The compiled kernel needs a C++ compiler, and none was found (g++ or clang++, or what CXX names);"
                ' install one, or choose kernel = "eager". The run continues without it.',
                "kernel",
            )
        program, made = work / "program.pt", work / "step.so"
        torch.save((traced.program, traced.examples), program)
        worker = "bnnviz.engine.compilation.compile_worker"
        command = [sys.executable, "-m", worker, str(program), str(made), str(self._threads)]
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(work / "inductor"), "CXX": cpp.compiler()}
        if self._cancelled:
            raise BnnvizError("The compilation was cancelled.", "kernel")
        pipe = subprocess.PIPE
        # It ends with this process, which closes its standard input.
        with subprocess.Popen(
            command, stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe, text=True, env=environment
        ) as self._child:
            if self._cancelled:  # meanwhile
                self._child.kill()
            errors = self._child.stderr.read()
        if self._cancelled:
            raise BnnvizError("The compilation was cancelled.", "kernel")
        if self._child.returncode or not made.is_file():
            log.warning("The compiler failed:\n%s", errors)
            why = (errors.strip().splitlines() or ["without a message"])[-1]
            if self._child.returncode < 0:
                why = f"the compiler or its output ended by {signal.Signals(-self._child.returncode).name}"
            raise BnnvizError(f"The step could not be compiled ({why}).", "kernel")
        return made


class KernelSwitch:
    """Compile a sampler's step, and switch to it between two blocks."""

    def __init__(self) -> None:
        self.compiled: CompiledKernel | CapturedKernel | None = None
        self.compiled_since: int | None = None
        self._compilation: Compilation | Capture | None = None
        self._sampler: Sampler | None = None
        self._eager: Callable[..., StepBatch] | None = None

    def taker(self, sampler: Sampler, state: Any) -> Callable[..., StepBatch]:
        """Return a function to take steps of a sampler: `bnnviz.samplers.warmup.take` or the compiled kernel."""
        if self.compiled is not None:
            return self.compiled.take
        if self._sampler is not sampler:
            kernel = eager_kernel(sampler, state)
            self._sampler, self._eager = sampler, partial(warmup.take, sampler) if kernel is None else kernel.take
        return self._eager

    @property
    def state(self) -> str:
        """The kernel in use: "eager", "compiling" (still eager) or "compiled"."""
        if self.compiled is not None:
            return "compiled"
        return "compiling" if self._compilation is not None and not self._compilation.done else "eager"

    def begin(self, sampler: Sampler, state: Any, numbers: RandomNumbers, threads: int) -> None:
        """Start compiling, unless started before; on a GPU the step is captured at once."""
        if self._compilation is not None:
            return
        on_gpu = numbers.generator.device.type == "cuda"
        self._compilation = Capture(sampler, state, numbers) if on_gpu else Compilation(sampler, state, threads)

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it is compiled, or for ``seconds``."""
        self._compilation.wait(seconds)

    @property
    def due(self) -> bool:
        """Whether there is a compiled step, or an error, not yet taken over."""
        return self.compiled is None and self._compilation is not None and self._compilation.done

    def take_over(self, steps: int) -> str | None:
        """Switch to the compiled step after ``steps``, or return why this is not possible."""
        self.compiled = self._compilation.kernel
        if self.compiled is None:
            self.compiled_since = None
            return self._compilation.error
        self.compiled_since = steps if self.compiled_since is None else self.compiled_since
        return None

    def give_up(self) -> None:
        """End a pending compilation."""
        if self._compilation is not None and not self._compilation.done:
            self._compilation.cancel()

    def drop(self) -> None:
        """Continue without the compiled step, which was made for other settings."""
        if self._compilation is not None:
            self._compilation.cancel()
        self.compiled = self._compilation = self.compiled_since = None


def remarks(sampler: Sampler, target: Target) -> list[Message]:
    """Return why steps of a sampler on a target are not compiled despite the request."""
    if not sampler.compiles:
        return [Message("not_compiled", reason=f"each phase of {sampler.title} is another computation")]
    if target.not_compiled:
        return [Message("not_compiled", reason=target.not_compiled)]
    return []


def _key(traced: TracedProgram, threads: int) -> str:
    """Return a name for the program from everything that it depends on."""
    shapes = [(str(example.dtype), tuple(example.shape), str(example.device)) for example in traced.examples]
    compiler = cpp.compiler()
    built = torch.__version__, torch.version.git_version, torch.__config__.show(), platform.python_version()
    machine = platform.machine(), sorted(torch.cpu.get_capabilities().items())
    text = repr((traced.program.code, shapes, threads, built, machine, compiler and cpp.version(compiler)))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _compare(sampler: Sampler, kernel: CompiledKernel, state: Any) -> None:
    """Raise unless a kernel takes the same steps as the sampler from the same states."""
    numbers, alike = seeded(0, flat(state)[0].device), []
    for _ in range(_STEPS):
        before = numbers.generator.get_state()
        after, info = sampler.step(numbers, state)
        numbers.generator.set_state(before)
        other = kernel.take(numbers, state, 1)
        pairs = zip(flat((moving_part(after), info)), flat((moving_part(other.after), other.infos[0])), strict=True)
        alike += [torch.isclose(a.double(), b.double(), rtol=_AGREE, atol=_AGREE, equal_nan=True) for a, b in pairs]
        state = after
    close = torch.cat([part.flatten() for part in alike])
    if close.double().mean() < _SHARE:
        raise BnnvizError(
            f"The compiled step gives other numbers than the step itself ({int((~close).sum())} of {len(close)}); it is"
            " not used.",
            "kernel",
        )
