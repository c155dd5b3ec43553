"""Take steps by a traced program that is not compiled."""

from __future__ import annotations

from torch import Tensor

from bnnviz.engine.compilation.step_loop import CompiledKernel, StepLoop
from bnnviz.engine.compilation.tracing import StepForm, TracedProgram, form_of, trace
from bnnviz.engine.run.run import Run
from bnnviz.samplers import Sampler
from bnnviz.samplers.tree import flat
from bnnviz.specs.run import Spec


class TracedLoop(StepLoop):
    """Steps of a traced program, called operation by operation."""

    def __init__(self, form: StepForm, step: TracedProgram) -> None:
        super().__init__(form)
        self._step, self._nothing = step, flat(form.pre_drawn)

    def state(self) -> list[Tensor]:
        return [part.clone() for part in self._state]

    def _bind(self) -> None:
        pass

    def _set_state(self, state: list[Tensor]) -> None:
        self._state = list(state)

    def _set_adapted(self, adapted: list[Tensor]) -> None:
        pass

    def _run(self, numbers: list[Tensor], first: bool, steps: int) -> tuple[int, bool]:
        count, ends = len(self._state), self.form.ends
        for step in range(steps):
            drawn = [part[step].view(draw.shape) for part, draw in zip(numbers, self.form.draws, strict=True)]
            given = self._given if first and step == 0 else self._nothing
            done = self._step.program(*self._state, *given, *self._adapted, *drawn, *self._step.constants)
            self._state, info = done[:count], done[count:]
            row = self.taken + step
            for table, part in zip(self.states.tables, self._state, strict=False):
                table[row + 1] = part
            for table, part in zip(self.infos.tables, info, strict=True):
                table[row] = part
            if ends is not None and info[ends].any():
                return step + 1, True
        return steps, False


def traced_kernel(sampler: Sampler, state: object) -> CompiledKernel:
    """Return the kernel of a step that is traced, and not compiled."""
    form = form_of(sampler, state)
    return CompiledKernel(sampler, TracedLoop(form, trace(sampler, state, form)))


def begun(spec: Spec, **options: object) -> Run:
    """Return a run that is about to take its first step."""
    run = Run(spec.checked("target" in options), **options)
    run.prepare()
    return run


def sampling(spec: Spec) -> Run:
    """Return a run whose tuning has just ended."""
    run = begun(spec)
    while run.phase == "tuning":
        run.step_proposal()
    return run


def finished(spec: Spec) -> Run:
    """Return a run that has ended without a note."""
    run = begun(spec)
    while not run.finished:
        run.advance(0.2)
    assert run.phase == "done"
    assert not run.notes
    return run
