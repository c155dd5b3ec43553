r"""Share what Hamiltonian samplers need: acceptance, and a warm-up that finds step size and metric.

They sample $\pi(x, p) \propto \exp(-H(x, p) / T)$ with the energy $H = U(x) + |p|^2 / 2$. With the metric $M = L
L^\top$ (`bnnviz.samplers.mcmc.metric`) a leapfrog step of size h is

$$p \leftarrow p - \tfrac h2 L^\top \nabla U(x), \quad x \leftarrow x + h L p, \quad
  p \leftarrow p - \tfrac h2 L^\top \nabla U(x).$$

Of a function of the user's in few dimensions the metric begins as the inverse curvature where U is least. The warm-up
has windows (`bnnviz.samplers.mcmc.windows`). At the end of each but the last the metric is learned from its
moves; with a new metric the step size is searched anew, then adapted after each move
(`bnnviz.samplers.mcmc.step_size`). All chains share both. Nothing is learned after the warm-up. References: R. M. Neal,
MCMC using Hamiltonian dynamics, 2011, doi:10.1201/b10905-6; M. D. Hoffman and A. Gelman, The No-U-Turn Sampler, JMLR
15 (2014), 1593-1623, section 3.2; Stan Development Team, Stan Reference Manual, chapter on MCMC sampling, section on
automatic parameter tuning.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import Sampler, Traits
from bnnviz.samplers.discrete import Discrete
from bnnviz.samplers.mcmc.metric import Metric, WindowSums
from bnnviz.samplers.mcmc.step_size import DualAveraging, reasonable
from bnnviz.samplers.mcmc.windows import FEWEST, windows
from bnnviz.samplers.random import RandomNumbers
from bnnviz.targets import Target

#: Error of the energy from which on a trajectory diverges, in units of the temperature.
DIVERGED = 1000.0
NOTHING_POOLED = (0.0, 0.0, 0.0)
_DENSE, _LOW_RANK = 100, 10_000  # dimensions up to which the metric is such a one where nothing else is chosen


class Stage(NamedTuple):
    """A window of the warm-up, and what it has seen."""

    number: int
    moves: float  # That have ended in it, for each living chain on average
    # Sums over the moves since the last update of the step size: their acceptances, the logarithms of their step sizes,
    # and how many
    pooled: tuple[float, float, float]
    averaging: DualAveraging
    sums: WindowSums | None  # None before the first move


class StepSizeAndMetric(NamedTuple):
    """What a Hamiltonian sampler has learned."""

    step_size: float
    metric: Metric
    stage: Stage | None  # Of the warm-up; None after it


class AdaptationInputs(NamedTuple):
    """What a kernel reads of the adaptation, as tensors: a program takes them as inputs."""

    step_size: Tensor  # 0-d
    metric: Metric
    deepest: Tensor | None = None  # How often a tree may double, 0-d; None of samplers without trees


class Hamiltonian(Discrete, Sampler):
    """Base of the samplers that follow a momentum by leapfrog steps; all rows are read."""

    traits = Traits(warms_up_by_moves=True)

    step_size = settings.Number(
        None,
        bounds=(1e-9, 100.0),
        scale="log",
        allow_None=True,
        live=True,
        empty="tuned",
        doc="Size of a leapfrog step, in units of the metric; empty: adapted in the warm-up to the target acceptance.",
    )
    target_accept = settings.Number(
        0.8,
        bounds=(0.1, 0.99),
        step=0.01,
        label="Target acceptance",
        doc="Mean acceptance probability that the warm-up adapts the step size to.",
    )
    metric = settings.Choice(
        "auto",
        objects=["auto", "diagonal", "low_rank", "dense", "unit"],
        doc="Scales of the coordinates, learned in the warm-up. diagonal: one for each. low_rank: a few directions too."
        f" dense: all correlations. auto: dense up to {_DENSE} dimensions, low_rank up to {_LOW_RANK:,}, else diagonal;"
        " of NUTS on a network diagonal too. unit: all one.",
    )
    start = settings.Choice(
        "auto",
        objects=["auto", "mode", "random"],
        doc="Where chains start. mode: each at the end of its own descent. auto: mode for networks (of one that learns"
        " its noise or prior after 100 steps at most, as the mode fits the noise) and for functions of your own of up"
        f" to {_DENSE} dimensions, random points for other densities.",
    )
    every = settings.Integer(1, bounds=(1, 100_000), scale="log", live=True, unit="moves", doc="Moves between draws.")

    @property
    def tuning_limit(self) -> int:
        """Steps after which the warm-up ends: no move takes more than `steps_per_move`."""
        return max(self.warmup_moves, 1) * self.steps_per_move

    @property
    def steps_per_move(self) -> int:
        """Steps of the kernel that a move may take."""
        return 1

    @property
    def dense(self) -> bool:
        """Whether the metric knows correlations."""
        return self.metric == "dense" or (self.metric == "auto" and self.learned_dim <= _DENSE)

    @property
    def of_low_rank(self) -> bool:
        """Whether the metric knows a few directions."""
        return self.metric == "low_rank" or (self.metric == "auto" and _DENSE < self.learned_dim <= _LOW_RANK)

    @property
    def learned_dim(self) -> int:
        """Coordinates that have a scale."""
        return self.target.dim

    # ---- the move

    def fresh_momentum(self, rng: RandomNumbers, like: Tensor) -> Tensor:
        """Draw momenta from N(0, T)."""
        return self.temperature**0.5 * rng.normal(like.shape, like.dtype)

    def acceptance(self, energy_error: Tensor) -> Tensor:
        """Return the acceptance probability min(1, exp(-error / T)); 0 where the error is not finite."""
        probability = torch.exp((-energy_error / self.temperature).clamp_max(0.0))
        return torch.where(torch.isfinite(energy_error), probability, 0.0)

    def diverging(self, energy_error: Tensor) -> Tensor:
        """Return where a trajectory's energy is off by more than 1000 T, or is not finite."""
        return ~(energy_error <= DIVERGED * self.temperature)

    # ---- the warm-up

    def first_adaptation(self, rng: RandomNumbers, x: Tensor) -> StepSizeAndMetric:
        """Return scales of one and the step size for them, at the beginning of the warm-up."""
        metric = self._first_metric(x)
        size = self.searched_size(rng, x, metric, 1.0)
        stage = Stage(0, 0.0, NOTHING_POOLED, DualAveraging.begun(size), None)
        return StepSizeAndMetric(size, metric, stage if self.warmup_moves else None)

    def _first_metric(self, x: Tensor) -> Metric:
        """Return the metric to begin with: by the curvature at the best of x (chains, dim), or scales of one."""
        if self.of_low_rank:
            return Metric.unit_of_low_rank(self.learned_dim, x)
        unit = Metric.unit(self.learned_dim, self.dense, x)
        known = not self._is_unknown(self.target) or self.learned_dim != self.target.dim
        if self.metric == "unit" or known or not self.warmup_moves:
            return unit
        potential = self.target.gradient(x)[0]
        best = x[torch.where(torch.isfinite(potential), potential, torch.inf).argmin()]
        return unit.of_curvature(self.target.curvature_matrix(best)) or unit

    def _is_unknown(self, target: Target) -> bool:
        """Return whether nothing is known of where a target of few dimensions lies, nor of its scales."""
        return not target.located and target.dim <= _DENSE

    def starts_at_mode(self, target: Target) -> bool:
        """Return whether chains set out from modes: of a function random points may lie far from all its mass."""
        return super().starts_at_mode(target) or (self.start == "auto" and self._is_unknown(target))

    def searched_size(self, rng: RandomNumbers, x: Tensor, metric: Metric, guess: float) -> float:
        """Return the step size at which one step at x (n, dim) has an acceptance of about 0.8, or the one that is set.

        It is the mean over the chains; begun from a guess.
        """
        if self.step_size is not None:
            return self.step_size
        potential, gradient = self.target.gradient(x)
        here = torch.isfinite(potential)
        if not bool(here.any()):
            return guess
        x, potential, gradient = x[here], potential[here].double(), gradient[here]
        momentum = self.fresh_momentum(rng, x)
        before, force = potential + kinetic_energy(momentum), metric.apply_transpose(gradient)

        def acceptance(size: float) -> float:
            half = momentum - 0.5 * size * force
            there, gradient = self.target.gradient(x + size * metric.apply(half))
            after = half - 0.5 * size * metric.apply_transpose(gradient)
            return float(self.acceptance(there.double() + kinetic_energy(after) - before).mean())

        return reasonable(acceptance, guess)

    def learned_point(self, state: Any) -> tuple[Tensor, Tensor | None]:
        """Return the positions (chains, learned_dim) that the metric is learned from, and the gradients there."""
        return state.x, None

    def sizes(self, state: Any) -> Tensor:
        """Return the step sizes (chains,) of the last moves."""
        return torch.full((len(state.x),), self.size(state.adaptation), dtype=torch.float64, device=state.x.device)

    def ended(self, state: Any, info: Any) -> Tensor:
        """Return of which chains (chains,) a move has ended with a step."""
        return state.alive

    def adapt(self, rng: RandomNumbers, before: Any, state: Any, info: Any) -> Any:
        """Note where the chains are of which a move has ended, and how far it could be accepted."""
        learned = state.adaptation
        if learned.stage is None:
            return state
        ended = self.ended(state, info)
        count = float(ended.sum())
        if not count:
            return state
        stage = self._noted(learned.stage, state, info, ended)
        stage = stage._replace(moves=stage.moves + count / max(float(state.alive.sum()), 1.0))
        size, (accepted, log_sizes, pooled) = learned.step_size, stage.pooled
        if pooled >= max(1, len(state.x) // 2) and self.warmup_moves >= FEWEST:
            averaging, size = stage.averaging.updated(log_sizes / pooled, accepted / pooled, self.target_accept)
            stage = stage._replace(averaging=averaging, pooled=NOTHING_POOLED)
        state = state._replace(adaptation=learned._replace(step_size=size, stage=stage))
        return state if stage.moves < self._windows[stage.number] else self._next_stage(rng, state)

    def _noted(self, stage: Stage, state: Any, info: Any, ended: Tensor) -> Stage:
        """Return the stage with the moves that have ended, of some chains (chains,)."""
        accepted = float(torch.where(ended, info.acceptance_rate, 0.0).sum())
        log_sizes = float(torch.where(ended, self.sizes(state).log(), 0.0).sum())
        more = accepted, log_sizes, float(ended.sum())
        stage = stage._replace(pooled=tuple(one + other for one, other in zip(stage.pooled, more, strict=True)))
        if self.metric == "unit":
            return stage
        x, gradient = self.learned_point(state)
        sums = stage.sums or WindowSums.begun(x, gradient, self.dense, self.of_low_rank)
        return stage._replace(sums=sums.added(x, gradient, ended, ended & (info.jump_distance > 0)))

    @property
    def _windows(self) -> tuple[int, ...]:
        return windows(self.warmup_moves).lengths

    def is_early(self, learned: StepSizeAndMetric) -> bool:
        """Return whether the metric is not yet learned of chains that have arrived."""
        return learned.stage is not None and learned.stage.number < windows(self.warmup_moves).early

    def _next_stage(self, rng: RandomNumbers, state: Any) -> Any:
        """Return the state at the beginning of the next stage, or after the last one."""
        learned = state.adaptation
        stage = learned.stage
        if stage.number >= len(self._windows) - 1:
            return self.resume(rng, self.freeze(rng, state))
        number = stage.number + 1
        if stage.sums is None:
            next_stage = Stage(number, 0.0, NOTHING_POOLED, stage.averaging, None)
            return state._replace(adaptation=learned._replace(stage=next_stage))
        metric = learned.metric.learned(stage.sums)
        size = self.searched_size(rng, state.x, metric, stage.averaging.size(self.target_accept))
        next_stage = Stage(number, 0.0, NOTHING_POOLED, DualAveraging.begun(size), None)
        return self.resume(rng, state._replace(adaptation=self.with_metric(learned, size, metric, next_stage)))

    def with_metric(self, learned: Any, size: float, metric: Metric, stage: Stage) -> Any:
        """Return what was learned with a new metric, and a step size for it."""
        return learned._replace(step_size=size, metric=metric, stage=stage)

    def adaptation_inputs(self, adaptation: StepSizeAndMetric) -> AdaptationInputs:
        """Return step size and metric as tensors."""
        metric = adaptation.metric
        return AdaptationInputs(metric.scale.new_tensor(self.size(adaptation)), metric)

    def end_window(self, rng: RandomNumbers, state: Any, last: bool) -> Any:
        """Return the state, frozen where the warm-up has to end; its own windows end with a move."""
        return self.resume(rng, self.freeze(rng, state)) if last and not self.is_tuned(state) else state

    def is_tuned(self, state: Any) -> bool:
        """Return whether the warm-up is over."""
        return state.adaptation.stage is None

    def warmup_share(self, state: Any) -> float:
        """Return the share of the warm-up that is done, 0 to 1."""
        stage = state.adaptation.stage
        if stage is None or not self.warmup_moves:
            return 1.0
        return min((sum(self._windows[: stage.number]) + stage.moves) / self.warmup_moves, 1.0)

    def freeze(self, rng: RandomNumbers, state: Any) -> Any:
        """Return the state with the step size at which the acceptance is target_accept."""
        learned = state.adaptation
        if learned.stage is None:
            return state
        size = learned.stage.averaging.size(self.target_accept)
        return state._replace(adaptation=learned._replace(step_size=size, stage=None))


def kinetic_energy(momentum: Tensor) -> Tensor:
    """Return |p|^2 / 2 (n,) of momenta (n, dim), in float64."""
    momentum = momentum.double()
    return 0.5 * (momentum * momentum).sum(-1)
