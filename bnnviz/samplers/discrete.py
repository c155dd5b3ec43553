"""Samplers that move from point to point: one step is one move of every chain.

A subclass gives the move (`move`). Stochastic gradients, the size of a step, what is drawn and what is told are
the same for all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.samplers.base import Sampler
from bnnviz.samplers.discrete_draws import MoveTally, MoveTracer, StepEmitter
from bnnviz.samplers.gradients import FullData, MiniBatch
from bnnviz.samplers.noise import Noise
from bnnviz.targets import Target

_BATCHES = {"batch_size": {"least": 1}}
_ROUNDS = 20  # of the power iteration that finds the largest curvature
_CURVATURE_CHAINS = 8


class State(NamedTuple):
    """All chains between two moves.

    Attributes
    ----------
    x, v : Tensor, shape (chains, dim)
        Position, and what moves it on; zero where a move remembers nothing.
    count : Tensor, shape (chains,), float64
        Moves since the start.
    alive : Tensor, bool
        False for a chain that met a value that is not finite.
    """

    x: Tensor
    v: Tensor
    count: Tensor
    alive: Tensor


class Info(NamedTuple):
    """What one move did, for every chain, shape (chains,).

    Attributes
    ----------
    potential : Tensor
        U before the move, as the batch has it.
    size : Tensor
        Step size.
    drift, noise : Tensor
        How far the gradient, and how far chance, moved the chain.
    failed : Tensor, bool
        The chain met a value that is not finite.
    """

    potential: Tensor
    size: Tensor
    drift: Tensor
    noise: Tensor
    failed: Tensor


class Move(NamedTuple):
    """Where a move leads: position and velocity (chains, dim), and the parts of gradient and chance in it."""

    x: Tensor
    v: Tensor
    drift: Tensor
    noise: Tensor


class Discrete(Sampler):
    """Base of the samplers that move from point to point: settings, the lock-step, draws every few moves."""

    emits = frozenset({"path"})
    exact = False

    step_size = settings.Number(
        None,
        bounds=(1e-9, 100.0),
        scale="log",
        allow_None=True,
        live=True,
        empty="found",
        doc="Step size; empty: a fifth of one over the largest curvature of U at the start.",
    )
    decay = settings.Number(
        0.0,
        bounds=(0.0, 1.0),
        step=0.05,
        live=True,
        doc="Exponent of the decay: the step size of move t is (1 + t / decay_after)^-decay of the first; 0: constant.",
    )
    decay_after = settings.Number(
        1000.0, bounds=(1.0, 1e7), scale="log", unit="moves", live=True, doc="Moves after which the decay sets in."
    )
    temperature = settings.Number(
        1.0,
        bounds=(1e-3, 10.0),
        scale="log",
        live=True,
        doc="The density sampled is exp(-U / temperature): below 1 a cold posterior.",
    )
    batch_size = settings.Integer(
        None,
        bounds=(1, 1_000_000),
        scale="log",
        live=True,
        allow_None=True,
        label="Mini-batch",
        unit="rows",
        empty="all rows",
        doc="Data rows that a gradient reads, drawn afresh for each move, weighted to stand for all of them; empty: all"
        " rows.",
    )
    control_variates = settings.Boolean(
        False,
        when=_BATCHES,
        doc="Take from each batch what it says at the mode, and add what all rows say there; a gradient costs two.",
    )
    every = settings.Integer(10, bounds=(1, 100_000), scale="log", live=True, unit="moves", doc="Moves between draws.")
    start = settings.Choice(
        "auto",
        objects=["auto", "mode", "random"],
        doc="Where chains start. mode: each at the end of its own descent by Adam. auto: mode for networks, random"
        " points for densities.",
    )
    mode_steps = settings.Integer(3000, bounds=(1, 100_000), doc="Steps of Adam on the way to a mode.")

    @property
    def needs_mode(self) -> bool:
        """Whether a mode has to be found before the chains set out."""
        return self.control_variates

    def move(self, x: Tensor, v: Tensor, g: Tensor, size: Tensor) -> Move:
        """Return where the chains at (x, v) with gradient g (chains, dim) move by steps of a size (chains, 1)."""
        raise NotImplementedError

    def draw_velocity(self, like: Tensor) -> Tensor:
        """Return the velocities that chains set out with."""
        return torch.zeros_like(like)

    def check(self, target: Target) -> None:
        """Raise where batches do not fit the target."""
        if self.batch_size is not None and target.data_rows is None:
            raise BnnvizError(
                f"batch_size = {self.batch_size} needs a target with data rows, and {target.describe_value()} has none;"
                " leave it empty.",
                "batch_size",
            )

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target; the step size is found when the chains set out."""
        self.check(target)
        super().prepare(target, mode)
        self.looks = target.device.type == "cpu"
        self.found: float | None = None
        self.recentre(mode)

    def recentre(self, mode: Tensor | None) -> None:
        """Take control variates, where they are wanted, at a point (dim,)."""
        self._anchor = mode if self.control_variates else None
        self.source = FullData(self.target)
        if self.batch_size is not None:
            self.source = MiniBatch(self.target, self.batch_size, False, self._anchor)

    @property
    def examples_per_step(self) -> int:
        """Gradients of single rows that a move is charged for."""
        return self.source.examples

    def init(self, x0: Tensor, rng: torch.Generator) -> State:
        """Return the chains at their starting points."""
        self.noise = Noise(rng)
        self.found = self._stable_size(x0)
        count = torch.zeros(len(x0), dtype=torch.float64, device=x0.device)
        return State(x0, self.draw_velocity(x0), count, torch.ones_like(count, dtype=torch.bool))

    def _stable_size(self, x0: Tensor) -> float:
        """Return a fifth of one over the largest curvature (in absolute value) at some of the starting points."""
        x = x0[:_CURVATURE_CHAINS]
        v = self.noise.normal(x.shape, x.dtype)
        largest = torch.ones(len(x), dtype=x.dtype, device=x.device)
        for _ in range(_ROUNDS):
            v = v / torch.linalg.vector_norm(v, dim=1, keepdim=True).clamp_min(1e-30)
            v = self.target.gradient_and_product(x, v)[2]
            largest = torch.linalg.vector_norm(v, dim=1)
        return float(0.2 / largest[torch.isfinite(largest)].max().clamp_min(1e-12))

    def sizes(self, count: Tensor) -> Tensor:
        """Return the step sizes (chains,) of chains after so many moves."""
        first = self.found if self.step_size is None else self.step_size
        if self.decay == 0:
            return torch.full_like(count, first)
        return first * (1 + count / self.decay_after) ** -self.decay

    def given(self, state: State) -> Any:
        """Draw the batch."""
        return self.source.draw((), len(state.x), self.noise)

    def core(self, state: State, given: Any) -> tuple[State, Info]:
        """Move every chain once."""
        potential, g = self.source.of(given).gradient(state.x)
        size = self.sizes(state.count)
        moved = self.move(state.x, state.v, g, size[:, None].to(g.dtype))
        finite = torch.isfinite(potential) & torch.isfinite(moved.x).all(-1)
        alive = state.alive & finite
        info = Info(potential, size, moved.drift, moved.noise, state.alive & ~finite)
        if self.looks and bool(alive.all()):
            return State(moved.x, moved.v, state.count + 1, alive), info
        here = alive[:, None]
        x, v = torch.where(here, moved.x, state.x), torch.where(here, moved.v, state.v)
        return State(x, v, state.count + alive, alive), info

    def settled(self, state: State) -> bool:
        """Return whether the tuning has seen enough: there is none."""
        return True

    def emitter(self, state: State) -> StepEmitter:
        """Draw from this state on."""
        return StepEmitter(self, state)

    def tally(self) -> MoveTally:
        """Return counters at zero."""
        return MoveTally()

    def tracer(self) -> MoveTracer:
        """Return a tracer that has seen nothing."""
        return MoveTracer(self)

    def resume(self, state: State, moved: bool = False) -> State:
        """Return the state; the schedule of the step size goes on."""
        return state

    def adopt(self, other: Discrete) -> None:
        """Take over what another instance of the class has bound and found; the settings stay one's own."""
        self.prepare(other.target, None)
        self.recentre(other._anchor)
        self.noise, self.found = other.noise, other.found

    def save(self, state: State) -> dict[str, Any]:
        """Return the state, the step size that was found and the point of the control variates."""
        return {"state": list(state), "found": self.found, "anchor": self._anchor}

    def load(self, saved: dict[str, Any], rng: torch.Generator) -> State:
        """Return the saved state."""
        self.noise, self.found = Noise(rng), saved["found"]
        if saved["anchor"] is not None:
            self.recentre(saved["anchor"].to(self.target.device))
        return State(*(part.to(self.target.device) for part in saved["state"]))

    def rows(self, state: State) -> list[list[str]]:
        """Return the step size."""
        sizes = self.sizes(state.count)[state.alive]
        return [["Step size", f"{float(sizes.mean()):.3g}", ""]] if len(sizes) else []


def length(vectors: Tensor) -> Tensor:
    """Return the lengths (n,) of vectors (n, dim)."""
    return torch.linalg.vector_norm(vectors, dim=-1)
