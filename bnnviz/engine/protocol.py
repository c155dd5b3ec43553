"""Declare the interfaces between the parts of the engine.

- `Driven` is moved by a driver, `Simulation` is also displayed: a run, a race, the double well, a fork.
- `DrawSource` provides draws to figures.
- `SingleRun` is a run of one sampler, `ShownRun` one with its views.

Importing this module does not import torch, so that a page may use it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
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


class Driven(Protocol):
    """The interface to prepare, advance, step, change and save."""

    phase: str
    steps: int
    finished: bool
    progress: float
    error: str | None
    wait_for_compile: bool
    device: torch.device
    spec: Any

    def prepare(self) -> None:
        """Find the starting points."""

    def advance(self, seconds: float = 0.02) -> int:
        """Work for about the given seconds; return the number of steps."""

    def step_proposal(self) -> None:
        """Take one step."""

    def take(self, most: int, seconds: float = 0.02) -> int:
        """Take one block of at most ``most`` steps; return their number."""

    def change(self, settings: dict[str, Any]) -> None:
        """Change settings between two steps."""

    def checkpoint(self) -> bytes:
        """Return the state to continue from."""

    def release(self) -> None:
        """Stop pending compilation."""


class Simulation(Driven, Protocol):
    """A driven object with views."""

    can_record: bool
    has_history: bool
    is_fork: bool

    def step_event(self) -> None:
        """Step to the next event."""

    def watch(self, **what: Any) -> None:
        """Choose what frames show."""

    def select(self, choice: dict[str, Any] | None) -> None:
        """Choose what all views mark."""

    def scene(self) -> dict[str, Any]:
        """Return the static view data."""

    def frame(self, want: list[str]) -> dict[str, Any]:
        """Return the requested parts of the current view data."""


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

    def test_outputs(self) -> torch.Tensor | None:
        """Return the network outputs of the draws at the test rows."""


class SingleRun(DrawSource, Driven, Protocol):
    """A run of one sampler; ``events`` (chains,) counts the events so far."""

    begun: Spec
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


class ShownRun(SingleRun, Simulation, Protocol):
    """A run of one sampler with its views."""

    chain_trace: Any

    def aside(self, part: str, since: int) -> dict[str, Any]:
        """Return a part of a frame for a reader other than the page."""

    def show_here(self) -> None:
        """Restart the path of the watched chain here."""

    def look_like(self, other: Any) -> None:
        """Show what another run of the same target shows."""


class Future(Protocol):
    """One branch of a fork: a run under a letter, with its pending changes."""

    letter: str
    run: ShownRun
    script: deque[LoggedChange]


class Forked(Simulation, Protocol):
    """Several branches of one run; attributes of a single run are those of the followed branch."""

    branches: Sequence[Future]
    followed: int
    changes: list[LoggedChange]

    def checkpoint(self, draws: bool = True, block_store: BlockStore | None = None) -> bytes:
        """Return the state to continue from."""


class Place(Protocol):
    """A host as used by its history: ``script`` are the pending changes, ``goal`` is the step to reach."""

    run: Any
    script: deque[LoggedChange]
    goal: int | None
    playing: bool

    def advance(self, seconds: float) -> int:
        """Work for at most the given seconds."""
