"""What the Hamiltonian samplers learn in their tuning: the size of a leapfrog step, and each coordinate's scale."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.discrete import Discrete
from bnnviz.samplers.discrete_draws import MoveDrawCollector
from bnnviz.targets import Target

# Moves of each chain that a stage of the tuning takes, on average; the scales are learnt in those between the first
# and the last, and at the end of each.
_STAGES = (25, 25, 50, 25)
_UPDATES = 50  # of the step size that a stage takes, at least
# Hoffman and Gelman 2014, section 3.2.
_SHRINKAGE, _OFFSET, _FORGETTING = 0.05, 10.0, 0.75
_LEAST = 1e-4  # of the largest scale: a coordinate that did not move in the tuning still moves after it
_PRIOR_MOVES = 5.0  # that the coordinates' common variance counts for


class DualAveraging:
    """Finds the logarithm of a step size such that the acceptance is the wanted one (Hoffman and Gelman 2014, 5)."""

    def __init__(self, size: float) -> None:
        self.centre = math.log(10 * size)
        self.seen, self.shortfall, self.log_mean = 0, 0.0, math.log(size)

    def update(self, shortfall: float) -> float:
        """Return the size to try next, after moves of which the acceptance fell short by so much on average."""
        self.seen += 1
        self.shortfall += (shortfall - self.shortfall) / (self.seen + _OFFSET)
        log_size = self.centre - self.seen**0.5 / _SHRINKAGE * self.shortfall
        self.log_mean += self.seen**-_FORGETTING * (log_size - self.log_mean)
        return math.exp(log_size)

    def size(self) -> float:
        """Return the mean of the sizes tried, the later ones counting more."""
        return math.exp(self.log_mean)


class Spread:
    """Sums of positions for every chain, from where it was first, for the variance within chains."""

    def __init__(self, origin: Tensor) -> None:
        self.origin = origin.double()
        self.count = torch.zeros(len(origin), 1, dtype=torch.float64, device=origin.device)
        self.first, self.second = torch.zeros_like(self.origin), torch.zeros_like(self.origin)

    def add(self, x: Tensor, counted: Tensor) -> None:
        """Add the positions (chains, dim) of those chains (chains,) that are counted."""
        shift = torch.where(counted[:, None], x.double() - self.origin, 0.0)
        self.count += counted[:, None]
        self.first += shift
        self.second += shift.square()

    def scale(self) -> Tensor:
        """Return the standard deviation (dim,) within chains, drawn a little towards what all coordinates share."""
        count = self.count.clamp_min(1.0)
        within = (self.second - self.first.square() / count).clamp_min(0).sum(0)
        moves = (count - 1).sum().clamp_min(1.0)
        variance = within / moves
        shared = variance.clamp_min(1e-30).log().mean().exp()
        variance = (moves * variance + _PRIOR_MOVES * shared) / (moves + _PRIOR_MOVES)
        return variance.sqrt().clamp_min(_LEAST * float(variance.max().sqrt()))


class Hamiltonian(Discrete):
    """Base of the samplers that follow a velocity by leapfrog steps; all rows are read.

    A step is x + h s v with v - h/2 s grad U before and after it, s the coordinates' scales: v is a velocity in
    coordinates divided by s, and drawn from N(0, temperature).
    """

    step_size = settings.Number(
        None,
        bounds=(1e-9, 100.0),
        scale="log",
        allow_None=True,
        live=True,
        empty="tuned",
        doc="Size of a leapfrog step, in units of the scales; empty: found in the tuning for the wanted acceptance.",
    )
    wanted = settings.Number(
        0.8, bounds=(0.1, 0.99), step=0.01, label="Wanted acceptance", doc="Mean acceptance that the tuning aims at."
    )
    metric = settings.Choice(
        "diagonal",
        objects=["diagonal", "unit"],
        doc="Scales of the coordinates. diagonal: their standard deviations within chains, learnt in the tuning. unit:"
        " all one.",
    )
    every = settings.Integer(1, bounds=(1, 100_000), scale="log", live=True, unit="moves", doc="Moves between draws.")

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target; step size and scales are learnt from the start on."""
        super().prepare(target, mode)
        self.scale = torch.ones(target.dim, dtype=target.dtype, device=target.device)
        self.tuning, self._stage = True, 0
        self._begin_stage()

    def _begin_stage(self) -> None:
        self._moves, self._pooled, self._spread = 0.0, [0.0, 0.0], None

    def first_size(self, x: Tensor) -> float:
        """Return half the step at which a leapfrog along the largest curvature at x (n, dim) is no longer stable."""
        return self.set_size(self.largest_curvature(x, self.scale) ** -0.5)

    def set_size(self, size: float) -> float:
        """Begin to tune at a size, which is returned."""
        self._averaging = DualAveraging(size)
        return size

    def size(self) -> float:
        """Return the size of a leapfrog step."""
        return self.found if self.step_size is None else self.step_size

    def learn(self, x: Tensor, acceptance_probability: Tensor, ended: Tensor) -> None:
        """Note in the tuning where the chains of which a move has ended are, and how far it could be accepted.

        ``x`` (chains, dim); ``acceptance_probability`` and ``ended`` (chains,).
        """
        if self._spread is None:
            self._spread = Spread(x)
        self._spread.add(x, ended)
        self._pooled[0] += float(torch.where(ended, acceptance_probability, 0.0).sum())
        self._pooled[1] += float(ended.sum())
        if self._pooled[1] >= max(1, len(x) // 2):
            self._moves += self._pooled[1] / len(x)
            self.found = self._averaging.update(self.wanted - self._pooled[0] / self._pooled[1])
            self._pooled = [0.0, 0.0]

    def tune(self, state: Any, last: bool) -> tuple[Any, bool]:
        """Go on to the next stage of the tuning once this one has seen enough moves."""
        nothing = self.step_size is not None and self.metric == "unit"
        enough = nothing or self._averaging.seen >= _UPDATES and self._moves >= _STAGES[self._stage]
        if self.tuning and (last or enough):
            state = self._next_stage(state, last or nothing)
        return state, not self.tuning

    def _next_stage(self, state: Any, last: bool) -> Any:
        learns = 0 < self._stage < len(_STAGES) - 1 and self.metric == "diagonal" and self._spread is not None
        self.found = self._averaging.size()
        if last or self._stage == len(_STAGES) - 1 or (self.metric == "unit" and self._stage == 1):
            self.tuning = False
        elif learns:
            self.scale = self._spread.scale().to(self.scale.dtype)
            self.found = self.first_size(state.x)
            state = self.resume(state)
        self._stage += 1
        self._begin_stage()
        return state

    def settled(self, state: Any) -> bool:
        """Return whether the tuning is over."""
        return not self.tuning

    def draw_collector(self, state: Any) -> MoveDrawCollector:
        """End the tuning, and draw from this state on."""
        if self.tuning:
            self.found, self.tuning = self._averaging.size(), False
        return super().draw_collector(state)

    def rows(self, state: Any) -> list[list[str]]:
        """Return the step size."""
        return [["Leapfrog step", f"{self.size():.3g}", ""]]

    def adopt(self, other: Hamiltonian) -> None:
        """Take over what was learnt, and how far the tuning has come."""
        super().adopt(other)
        for name in ("scale", "tuning", "_stage", "_moves", "_pooled", "_spread", "_averaging"):
            setattr(self, name, getattr(other, name))

    def save(self, state: Any) -> dict[str, Any]:
        """Return what was learnt, and how far the tuning has come, too."""
        spread = None if self._spread is None else dict(vars(self._spread))
        tuning = [self.tuning, self._stage, self._moves, self._pooled]
        learnt = {"scale": self.scale, "tuning": tuning, "spread": spread, "averaging": dict(vars(self._averaging))}
        return super().save(state) | learnt

    def load(self, saved: dict[str, Any], rng: torch.Generator) -> Any:
        """Return the saved state."""
        device = self.target.device
        self.scale = saved["scale"].to(device)
        self.tuning, self._stage, self._moves, self._pooled = saved["tuning"]
        self._averaging = DualAveraging(1.0)
        vars(self._averaging).update(saved["averaging"])
        if saved["spread"] is not None:
            self._spread = Spread(saved["spread"]["origin"].to(device))
            vars(self._spread).update({name: part.to(device) for name, part in saved["spread"].items()})
        return super().load(saved, rng)
