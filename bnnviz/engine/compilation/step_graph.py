"""Capture several steps of a sampler as one CUDA graph.

A graph is launched as a whole: a step of many small operations then costs what its arithmetic costs and not a launch
for each of them. It reads its state from fixed tensors and leaves the new state there. Random numbers come from the
run's generator, which the graph advances at each replay.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from bnnviz.engine.compilation.tracing import moving_part, with_adaptation
from bnnviz.samplers import Sampler
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import flat, rebuilt

_WARMUP = 3  # calls before the capture, as libraries allocate in their first


class StepGraph:
    """Some steps of a sampler in one call: a CUDA graph on a GPU, and elsewhere the same steps one by one."""

    def __init__(self, sampler: Sampler, state: Any, numbers: RandomNumbers, steps: int) -> None:
        self._sampler, self._numbers, self._steps = copy.copy(sampler), numbers, steps
        self._sampler.host_sync = False
        self._frame = state
        self._held = [part.clone(memory_format=torch.contiguous_format) for part in flat(moving_part(state))]
        self._graph = captured(self._take, self._held, numbers)[0] if self._held[0].is_cuda else None

    @property
    def state(self) -> Any:
        """The state that the last call has led to; the next call overwrites its tensors."""
        return with_adaptation(rebuilt(moving_part(self._frame), iter(self._held)), self._frame)

    def replay(self) -> None:
        """Take the steps."""
        if self._graph is None:
            self._take()
        else:
            self._graph.replay()

    def _take(self) -> None:
        state = self.state
        for _ in range(self._steps):
            state, _ = self._sampler.step(self._numbers, state)
        # Copied first: a part of the new state may be another part of the old one.
        for held, part in zip(self._held, [part.clone() for part in flat(moving_part(state))], strict=True):
            held.copy_(part)


def captured(take: Callable[[], Any], held: list[Tensor], numbers: RandomNumbers) -> tuple[torch.cuda.CUDAGraph, Any]:
    """Capture what a function does as a CUDA graph; return the graph, and what the function returned in it."""
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
    # Other threads of this process may use the GPU meanwhile.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        returned = take()
    restore(held, begun)
    return graph, returned


@contextlib.contextmanager
def _no_waiting() -> Iterator[None]:
    """Have an operation that waits for the GPU raise: within a capture it would leave the generator unusable."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def restore(held: list[Tensor], begun: list[Tensor]) -> None:
    """Copy numbers into the tensors that are held."""
    for part, first in zip(held, begun, strict=True):
        part.copy_(first)
