r"""Sample by Hamiltonian Monte Carlo.

From position x with momentum p a move follows L leapfrog steps of $H = U(x) + |p|^2 / 2$
(`bnnviz.samplers.mcmc.hamiltonian`) to $(x^*, p^*)$ and goes there with probability

$$\min\{1, \exp(-(H(x^*, p^*) - H(x, p)) / T)\},$$

else it stays and turns, $p \leftarrow -p$. Before each move the momentum is refreshed in part,
$p \leftarrow a p + \sqrt{1 - a^2}\,\xi$ with $\xi \sim N(0, T I)$; a = 0 is the usual full refreshment. References:
R. M. Neal, MCMC using Hamiltonian dynamics, 2011, doi:10.1201/b10905-6; A. M. Horowitz, A generalized guided Monte
Carlo algorithm, Physics Letters B 268 (1991), 247-252, doi:10.1016/0370-2693(91)90812-5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, SHORT_DESCENT, StepBatch, Traits, counters, length
from bnnviz.samplers.budget import DRAWS, MOST_DRAWS, Budget, BudgetProposal
from bnnviz.samplers.mcmc import chees
from bnnviz.samplers.mcmc.chees import TrajectoryLength
from bnnviz.samplers.mcmc.hamiltonian import Hamiltonian, Stage, StepSizeAndMetric, kinetic_energy
from bnnviz.samplers.mcmc.metric import Metric
from bnnviz.samplers.mcmc.text import HMCText
from bnnviz.samplers.random import RandomNumbers


class LearnedLength(NamedTuple):
    """What HMC has learned where it learns the length of trajectories too."""

    # As of `StepSizeAndMetric`
    step_size: float
    metric: Metric
    stage: Stage | None
    length: TrajectoryLength


class State(NamedTuple):
    """All chains between two moves."""

    # Of shape (chains, dim) each
    x: Tensor
    momentum: Tensor
    # (chains,): As of `bnnviz.samplers.discrete.State`
    count: Tensor
    alive: Tensor
    # (chains,) and (chains, dim): U and its gradient at x
    potential: Tensor
    gradient: Tensor
    adaptation: StepSizeAndMetric | LearnedLength  # StepSizeAndMetric or LearnedLength


class Info(NamedTuple):
    """What one move did, for every chain, shape (chains,)."""

    potential: Tensor  # U before the move
    # Whether the trajectory's end was accepted (0 or 1), and with what probability it was to be
    accepted: Tensor
    acceptance_rate: Tensor
    energy_error: Tensor  # By how much the total energy changed along the trajectory, float64
    energy: Tensor  # Total energy where the trajectory began, float64
    jump_distance: Tensor  # How far the trajectory's end lies from its beginning; 0 where it was rejected
    n_steps: Tensor  # Leapfrog steps of the trajectory: its gradients
    diverging: Tensor  # 1 where the energy's error is over 1000 T, or not finite
    failed: Tensor  # bool: The chain stood where U is not finite


# Leapfrog steps, gradients below which half of these are taken, and trajectories below which nothing is learned.
_AUTOMATIC_STEPS, _LITTLE, _FEWEST_TRAJECTORIES = 24, 10_000, 50
_AUTOMATIC_ACCEPTANCE = 0.9


@REGISTRY.add
class HMC(Hamiltonian):
    """Hamiltonian Monte Carlo: a fresh velocity, leapfrog steps along it, and a Metropolis test of where they end.

    Step size and metric are learned in the warm-up, which takes as many moves as are discarded. The number of steps of
    a trajectory is drawn for each move from half the setting to the setting, for all chains alike,
    so that no trajectory closes on itself. With many chains the warm-up may learn the length of trajectories instead
    (ChEES, Hoffman, Radul and Sountsov 2021). With ``momentum_persistence`` a the velocity is kept in part,
    v <- a v + sqrt(1 - a^2) xi, and turned where the end is rejected (Horowitz 1991). All rows are read.
    Source: Neal 2011.
    """

    registered = "hmc"
    title = "HMC"
    traits = Traits(warms_up_by_moves=True, reference_rank=1)
    info_means = {
        "accepted": "accepted",
        "acceptance_rate": "acceptance",
        "jump_distance": "distance of a move",
        "diverging": "share that diverged",
    }
    text = HMCText

    trajectory_length = settings.Choice(
        "steps",
        objects=["steps", "chees"],
        label="Trajectory length",
        doc="steps: that of the leapfrog steps. chees: learned in the warm-up from all chains, of which there should be"
        " 64 or more (Hoffman, Radul and Sountsov 2021); it is not compiled.",
    )
    num_leapfrog_steps = settings.Integer(
        10,
        bounds=(1, 1000),
        scale="log",
        live=True,
        label="Leapfrog steps",
        doc="Most leapfrog steps of a trajectory whose length is not learned.",
    )
    jitter = settings.Boolean(
        True,
        live=True,
        doc="Draw the number of leapfrog steps for each move, from half of them on; else all are taken.",
    )
    momentum_persistence = settings.Number(
        0.0,
        bounds=(0.0, 0.999),
        step=0.05,
        live=True,
        label="Momentum",
        doc="Share of the velocity that a move keeps.",
    )

    @classmethod
    def proposal(cls, budget: Budget) -> BudgetProposal | None:
        """Return trajectories of up to 24 steps, 12 in little time, two fifths to warm up; None where few fit."""
        steps = _AUTOMATIC_STEPS if budget.gradients >= _LITTLE else _AUTOMATIC_STEPS // 2
        # Not to the mode: where noise and scales are learned it fits the noise, and chains do not get out of it.
        descent = int(min(max(0.15 * budget.gradients, 50), SHORT_DESCENT))
        trajectories = (budget.gradients - descent) / (0.75 * steps + 1)
        if trajectories < _FEWEST_TRAJECTORIES:
            return None
        warmup = int(min(0.4 * trajectories, 1000))
        every = max(1, round((trajectories - warmup) / DRAWS))
        metric = "auto" if warmup >= 200 else "diagonal"
        given = {"num_leapfrog_steps": steps, "every": every, "mode_steps": descent, "metric": metric}
        # One chain of eight that stands still where the posterior is narrow cannot be made up for by the others then.
        given["target_accept"] = _AUTOMATIC_ACCEPTANCE
        reason = f"{trajectories:,.0f} trajectories of {steps} steps at most fit in the time"
        return BudgetProposal(given, warmup, MOST_DRAWS, reason)

    @property
    def learns_length(self) -> bool:
        """Whether the length of trajectories is learned."""
        return self.trajectory_length == "chees"

    @property
    def compiles(self) -> bool:
        """Whether every trajectory has equally many operations; one of a learned length has not."""
        return not self.learns_length

    @property
    def gradients_per_step(self) -> int:
        """Gradients of single rows that the longest trajectory takes."""
        return self.target.examples * self.num_leapfrog_steps

    def gradient_cost(self, step_batch: StepBatch, counted: np.ndarray) -> int:
        """Return the gradients of single rows that the block's trajectories took."""
        chosen = torch.as_tensor(counted, device=step_batch.after.x.device)
        return self.target.examples * int(step_batch.column("n_steps")[:, chosen].sum())

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains at their starting points, with momenta from N(0, T)."""
        adaptation = self.first_adaptation(rng, x0)
        return State(x0, self.fresh_momentum(rng, x0), *counters(x0), *self.target.gradient(x0), adaptation)

    def resume(self, rng: RandomNumbers, state: State, moved: bool = False) -> State:
        """Return the state with U and gradient as the target has them now."""
        potential, gradient = self.target.gradient(state.x)
        return state._replace(potential=potential, gradient=gradient)

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the state of chains that set out anew from x (chains, dim), with fresh momenta."""
        return self.resume(rng, state._replace(x=x, momentum=self.fresh_momentum(rng, x)))

    def learned_point(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Return the positions (chains, dim) that the metric is learned from, and the gradients there."""
        return state.x, state.gradient

    def pre_draw(self, rng: RandomNumbers, state: State) -> tuple[Tensor]:
        """Draw which leapfrog steps are taken: (num_leapfrog_steps,) ones, then zeros; or as many ones as are due."""
        if self.learns_length:
            return (state.x.new_ones(self._learned_steps(rng, state.adaptation)),)
        most = self.num_leapfrog_steps
        least = max(1, most // 2) if self.jitter else most
        count = least + (rng.uniform((1,), torch.float64) * (most - least + 1)).floor()
        return ((torch.arange(most, device=state.x.device) < count.to(state.x.device)).to(state.x.dtype),)

    def _learned_steps(self, rng: RandomNumbers, learned: LearnedLength) -> int:
        """Draw how many steps a trajectory of the learned length has: any share of it, or all."""
        share = float(rng.uniform((1,), torch.float64)) if self.jitter else 1.0
        return learned.length.steps(self.size(learned), share)

    def first_adaptation(self, rng: RandomNumbers, x: Tensor) -> StepSizeAndMetric | LearnedLength:
        """Return what the warm-up begins with."""
        learned = super().first_adaptation(rng, x)
        return (
            LearnedLength(*learned, TrajectoryLength.first(learned.step_size, False)) if self.learns_length else learned
        )

    def adapt(self, rng: RandomNumbers, before: State, state: State, info: Info) -> State:
        """Note what a move teaches, of the length of trajectories too where that is learned."""
        learned = state.adaptation
        if self.learns_length and learned.stage is not None:
            size, scale = self.size(learned), learned.metric.scale
            velocity = learned.metric.apply(state.momentum) / scale
            slope = chees.derivative(before.x / scale, state.x / scale, velocity, (info.accepted > 0) & state.alive)
            length = learned.length.updated(slope * size * float(info.n_steps[0]), size)
            state = state._replace(adaptation=learned._replace(length=length))
        return super().adapt(rng, before, state, info)

    def with_metric(self, learned: Any, size: float, metric: Metric, stage: Stage) -> Any:
        """Return what was learned with a new metric; the length that was learned is none of it."""
        learned = super().with_metric(learned, size, metric, stage)
        return learned._replace(length=TrajectoryLength.first(size, True)) if self.learns_length else learned

    def freeze(self, rng: RandomNumbers, state: State) -> State:
        """Return the state with the means of the step sizes and lengths that were tried."""
        learned = state.adaptation
        if self.learns_length and learned.stage is not None:
            state = state._replace(adaptation=learned._replace(length=learned.length.frozen()))
        return super().freeze(rng, state)

    def kernel(self, rng: RandomNumbers, state: State, steps_taken: Tensor) -> tuple[State, Info]:
        """Follow a trajectory of every chain and accept or reject its end."""
        fresh, keep = self.fresh_momentum(rng, state.x), self.momentum_persistence
        begun = keep * state.momentum + (1 - keep**2) ** 0.5 * fresh if keep else fresh
        before = state.potential.double() + kinetic_energy(begun)
        x, momentum, potential, gradient = self._trajectory(state, begun, steps_taken)
        error = potential.double() + kinetic_energy(momentum) - before
        probability = self.acceptance(error)
        accepted = rng.uniform(probability.shape, probability.dtype) < probability
        finite, taken = torch.isfinite(before), accepted[:, None]
        after, failed = self.moved(
            state,
            finite,
            x=torch.where(taken, x, state.x),
            momentum=torch.where(taken, momentum, -begun),
            potential=torch.where(accepted, potential, state.potential),
            gradient=torch.where(taken, gradient, state.gradient),
        )
        told = state.potential, accepted.to(probability.dtype), probability, error, before, length(after.x - state.x)
        steps = steps_taken.sum().expand(probability.shape)
        return after, Info(*told, steps, self.diverging(error).to(probability.dtype), failed)

    def _trajectory(self, state: State, momentum: Tensor, taken: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return position, momentum, U and gradient at a trajectory's end; a step not ``taken`` has the size zero.

        The last half step of the momentum and the first one of the next step are one.
        """
        x, size, metric = state.x, self.size(state.adaptation), state.adaptation.metric
        potential, gradient = state.potential, state.gradient
        drifts = size * taken
        kicks = (0.5 * size) * (taken + torch.nn.functional.pad(taken[1:], (0, 1)))
        momentum = momentum - (0.5 * size) * metric.apply_transpose(gradient)
        # On the host nothing is done for steps that are not taken.
        steps = int(taken.sum()) if self.host_sync else len(taken)
        for drift, kick in zip(drifts[:steps].unbind(), kicks[:steps].unbind(), strict=True):
            x = x + drift * metric.apply(momentum)
            potential, gradient = self.target.gradient(x)
            momentum = momentum - kick * metric.apply_transpose(gradient)
        return x, momentum, potential, gradient

    def infinite_density(self, step_batch: StepBatch) -> Tensor:
        """Return where a trajectory began or ended at U = minus infinity, (steps, chains)."""
        return (step_batch.column("potential") == -torch.inf) | (step_batch.column("energy_error") == -torch.inf)

    def tried(self, step_batch: StepBatch, step: int, chain: int) -> Tensor:
        """Return the points (n, dim) of a chain's trajectory."""
        states = step_batch.before[step], step_batch.state_after(step)
        return torch.stack(self.trajectory(*states, step_batch.infos[step], chain))

    def trajectory(self, before: State, state: State, info: Info, chain: int) -> list[Tensor]:
        """Return the points of a chain's last trajectory: the dynamics can be reversed, so they follow from its end."""
        accepted = bool(info.accepted[chain])
        size, metric = self.size(before.adaptation), before.adaptation.metric
        one = slice(chain, chain + 1)
        x, momentum, gradient = state.x[one], -state.momentum[one], state.gradient[one]
        points = [x[0]]
        for _ in range(int(info.n_steps[chain])):
            momentum = momentum - 0.5 * size * metric.apply_transpose(gradient)
            x = x + size * metric.apply(momentum)
            gradient = self.target.gradient(x)[1]
            momentum = momentum - 0.5 * size * metric.apply_transpose(gradient)
            points.append(x[0])
        return points[::-1] if accepted else points
