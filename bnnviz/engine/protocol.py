"""Declare what figures and recordings use of a run, without importing torch or the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    import torch

    from bnnviz import diagnostics
    from bnnviz.engine.run.draw_store import BlockStore, DrawStore
    from bnnviz.samplers import Sampler
    from bnnviz.samplers.observers import StepBatch
    from bnnviz.specs.run import Spec
    from bnnviz.targets import Target

LoggedChange = tuple[int, dict[str, Any]]

#: Parts that move with every frame and state no number; all others are of one step, and wait for each other.
MOVING = frozenset({"path", "envelope", "events", "timeline"})


class DrawSource(Protocol):
    """The draws of a run as used by figures; ``log_weights`` and ``sample_stats`` are (chains, draws)."""

    spec: Spec
    target: Target
    sampler: Sampler
    device: torch.device
    dtype: torch.dtype
    store: DrawStore
    alive: np.ndarray
    era: int
    origin: torch.Tensor | None
    sampler_stats: Any
    steps: int
    gradients: int
    seconds: float
    cpu_seconds: float
    device_seconds: float
    phase: str
    finished: bool
    notes: list[str]
    search: dict[str, Any] | None
    minutes: float | None
    own_target: bool
    draw_collector: Any
    kernel: str
    draws: np.ndarray
    log_weights: np.ndarray | None
    sample_stats: dict[str, np.ndarray]

    def event_weights(self, every: int = 1) -> np.ndarray | None:
        """Return the weights (chains, draws) that correct the bias of draws at events."""

    def path_moments(self) -> diagnostics.PathMoments | None:
        """Return mean and variance from the integrals along the path."""

    def resampled(self, count: int) -> torch.Tensor:
        """Return draws without weights (count, dim)."""


class SingleRun(DrawSource, Protocol):
    """A run of one sampler; ``events`` (chains,) counts the events so far."""

    begun: Spec
    error: Any
    progress: float
    chain_trace: Any
    changes: list[LoggedChange]
    listeners: list[Callable[[StepBatch], None]]
    on_work: list[Callable[[], None]]
    on_move: list[Callable[[], None]]
    on_renewal: list[Callable[[], None]]
    events: torch.Tensor | None
    compiled_since: int | None
    threads: int
    state: Any
    logs: DrawStore
    draw_stats: DrawStore
    waiting: Any
    descent: Any
    stats: dict[str, Any]

    def checkpoint(self, draws: bool = True, block_store: BlockStore | None = None) -> bytes:
        """Return the state to continue from."""

    def refill(
        self, draws: np.ndarray, log_weights: np.ndarray | None, stats: dict[str, np.ndarray] | None = None
    ) -> None:
        """Restore the draws that a checkpoint lacks."""
