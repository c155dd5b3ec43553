"""Capture the step of a sampler as a CUDA graph, instead of `Sampler.step`.

A graph is launched as a whole, so a step of many small operations costs only its arithmetic, not a launch for each of
them. It reads the state, the random inputs drawn beforehand and the adapted values from fixed tensors. It writes the
new state there, and a copy of all outputs of a step to one tensor per data type. The graph advances the run's generator
at each replay, so the draws equal those of the step that is not captured.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from bnnviz.engine.compilation.tracing import READS_ON_HOST, filled, moving_part, with_adaptation
from bnnviz.errors import BnnvizError
from bnnviz.samplers import Sampler, warmup
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import flat, rebuilt

_WARMUP = 3  # calls before the capture, as libraries allocate in their first


class CapturedKernel:
    """A step as a CUDA graph; on a CPU the same tensors are filled operation by operation."""

    def __init__(self, sampler: Sampler, state: Any, numbers: RandomNumbers) -> None:
        self._sampler, self._numbers, self._frame = copy.copy(sampler), numbers, state
        self._taught = sampler
        self._learned = sampler.adaptation_inputs(state.adaptation) if "adaptation" in state._fields else None
        self._adapted = [] if self._learned is None else [_own(part) for part in flat(self._learned)]
        self._adaptation = None if self._learned is None else state.adaptation
        self._sampler.host_sync = False
        self._held = [_own(part) for part in flat(moving_part(state))]
        begun = numbers.generator.get_state()
        self._given = self._sampler.pre_draw(numbers, state)
        self._inputs = [_own(part) for part in flat(self._given)]
        self._packed, returned = self._take()
        self._packing = Packing(flat(returned))
        self._returned = rebuilt(returned, (part.to("meta") for part in flat(returned)))
        restore(self._held, flat(moving_part(state)))
        numbers.generator.set_state(begun)
        self._last: Any = None
        self._replay = self._taken_again
        if self._held[0].is_cuda:
            graph, (self._packed, _) = captured(self._take, self._held, numbers)
            self._replay = graph.replay

    def step(self, rng: RandomNumbers, state: Any) -> tuple[Any, Any]:
        """Return the next state and what happened."""
        if state is not self._last:
            restore(self._held, flat(moving_part(state)))
        if self._learned is not None and state.adaptation is not self._adaptation:
            self._adaptation = state.adaptation
            restore(self._adapted, flat(self._sampler.adaptation_inputs(state.adaptation)))
        for held, part in zip(self._inputs, filled(self._sampler.pre_draw(rng, state), self._given), strict=True):
            held.copy_(part)
        self._replay()
        parts = self._packing.unpacked([vector.clone() for vector in self._packed])
        after, info = rebuilt(self._returned, iter(parts))
        self._last = with_adaptation(after, state)
        return self._last, info

    def take(self, rng: RandomNumbers, state: Any, steps: int, first_step: int = 0, learns: bool = False) -> StepBatch:
        """Take some steps, like `bnnviz.samplers.warmup.take`."""
        return warmup.take(self._taught, rng, state, steps, first_step, learns, self)

    def _taken_again(self) -> None:
        for held, part in zip(self._packed, self._take()[0], strict=True):
            held.copy_(part)

    def _take(self) -> tuple[list[Tensor], Any]:
        """Take one step from the stored state; return all outputs, packed and unpacked."""
        moving = rebuilt(moving_part(self._frame), iter(self._held))
        if self._learned is None:
            state = with_adaptation(moving, self._frame)
        else:
            state = moving._replace(adaptation=rebuilt(self._learned, iter(self._adapted)))
        given = rebuilt(self._given, iter(self._inputs))
        after, info = self._sampler.kernel(self._numbers, state, *given)
        returned = moving_part(after), info
        packing = Packing(flat(returned))
        packed = packing.packed(flat(returned))
        # From the copies: a part of the new state may be another part of the old one.
        restore(self._held, packing.unpacked(packed)[: len(self._held)])
        return packed, returned


class Packing:
    """The positions of tensors in one vector per data type, so that a step has few copies of its outputs."""

    def __init__(self, parts: list[Tensor]) -> None:
        self._shapes = [part.shape for part in parts]
        members: dict[torch.dtype, list[int]] = {}
        for number, part in enumerate(parts):
            members.setdefault(part.dtype, []).append(number)
        self._members = list(members.values())

    def packed(self, parts: list[Tensor]) -> list[Tensor]:
        """Return copies of tensors as vectors."""
        return [torch.cat([parts[number].reshape(-1) for number in numbers]) for numbers in self._members]

    def unpacked(self, vectors: list[Tensor]) -> list[Tensor]:
        """Return the tensors as views of the vectors."""
        parts: list[Any] = [None] * len(self._shapes)
        for vector, numbers in zip(vectors, self._members, strict=True):
            shapes = [self._shapes[number] for number in numbers]
            for number, piece in zip(numbers, vector.split([shape.numel() for shape in shapes]), strict=True):
                parts[number] = piece.view(self._shapes[number])
        return parts


class Capture:
    """A captured step, or the reason for its failure, with the members of a `Compilation`."""

    done = True

    def __init__(self, sampler: Sampler, state: Any, numbers: RandomNumbers) -> None:
        self.kernel: CapturedKernel | None = None
        self.error: str | None = None
        begun = numbers.generator.get_state()
        try:
            self.kernel = CapturedKernel(sampler, state, numbers)
        except (BnnvizError, RuntimeError) as error:  # raised by the target's functions
            numbers.generator.set_state(begun)
            first = str(error).strip().splitlines()
            self.error = (
                f"The step could not be captured as a CUDA graph ({first[0] if first else type(error).__name__});"
                f" the run continues without it. {READS_ON_HOST}"
            )

    def wait(self, seconds: float | None = None) -> None:
        """Return at once: the capture is complete."""

    def cancel(self) -> None:
        """Do nothing: the capture is complete."""


def _own(part: Tensor) -> Tensor:
    return part.clone(memory_format=torch.contiguous_format)


def captured(take: Callable[[], Any], held: list[Tensor], numbers: RandomNumbers) -> tuple[torch.cuda.CUDAGraph, Any]:
    """Capture a function as a CUDA graph; return the graph and the function's result in it."""
    begun, generator = [part.clone() for part in held], numbers.generator
    before = generator.get_state()
    stream = torch.cuda.Stream(held[0].device)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), _no_waiting():
        for _ in range(_WARMUP):
            take()
    torch.cuda.current_stream().wait_stream(stream)
    restore(held, begun)
    generator.set_state(before)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    # Other threads of this process may use the GPU at the same time.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        returned = take()
    restore(held, begun)
    return graph, returned


@contextlib.contextmanager
def _no_waiting() -> Iterator[None]:
    """Make operations that wait for the GPU raise: in a capture they would leave the generator unusable."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def restore(held: list[Tensor], begun: list[Tensor]) -> None:
    """Copy numbers into the stored tensors."""
    for part, first in zip(held, begun, strict=True):
        part.copy_(first)
