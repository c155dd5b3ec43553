"""Observe a sampler: batches of steps, and what collects, counts and follows them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from bnnviz.samplers.tree import flat


@dataclass
class StepBatch:
    """A few consecutive steps: the states they began on, what they did, and the number of the first."""

    before: Sequence[Any]
    infos: Sequence[Any]
    after: Any
    first_step: int
    # Whoever draws, counts, looks on or keeps a log asks for the same ones.
    _columns: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)

    def column(self, name: str) -> Tensor:
        """Return what the steps' infos say by this name, (steps, chains)."""
        if name not in self._columns:
            self._columns[name] = torch.stack([getattr(info, name) for info in self.infos])
        return self._columns[name]

    def history(self, name: str) -> Tensor:
        """Return a part of the states by its name, before each step and after the last, (steps + 1, chains, ...).

        Of a part that has several tensors it is the first.
        """
        return torch.stack([flat(getattr(state, name))[0] for state in [*self.before, self.after]])

    def state_after(self, step: int) -> Any:
        """Return the state after a step of these, by its place among them."""
        return self.after if step == len(self.infos) - 1 else self.before[step + 1]


class Draws(NamedTuple):
    """Draws made in a batch of steps: chain (n,), the draw's number in its chain (n,), position (n, dim).

    A sampler with exact paths gives also what came before each draw: the time, and the integrals of the position and
    of its square along the path, (n, 1 + 2 dim) in float64. One whose draws are weighed gives the logarithms of their
    weights, (n,) in float64. One whose `Info` reports sample statistics gives those of the move that led to each draw,
    (n, names) in float64, in the order of `Sampler.sample_stats`. ``step`` (n,) is the place among the batch's steps of
    the one that made a draw.
    """

    chain: Tensor
    index: Tensor
    x: Tensor
    path: Tensor | None = None
    log_weight: Tensor | None = None
    stats: Tensor | None = None
    step: Tensor | None = None


class Checkpointed:
    """Write some attributes, by their names, into a checkpoint."""

    #: The attributes, tensors and plain values.
    saved_names: ClassVar[tuple[str, ...]] = ()

    def save(self) -> dict[str, Any]:
        """Return its state for a checkpoint."""
        return {name: getattr(self, name) for name in self.saved_names}

    def load(self, saved: dict[str, Any]) -> None:
        """Take a saved state over, tensors on the devices where they are."""
        for name in self.saved_names:
            value = saved[name]
            setattr(self, name, value.to(getattr(self, name).device) if isinstance(value, Tensor) else value)


class DrawCollector(Protocol):
    """Turn steps into draws, outside of `step`."""

    def collect(self, step_batch: StepBatch) -> Draws:
        """Return the draws that the steps made."""

    def save(self) -> dict[str, Any]:
        """Return its state for a checkpoint."""

    def load(self, saved: dict[str, Any]) -> None:
        """Take a saved state over."""


class SamplerStats(Protocol):
    """Count over all chains."""

    events: int

    def add(self, step_batch: StepBatch, counted: np.ndarray) -> None:
        """Count the steps, for the chains (chains,) of which ``counted`` is true."""

    def summary(self) -> dict[str, float]:
        """Return named figures."""

    def rows(self) -> list[list[str]]:
        """Return the figures as rows (label, text, tone) of the table view."""

    def sentence(self) -> str:
        """Return the counts in one sentence."""

    def save(self) -> dict[str, Any]:
        """Return its state for a checkpoint."""

    def load(self, saved: dict[str, Any]) -> None:
        """Take a saved state over."""


class Projection(NamedTuple):
    """The plane that paths are drawn in: coordinate = (canonicalise(x) - centre) @ axes.

    ``axes`` of shape (dim, 2), or None for the phase plane of a one-dimensional target. ``canonicalise`` takes points
    (n, dim) to others that stand for them, and with vectors (n, dim) beside them returns where these go; None leaves
    them.
    """

    kind: str
    labels: tuple[str, str]
    centre: np.ndarray
    axes: np.ndarray | None
    basis: int
    canonicalise: Callable[..., np.ndarray] | None = None


#: Events that a chain trace holds for whoever collects them, and the kind of one that is a move of a discrete sampler.
LATELY, MOVE = 4096, 6


class ChainTrace(Protocol):
    """Follow one chain closely enough to draw it.

    Attributes
    ----------
    lately : deque of (int, int)
        Step and kind of its last events, oldest first; whoever collects them takes them out.
    """

    lately: deque[tuple[int, int]]

    def begin(self, state: Any, chain: int) -> None:
        """Stand where the watched chain is, before its first step."""

    def record(self, step_batch: StepBatch, chain: int) -> None:
        """Note what the watched chain did in these steps."""

    def part(self, name: str, plane: Projection, playing: bool) -> dict[str, Any]:
        """Return one part of a frame."""

    def event(self, step: int) -> tuple[int, str, Tensor]:
        """Return step, a few words and the position (dim,) of an event that is still remembered."""
