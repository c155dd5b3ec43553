r"""Define the base of Hamiltonian samplers: acceptance, and a warm-up that adapts step size and metric.

They sample $\pi(x, p) \propto \exp(-H(x, p) / T)$ with the energy $H = U(x) + |p|^2 / 2$. With the metric $M = L
L^\top$ (`bnnviz.samplers.mcmc.metric`) a leapfrog step of size h is

$$p \leftarrow p - \tfrac h2 L^\top \nabla U(x), \quad x \leftarrow x + h L p, \quad
  p \leftarrow p - \tfrac h2 L^\top \nabla U(x).$$

On custom functions in few dimensions the metric starts as the inverse curvature at the lowest U. The warm-up has
windows (`bnnviz.samplers.mcmc.windows`). At the end of each but the last, the metric is learned from the moves in it.
With a new metric the step size is searched again, then adapted after each move (`bnnviz.samplers.mcmc.step_size`). All
chains share both. Adaptation ends with the warm-up. References: R. M. Neal,
MCMC using Hamiltonian dynamics, 2011, doi:10.1201/b10905-6; M. D. Hoffman and A. Gelman, The No-U-Turn Sampler, JMLR
15 (2014), 1593-1623, section 3.2; Stan Development Team, Stan Reference Manual, chapter on MCMC sampling, section on
automatic parameter tuning.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import SamplerState, Traits
from bnnviz.samplers.discrete import Discrete
from bnnviz.samplers.mcmc.metric import Metric, WindowSums
from bnnviz.samplers.mcmc.step_size import DualAveraging, reasonable
from bnnviz.samplers.mcmc.windows import FEWEST, windows
from bnnviz.samplers.random import RandomNumbers
from bnnviz.targets import Target

#: Energy error above which a trajectory is divergent, in units of the temperature.
DIVERGED = 1000.0
NOTHING_POOLED = (0.0, 0.0, 0.0)
_DENSE, _LOW_RANK = 100, 10_000  # dimensions up to which the metric has this form by default


class Stage(NamedTuple):
    """A window of the warm-up and its statistics."""

    number: int
    moves: float  # Completed moves in it, averaged over living chains
    # Sums over the moves since the last update of the step size: acceptance, logarithm of the step size, and number
    pooled: tuple[float, float, float]
    averaging: DualAveraging
    sums: WindowSums | None  # None before the first move


class StepSizeAndMetric(NamedTuple):
    """The adaptation of a Hamiltonian sampler."""

    step_size: float
    metric: Metric
    stage: Stage | None  # Of the warm-up; None after it


class AdaptationInputs(NamedTuple):
    """The kernel's view of the adaptation as tensors, which are inputs of a compiled program."""

    step_size: Tensor  # 0-d
    metric: Metric
    deepest: Tensor | None = None  # Maximum tree depth, 0-d; None for samplers without trees


class Hamiltonian(Discrete):
    """Base of the samplers that simulate Hamiltonian dynamics by leapfrog steps; gradients use all rows."""

    traits = Traits(warms_up_by_moves=True)

    step_size = settings.Number(
        None,
        bounds=(1e-9, 100.0),
        scale="log",
        allow_None=True,
        live=True,
        empty="tuned",
        doc="Leapfrog step size in units of the metric. Empty: adapted in the warm-up.",
    )
    target_accept = settings.Number(
        0.8,
        bounds=(0.1, 0.99),
        step=0.01,
        label="Target acceptance",
        doc="Target acceptance probability for the adaptation of the step size.",
    )
    metric = settings.Choice(
        "auto",
        objects=["auto", "diagonal", "low_rank", "dense", "unit"],
        doc="Metric, learned in the warm-up. diagonal: variances only. low_rank: variances and a few directions. dense:"
        f" full covariance. auto: dense up to {_DENSE} dimensions, low_rank up to {_LOW_RANK:,}, otherwise diagonal;"
        " NUTS on a network uses diagonal. unit: identity.",
    )
    start = settings.Choice(
        "auto",
        objects=["auto", "mode", "random"],
        doc="Initial positions. mode: the mode found by optimisation for each chain. auto: mode for networks (at most"
        " 100 steps if noise or prior are learned, because the mode overfits) and for custom functions of up to"
        f" {_DENSE} dimensions, random points for other densities.",
    )

    @property
    def tuning_limit(self) -> int:
        """Maximum number of warm-up steps."""
        return max(self.warmup_moves, 1)

    @property
    def dense(self) -> bool:
        """Whether the metric has all correlations."""
        return self.metric == "dense" or (self.metric == "auto" and self.learned_dim <= _DENSE)

    @property
    def of_low_rank(self) -> bool:
        """Whether the metric is diagonal plus a few directions."""
        return self.metric == "low_rank" or (self.metric == "auto" and _DENSE < self.learned_dim <= _LOW_RANK)

    @property
    def learned_dim(self) -> int:
        """Number of coordinates with a scale."""
        return self.target.dim

    # ---- the move

    def fresh_momentum(self, rng: RandomNumbers, like: Tensor) -> Tensor:
        """Draw momenta from N(0, T)."""
        return self.temperature**0.5 * rng.normal(like.shape, like.dtype)

    def acceptance(self, energy_error: Tensor) -> Tensor:
        """Return the acceptance probability min(1, exp(-error / T)); 0 for non-finite errors."""
        probability = torch.exp((-energy_error / self.temperature).clamp_max(0.0))
        return torch.where(torch.isfinite(energy_error), probability, 0.0)

    def diverging(self, energy_error: Tensor) -> Tensor:
        """Return where the energy error exceeds 1000 T or is not finite."""
        return ~(energy_error <= DIVERGED * self.temperature)

    # ---- the warm-up

    def first_adaptation(self, rng: RandomNumbers, x: Tensor) -> StepSizeAndMetric:
        """Return unit scales and a step size for them, at the start of the warm-up."""
        metric = self._first_metric(x)
        size = self.searched_size(rng, x, metric, 1.0)
        stage = Stage(0, 0.0, NOTHING_POOLED, DualAveraging.begun(size), None)
        return StepSizeAndMetric(size, metric, stage if self.warmup_moves else None)

    def _first_metric(self, x: Tensor) -> Metric:
        """Return the initial metric: from the curvature at the best of x (chains, dim), or unit scales."""
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
        """Return whether location and scales of a low-dimensional target are unknown."""
        return not target.located and target.dim <= _DENSE

    def starts_at_mode(self, target: Target) -> bool:
        """Return whether chains start at modes: for custom functions random points may be far from all mass."""
        return super().starts_at_mode(target) or (self.start == "auto" and self._is_unknown(target))

    def searched_size(self, rng: RandomNumbers, x: Tensor, metric: Metric, guess: float) -> float:
        """Return the step size with a mean acceptance of 0.8 for one step at x (n, dim), or the setting."""
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
        """Return the positions (chains, learned_dim) and gradients from which the metric is learned."""
        return state.x, None

    def sizes(self, state: Any) -> Tensor:
        """Return the step sizes (chains,) of the last moves."""
        return torch.full((len(state.x),), self.size(state.adaptation), dtype=torch.float64, device=state.x.device)

    def ended(self, state: Any, info: Any) -> Tensor:
        """Return the chains (chains,) whose move ended with a step."""
        return state.alive

    def adapt(self, rng: RandomNumbers, before: Any, state: Any, info: Any) -> SamplerState:
        """Record position and acceptance of chains whose move has ended."""
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
        """Return the stage with the completed moves of some chains (chains,)."""
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
        """Return whether the metric has not yet been learned from chains that have converged."""
        return learned.stage is not None and learned.stage.number < windows(self.warmup_moves).early

    def _next_stage(self, rng: RandomNumbers, state: Any) -> Any:
        """Return the state at the start of the next stage, or after the last one."""
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
        return self.resume(
            rng, state._replace(adaptation=learned._replace(step_size=size, metric=metric, stage=next_stage))
        )

    def adaptation_inputs(self, adaptation: StepSizeAndMetric) -> AdaptationInputs:
        """Return step size and metric as tensors."""
        metric = adaptation.metric
        return AdaptationInputs(metric.scale.new_tensor(self.size(adaptation)), metric)

    def end_window(self, rng: RandomNumbers, state: Any, last: bool) -> SamplerState:
        """Return the state, frozen if the warm-up must end; the metric's windows end with moves instead."""
        return self.resume(rng, self.freeze(rng, state)) if last and not self.is_tuned(state) else state

    def is_tuned(self, state: Any) -> bool:
        """Return whether the warm-up is over."""
        return state.adaptation.stage is None

    def warmup_share(self, state: Any) -> float:
        """Return the completed share of the warm-up, 0 to 1."""
        stage = state.adaptation.stage
        if stage is None or not self.warmup_moves:
            return 1.0
        return min((sum(self._windows[: stage.number]) + stage.moves) / self.warmup_moves, 1.0)

    def freeze(self, rng: RandomNumbers, state: Any) -> SamplerState:
        """Return the state with the step size whose acceptance is target_accept."""
        learned = state.adaptation
        if learned.stage is None:
            return state
        size = learned.stage.averaging.size(self.target_accept)
        return state._replace(adaptation=learned._replace(step_size=size, stage=None))


def kinetic_energy(momentum: Tensor) -> Tensor:
    """Return |p|^2 / 2 (n,) of momenta (n, dim), in float64."""
    momentum = momentum.double()
    return 0.5 * (momentum * momentum).sum(-1)
