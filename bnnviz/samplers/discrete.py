"""Samplers that move from point to point: one step is one move of every chain.

A subclass gives the move and what is told of it. What is drawn, and how a chain that fails stops, are the same for all.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import Sampler
from bnnviz.samplers.discrete_draws import MoveDrawCollector, MoveStats, MoveTrace
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import flat
from bnnviz.targets import Target

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


class Moving(Sampler):
    """Base of all samplers that move from point to point: what they share whatever the move is.

    Attributes
    ----------
    told : tuple of str
        Names of what a move's Info holds (chains,) that is averaged for the table and the caption; zero where a step
        ends no move.
    waiting : str
        What is said before the first move has ended.
    """

    emits = frozenset({"path"})
    told: ClassVar[tuple[str, ...]] = ()
    waiting: ClassVar[str] = "The first move has not ended yet."

    temperature: float = 1.0
    every: int = 1

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target."""
        self.check(target)
        super().prepare(target, mode)
        self.host_sync = target.device.type == "cpu"

    def draw_velocity(self, like: Tensor) -> Tensor:
        """Return the velocities that chains set out with."""
        return torch.zeros_like(like)

    def init(self, x0: Tensor, rng: torch.Generator) -> State:
        """Return the chains at their starting points."""
        self.rng = RandomNumbers(rng)
        count = torch.zeros(len(x0), dtype=torch.float64, device=x0.device)
        return State(x0, self.draw_velocity(x0), count, torch.ones_like(count, dtype=torch.bool))

    def aim(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U / temperature and its gradient: a cold posterior is not a posterior that came out too narrow."""
        potential, g = super().aim(x)
        return potential / self.temperature, g / self.temperature

    def moved(self, state: Any, finite: Tensor, **parts: Tensor) -> tuple[Any, Tensor]:
        """Return the state with other parts where these are finite (chains,), and which chains have failed just now."""
        alive = state.alive & finite
        failed = state.alive & ~finite
        if not (self.host_sync and bool(alive.all())):
            parts = {name: _chosen(alive, part, getattr(state, name)) for name, part in parts.items()}
        return state._replace(**parts, count=state.count + alive, alive=alive), failed

    def caption(self, info: Any, chain: int) -> str:
        """Say what a move did to a chain."""
        raise NotImplementedError

    def visited(self, before: list[Tensor], states: list[Any], chain: int) -> list[Tensor]:
        """Return the points (dim,) that a chain's move has passed through, for its picture; none where it is one jump.

        ``before`` is what this returned for the states before ``states``.
        """
        return []

    def told_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return the means of what is told, as rows of the table view."""
        raise NotImplementedError

    def told_words(self, means: dict[str, float]) -> str:
        """Return the means of what is told, as the end of a sentence."""
        raise NotImplementedError

    def settled(self, state: State) -> bool:
        """Return whether the tuning has seen enough: there is none."""
        return True

    def ready(self, state: Any) -> Tensor | None:
        """Return which chains (chains,) may be drawn from where they are; None for all."""
        return None

    def draw_collector(self, state: State) -> MoveDrawCollector:
        """Draw from this state on."""
        return MoveDrawCollector(self, state)

    def sampler_stats(self) -> MoveStats:
        """Return counters at zero."""
        return MoveStats(self)

    def chain_trace(self) -> MoveTrace:
        """Return a trace that has seen nothing."""
        return MoveTrace(self)

    def resume(self, state: State, moved: bool = False) -> State:
        """Return the state, which goes on."""
        return state

    def placed(self, state: State, x: Tensor) -> State:
        """Return the state of chains that set out anew from x (chains, dim), with fresh velocities."""
        return state._replace(x=x, v=self.draw_velocity(x))

    def adopt(self, other: Moving) -> None:
        """Take over what another instance of the class has bound; the settings stay one's own."""
        self.prepare(other.target, None)
        self.rng = other.rng

    def save(self, state: State) -> dict[str, Any]:
        """Return the state."""
        return {"state": flat(state)}

    def load(self, saved: dict[str, Any], rng: torch.Generator) -> State:
        """Return the saved state."""
        self.rng = RandomNumbers(rng)
        return self.rebuilt([part.to(self.target.device) for part in saved["state"]])

    def rebuilt(self, parts: list[Tensor]) -> Any:
        """Return the state made of its tensors."""
        return State(*parts)


class Discrete(Moving):
    """Base of the Markov chains among them: a temperature, moves between draws, and a step size to find."""

    temperature = settings.Number(
        1.0,
        bounds=(1e-3, 10.0),
        scale="log",
        live=True,
        doc="The density sampled is exp(-U / temperature): below 1 a cold posterior.",
    )
    every = settings.Integer(10, bounds=(1, 100_000), scale="log", live=True, unit="moves", doc="Moves between draws.")
    start = settings.Choice(
        "auto",
        objects=["auto", "mode", "random"],
        doc="Where chains start. mode: each at the end of its own descent by Adam. auto: mode for networks, random"
        " points for densities.",
    )
    mode_steps = settings.Integer(3000, bounds=(1, 100_000), doc="Steps of Adam on the way to a mode.")

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target; the step size is found when the chains set out."""
        super().prepare(target, mode)
        self.found: float | None = None

    def init(self, x0: Tensor, rng: torch.Generator) -> State:
        """Return the chains at their starting points."""
        self.rng = RandomNumbers(rng)
        self.found = self.first_size(x0)
        return super().init(x0, rng)

    def first_size(self, x: Tensor) -> float:
        """Return a step size to begin with, from the largest curvature of U at points (n, dim)."""
        raise NotImplementedError

    def largest_curvature(self, x: Tensor, scale: Tensor | float = 1.0) -> float:
        """Return the largest curvature (in absolute value) at some of the points (n, dim), by power iteration.

        Curvature is in coordinates divided by ``scale`` (dim,). Of many rows a part is looked at.
        """
        target = self.target if self.target.descent_rows is None else self.target.some_rows(self.target.descent_rows)
        x = x[:_CURVATURE_CHAINS]
        v = self.rng.normal(x.shape, x.dtype)
        largest = torch.ones(len(x), dtype=x.dtype, device=x.device)
        for _ in range(_ROUNDS):
            v = v / torch.linalg.vector_norm(v, dim=1, keepdim=True).clamp_min(1e-30)
            v = scale * target.gradient_and_product(x, scale * v)[2]
            largest = torch.linalg.vector_norm(v, dim=1)
        return max([float(value) for value in largest[torch.isfinite(largest)]], default=1.0) or 1.0

    def adopt(self, other: Discrete) -> None:
        """Take over what another instance of the class has bound and found; the settings stay one's own."""
        super().adopt(other)
        self.found = other.found

    def save(self, state: State) -> dict[str, Any]:
        """Return the state and the step size that was found."""
        return super().save(state) | {"found": self.found}

    def load(self, saved: dict[str, Any], rng: torch.Generator) -> State:
        """Return the saved state."""
        self.found = saved["found"]
        return super().load(saved, rng)


def _chosen(mask: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    return torch.where(mask.view(-1, *[1] * (yes.ndim - 1)), yes, no)


def length(vectors: Tensor) -> Tensor:
    """Return the lengths (n,) of vectors (n, dim)."""
    return torch.linalg.vector_norm(vectors, dim=-1)
