"""Observe a sampler: batches of steps, draw collectors, statistics and chain traces."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz.errors import BnnvizError
from bnnviz.samplers.tree import flat


@dataclass
class StepBatch:
    """Consecutive steps: the state before each, its info, and the number of the first step."""

    before: Sequence[Any]
    infos: Sequence[Any]
    after: Any
    first_step: int
    # Several observers ask for the same columns.
    _columns: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)

    def column(self, name: str) -> Tensor:
        """Return a field of the steps' infos, (steps, chains)."""
        if name not in self._columns:
            self._columns[name] = torch.stack([getattr(info, name) for info in self.infos])
        return self._columns[name]

    def history(self, name: str, number: int = 0) -> Tensor:
        """Return a tensor of a field of the states, before each step and after the last, (steps + 1, ...)."""
        return torch.stack([flat(getattr(state, name))[number] for state in [*self.before, self.after]])

    def part(self, begin: int, end: int) -> StepBatch:
        """Return the steps from one index up to another."""
        if (begin, end) == (0, len(self.infos)):
            return self
        before, infos = self.before[begin:end], self.infos[begin:end]
        return StepBatch(before, infos, self.state_after(end - 1), self.first_step + begin)

    def state_after(self, step: int) -> Any:
        """Return the state after a step, given its index in the batch."""
        return self.after if step == len(self.infos) - 1 else self.before[step + 1]


class Draws(NamedTuple):
    """Draws made in a batch of steps."""

    chain: Tensor  # (n,)
    index: Tensor  # (n,): Number of the draw in its chain
    x: Tensor  # (n, dim)
    # (n, 1 + 2 dim), float64: Time, and integrals of the position and of its square, on an exact path before the draw
    path: Tensor | None = None
    log_weight: Tensor | None = None  # (n,), float64
    stats: Tensor | None = None  # (n, names), float64: Of the last move, in the order of `Sampler.sample_stats`
    step: Tensor | None = None  # (n,): Index in the batch of the step that made the draw


class Checkpointed:
    """Save selected attributes in a checkpoint."""

    #: Names of the attributes: tensors and plain values.
    saved_names: ClassVar[tuple[str, ...]] = ()

    def save(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {name: getattr(self, name) for name in self.saved_names}

    def load(self, saved: dict[str, Any]) -> None:
        """Restore a saved state; tensors keep their devices."""
        for name in self.saved_names:
            value = saved[name]
            setattr(self, name, value.to(getattr(self, name).device) if isinstance(value, Tensor) else value)


class DrawCollector(Checkpointed):
    """Turn steps into draws, outside of `step`."""

    def collect(self, step_batch: StepBatch) -> Draws:
        """Return the draws that the steps made."""
        raise NotImplementedError


class SamplerStats(Checkpointed):
    """Count over all chains."""

    events: int

    def add(self, step_batch: StepBatch, counted: np.ndarray) -> None:
        """Count the steps, for the chains (chains,) of which ``counted`` is true."""
        raise NotImplementedError

    def summary(self) -> dict[str, float]:
        """Return named statistics."""
        raise NotImplementedError

    def rows(self) -> list[list[str]]:
        """Return the statistics as rows (label, text, tone) of the table view."""
        raise NotImplementedError

    def sentence(self) -> str:
        """Return the counts as text."""
        raise NotImplementedError


class Projection(NamedTuple):
    """The plane in which paths are drawn: coordinate = (canonicalise(x) - centre) @ axes."""

    kind: str
    labels: tuple[str, str]
    centre: np.ndarray
    axes: np.ndarray | None  # (dim, 2); None in the phase plane of a one-dimensional target
    basis: int
    # From points (n, dim), or vectors (n, dim) at them, to those of representatives; None is the identity
    canonicalise: Callable[..., np.ndarray] | None = None

    def project(self, x: np.ndarray) -> np.ndarray:
        """Return points (n, dim) in the plane, (n, 2); not in a phase plane."""
        x = x if self.canonicalise is None else self.canonicalise(x)
        return (x - self.centre) @ self.axes


#: Maximum number of events in a chain trace, and the kind that denotes a move of a discrete sampler.
LATELY, MOVE = 4096, 6


class ChainTrace:
    """Follow one chain closely enough to draw it.

    ``count`` is the number of its events, ``now`` its position (None before the first step), and ``lately`` step and
    kind of the latest events, oldest first; the consumer removes them.
    """

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler
        self.count = 0
        self.now: Any = None
        self.lately: deque[tuple[int, int]] = deque(maxlen=LATELY)

    def begin(self, state: Any, chain: int) -> None:
        """Start at the watched chain's state, before its first step."""

    def record(self, step_batch: StepBatch, chain: int) -> None:
        """Record the watched chain's steps in a block."""
        raise NotImplementedError

    def part(self, name: str, plane: Projection, playing: bool) -> dict[str, Any]:
        """Return one part of a frame; empty before the first step."""
        raise NotImplementedError

    def event(self, step: int) -> tuple[int, str, Tensor]:
        """Return step, description and position (dim,) of an event in memory."""
        raise BnnvizError("This sampler has no events to pick.", "event")

    def current_point(self) -> Tensor:
        """Return the watched chain's position (dim,)."""
        return self.now
