r"""Share what Hamiltonian samplers need: leapfrog, acceptance, and a warm-up that finds step size and scales.

They sample $\pi(x, p) \propto \exp(-H(x, p) / T)$ with the energy $H = U(x) + |p|^2 / 2$. In coordinates divided by
scales s a leapfrog step of size h is

$$p \leftarrow p - \tfrac h2 s \nabla U(x), \quad x \leftarrow x + h s p, \quad
  p \leftarrow p - \tfrac h2 s \nabla U(x).$$

The warm-up finds h by dual averaging, such that the mean acceptance is the wanted one: after n updates with the mean
shortfall $\bar H_n$,

$$\log h_{n+1} = \mu - \frac{\sqrt n}{\gamma} \bar H_n, \qquad
  \log \bar h_{n+1} = n^{-\kappa} \log h_{n+1} + (1 - n^{-\kappa}) \log \bar h_n,$$

with $\gamma = 0.05$, $t_0 = 10$, $\kappa = 0.75$, $\mu = \log 10 h_1$. The scales are the standard deviations within
chains. References: R. M. Neal, MCMC using Hamiltonian dynamics, 2011, doi:10.1201/b10905-6; M. D. Hoffman and
A. Gelman, The No-U-Turn Sampler, JMLR 15 (2014), 1593-1623, section 3.2.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.discrete import Discrete
from bnnviz.samplers.random import RandomNumbers

# Moves of each chain that a stage of the warm-up takes, on average; the scales are learnt in those between the first
# and the last, and at the end of each.
_STAGES = (25, 25, 50, 25)
_UPDATES = 50  # of the step size that a stage takes, at least
_SHRINKAGE, _OFFSET, _FORGETTING = 0.05, 10.0, 0.75  # gamma, t_0 and kappa
_LEAST = 1e-4  # of the largest scale: a coordinate that did not move in the warm-up still moves after it
_PRIOR_MOVES = 5.0  # that the coordinates' common variance counts for


class DualAveraging(NamedTuple):
    """Find the logarithm of a step size such that the acceptance is the wanted one (Hoffman and Gelman 2014, 5).

    Attributes
    ----------
    centre : float
        mu, which the logarithm is drawn to.
    updates : int
        n.
    shortfall : float
        By how much the acceptance fell short, on average.
    log_mean : float
        Mean of the logarithms, the later ones counting more.
    """

    centre: float
    updates: int
    shortfall: float
    log_mean: float

    @classmethod
    def begun(cls, size: float) -> DualAveraging:
        """Return it before the first update, at a step size."""
        return cls(math.log(10 * size), 0, 0.0, math.log(size))

    def updated(self, shortfall: float) -> tuple[DualAveraging, float]:
        """Return it after moves of which the acceptance fell short by so much on average, and the size to try next."""
        updates = self.updates + 1
        mean = self.shortfall + (shortfall - self.shortfall) / (updates + _OFFSET)
        log_size = self.centre - updates**0.5 / _SHRINKAGE * mean
        log_mean = self.log_mean + updates**-_FORGETTING * (log_size - self.log_mean)
        return DualAveraging(self.centre, updates, mean, log_mean), math.exp(log_size)

    @property
    def size(self) -> float:
        """Mean of the sizes tried."""
        return math.exp(self.log_mean)


class PositionSums(NamedTuple):
    """Sums of positions for every chain, from where it was first, for the variance within chains; float64.

    Attributes
    ----------
    origin, first, second : Tensor, shape (chains, dim)
        Where the sums begin, and the sums of the distances from there and of their squares.
    count : Tensor, shape (chains, 1)
    """

    origin: Tensor
    count: Tensor
    first: Tensor
    second: Tensor

    @classmethod
    def begun(cls, origin: Tensor) -> PositionSums:
        """Return empty sums of chains that are at an origin (chains, dim)."""
        origin = origin.double()
        zero = torch.zeros_like(origin)
        return cls(origin, zero.new_zeros(len(origin), 1), zero, zero)

    def added(self, x: Tensor, counted: Tensor) -> PositionSums:
        """Return them with the positions (chains, dim) of those chains (chains,) that are counted."""
        shift = torch.where(counted[:, None], x.double() - self.origin, 0.0)
        count = self.count + counted[:, None]
        return PositionSums(self.origin, count, self.first + shift, self.second + shift.square())

    def scale(self) -> Tensor:
        """Return the standard deviation (dim,) within chains, drawn a little towards what all coordinates share."""
        count = self.count.clamp_min(1.0)
        within = (self.second - self.first.square() / count).clamp_min(0).sum(0)
        moves = (count - 1).sum().clamp_min(1.0)
        variance = within / moves
        shared = variance.clamp_min(1e-30).log().mean().exp()
        variance = (moves * variance + _PRIOR_MOVES * shared) / (moves + _PRIOR_MOVES)
        return variance.sqrt().clamp_min(_LEAST * float(variance.max().sqrt()))


class Stage(NamedTuple):
    """A stage of the warm-up, and what it has seen.

    Attributes
    ----------
    number : int
    moves : float
        That have ended, for each chain on average.
    pooled : tuple of float
        Acceptance and number of moves since the last update of the step size.
    averaging : DualAveraging
    positions : PositionSums or None
        None before the first move.
    """

    number: int
    moves: float
    pooled: tuple[float, float]
    averaging: DualAveraging
    positions: PositionSums | None


class StepSizeAndScale(NamedTuple):
    """What a Hamiltonian sampler has learnt.

    Attributes
    ----------
    step_size : float
    scale : Tensor, shape (dim,)
    stage : Stage or None
        Of the warm-up; None after it.
    """

    step_size: float
    scale: Tensor
    stage: Stage | None


class Hamiltonian(Discrete):
    """Base of the samplers that follow a momentum by leapfrog steps; all rows are read."""

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

    def first_adaptation(self, rng: RandomNumbers, x: Tensor) -> StepSizeAndScale:
        """Return scales of one and the step size for them, at the beginning of the warm-up."""
        scale = torch.ones(self.learnt_dim, dtype=x.dtype, device=x.device)
        size = self.first_size(rng, x, scale)
        return StepSizeAndScale(size, scale, Stage(0, 0.0, (0.0, 0.0), DualAveraging.begun(size), None))

    @property
    def learnt_dim(self) -> int:
        """Coordinates that have a scale."""
        return self.target.dim

    def first_size(self, rng: RandomNumbers, x: Tensor, scale: Tensor | float = 1.0) -> float:
        """Return half the step at which a leapfrog along the largest curvature at x (n, dim) is no longer stable."""
        return self.largest_curvature(rng, x, scale) ** -0.5

    def fresh_momentum(self, rng: RandomNumbers, like: Tensor) -> Tensor:
        """Draw momenta from N(0, T)."""
        return self.temperature**0.5 * rng.normal(like.shape, like.dtype)

    def acceptance(self, energy_error: Tensor) -> Tensor:
        """Return the acceptance probability min(1, exp(-error / T)); 0 where the error is not a number."""
        return torch.exp((-energy_error / self.temperature).clamp_max(0.0)).nan_to_num(0.0)

    def learnt_position(self, state: Any) -> Tensor:
        """Return the positions (chains, learnt_dim) whose scales are learnt."""
        return state.x

    def ended(self, state: Any, info: Any) -> Tensor:
        """Return of which chains (chains,) a move has ended with a step."""
        return state.alive

    def adapt(self, rng: RandomNumbers, before: Any, state: Any, info: Any) -> Any:
        """Note where the chains are of which a move has ended, and how far it could be accepted."""
        learnt = state.adaptation
        if learnt.stage is None:
            return state
        stage, size, x, ended = learnt.stage, learnt.step_size, self.learnt_position(state), self.ended(state, info)
        positions = (stage.positions or PositionSums.begun(x)).added(x, ended)
        accepted = stage.pooled[0] + float(torch.where(ended, info.acceptance_rate, 0.0).sum())
        count = stage.pooled[1] + float(ended.sum())
        stage = stage._replace(positions=positions, pooled=(accepted, count))
        if count >= max(1, len(x) // 2):
            averaging, size = stage.averaging.updated(self.wanted - accepted / count)
            stage = stage._replace(moves=stage.moves + count / len(x), averaging=averaging, pooled=(0.0, 0.0))
        return state._replace(adaptation=StepSizeAndScale(size, learnt.scale, stage))

    def end_window(self, rng: RandomNumbers, state: Any, last: bool) -> Any:
        """Go on to the next stage of the warm-up once this one has seen enough moves."""
        stage = state.adaptation.stage
        if stage is None:
            return state
        nothing = self.step_size is not None and self.metric == "unit"
        enough = nothing or stage.averaging.updates >= _UPDATES and stage.moves >= _STAGES[stage.number]
        if not (last or enough):
            return state
        over = last or nothing or stage.number == len(_STAGES) - 1 or (self.metric == "unit" and stage.number == 1)
        return self.freeze(rng, state) if over else self._next_stage(rng, state, stage)

    def _next_stage(self, rng: RandomNumbers, state: Any, stage: Stage) -> Any:
        """Return the state at the beginning of the next stage; with new scales it needs another step size."""
        size, scale, averaging = stage.averaging.size, state.adaptation.scale, stage.averaging
        learns = stage.number > 0 and self.metric == "diagonal" and stage.positions is not None
        if learns:
            scale = stage.positions.scale().to(scale.dtype)
            size = self.first_size(rng, state.x, scale)
            averaging = DualAveraging.begun(size)
        new = Stage(stage.number + 1, 0.0, (0.0, 0.0), averaging, None)
        state = state._replace(adaptation=StepSizeAndScale(size, scale, new))
        return self.resume(rng, state) if learns else state

    def is_tuned(self, state: Any) -> bool:
        """Return whether the warm-up is over."""
        return state.adaptation.stage is None

    def freeze(self, rng: RandomNumbers, state: Any) -> Any:
        """Return the state with the mean of the step sizes that were tried."""
        learnt = state.adaptation
        if learnt.stage is None:
            return state
        return state._replace(adaptation=StepSizeAndScale(learnt.stage.averaging.size, learnt.scale, None))
