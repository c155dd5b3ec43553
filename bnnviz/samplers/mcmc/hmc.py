r"""Sample by Hamiltonian Monte Carlo.

A move takes L leapfrog steps of $H = U(x) + |p|^2 / 2$ from position x with momentum p
(`bnnviz.samplers.mcmc.hamiltonian`) to $(x^*, p^*)$, which is accepted with probability

$$\min\{1, \exp(-(H(x^*, p^*) - H(x, p)) / T)\}.$$

Otherwise the chain stays and reverses, $p \leftarrow -p$. Before each move the momentum is partially refreshed,
$p \leftarrow a p + \sqrt{1 - a^2}\,\xi$ with $\xi \sim N(0, T I)$; a = 0 is the usual full refreshment. References:
R. M. Neal, MCMC using Hamiltonian dynamics, 2011, doi:10.1201/b10905-6; A. M. Horowitz, A generalized guided Monte
Carlo algorithm, Physics Letters B 268 (1991), 247-252, doi:10.1016/0370-2693(91)90812-5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, SHORT_DESCENT, StepBatch, Traits, counters, length
from bnnviz.samplers.budget import DRAWS, MOST_DRAWS, Budget, BudgetProposal
from bnnviz.samplers.mcmc.hamiltonian import Hamiltonian, StepSizeAndMetric, kinetic_energy
from bnnviz.samplers.mcmc.text import HMCText
from bnnviz.samplers.random import RandomNumbers


class State(NamedTuple):
    """State of all chains between two moves."""

    # Of shape (chains, dim) each
    x: Tensor
    momentum: Tensor
    # (chains,): As in `bnnviz.samplers.discrete.State`
    count: Tensor
    alive: Tensor
    # (chains,) and (chains, dim): U and its gradient at x
    potential: Tensor
    gradient: Tensor
    adaptation: StepSizeAndMetric


class Info(NamedTuple):
    """Info of one move for every chain, shape (chains,)."""

    potential: Tensor  # U before the move
    # Whether the trajectory's end was accepted (0 or 1), and its acceptance probability
    accepted: Tensor
    acceptance_rate: Tensor
    energy_error: Tensor  # Change of the total energy along the trajectory, float64
    energy: Tensor  # Total energy at the start of the trajectory, float64
    jump_distance: Tensor  # Distance from start to end of the trajectory; 0 if rejected
    n_steps: Tensor  # Leapfrog steps of the trajectory: its gradients
    diverging: Tensor  # 1 if the energy error exceeds 1000 T or is not finite
    failed: Tensor  # bool: U was not finite at the chain's position


# Leapfrog steps, gradients below which half of these are taken, and trajectories below which there is no proposal.
_AUTOMATIC_STEPS, _LITTLE, _FEWEST_TRAJECTORIES = 24, 10_000, 50
_AUTOMATIC_ACCEPTANCE = 0.9


@REGISTRY.add
class HMC(Hamiltonian):
    """Hamiltonian Monte Carlo: leapfrog trajectories with random initial velocities and a Metropolis test.

    Step size and metric are learned in the warm-up, which takes as many moves as are discarded. The number of steps of
    a trajectory is drawn for each move between half the setting and the setting, jointly for all chains, to avoid
    closed trajectories. With ``momentum_persistence`` a the velocity is partially refreshed, v <- a v + sqrt(1 - a^2)
    xi, and reversed after a rejection (Horowitz 1991). Gradients use all rows. Source: Neal 2011.
    """

    registered = "hmc"
    title = "HMC"
    traits = Traits(warms_up_by_moves=True, reference_rank=1)
    info_means = {
        "accepted": "accepted",
        "acceptance_rate": "acceptance",
        "jump_distance": "distance of a move",
        "diverging": "divergent share",
    }
    text = HMCText

    num_leapfrog_steps = settings.Integer(
        10,
        bounds=(1, 1000),
        scale="log",
        live=True,
        label="Leapfrog steps",
        doc="Maximum number of leapfrog steps of a trajectory.",
    )
    jitter = settings.Boolean(
        True,
        live=True,
        doc="Draw the number of leapfrog steps of each trajectory uniformly between half of the maximum and the"
        " maximum.",
    )
    momentum_persistence = settings.Number(
        0.0,
        bounds=(0.0, 0.999),
        step=0.05,
        live=True,
        label="Momentum",
        doc="Fraction of the velocity that is kept between transitions.",
    )

    @classmethod
    def proposal(cls, budget: Budget) -> BudgetProposal | None:
        """Return trajectories of up to 24 steps (12 on small budgets), two fifths as warm-up; None if few fit."""
        steps = _AUTOMATIC_STEPS if budget.gradients >= _LITTLE else _AUTOMATIC_STEPS // 2
        # Do not start at the mode: if noise and scales are learned it fits the noise, and chains cannot leave it.
        descent = int(min(max(0.15 * budget.gradients, 50), SHORT_DESCENT))
        trajectories = (budget.gradients - descent) / (0.75 * steps + 1)
        if trajectories < _FEWEST_TRAJECTORIES:
            return None
        warmup = int(min(0.4 * trajectories, 1000))
        every = max(1, round((trajectories - warmup) / DRAWS))
        metric = "auto" if warmup >= 200 else "diagonal"
        given = {"num_leapfrog_steps": steps, "thin": every, "mode_steps": descent, "metric": metric}
        # One of eight chains stuck in a narrow part of the posterior would bias the result.
        given["target_accept"] = _AUTOMATIC_ACCEPTANCE
        reason = f"{trajectories:,.0f} trajectories of at most {steps} steps fit in the time"
        return BudgetProposal(given, warmup, MOST_DRAWS, reason)

    @property
    def gradients_per_step(self) -> int:
        """Single-row gradients of the longest trajectory."""
        return self.target.examples * self.num_leapfrog_steps

    def gradient_cost(self, step_batch: StepBatch, counted: np.ndarray) -> int:
        """Return the single-row gradients of the block's trajectories."""
        chosen = torch.as_tensor(counted, device=step_batch.after.x.device)
        return self.target.examples * int(step_batch.column("n_steps")[:, chosen].sum())

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains at their initial positions, with momenta from N(0, T)."""
        adaptation = self.first_adaptation(rng, x0)
        return State(x0, self.fresh_momentum(rng, x0), *counters(x0), *self.target.gradient(x0), adaptation)

    def resume(self, rng: RandomNumbers, state: State, moved: bool = False) -> State:
        """Return the state with U and gradient of the current target."""
        potential, gradient = self.target.gradient(state.x)
        return state._replace(potential=potential, gradient=gradient)

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the state of chains restarted at x (chains, dim), with fresh momenta."""
        return self.resume(rng, state._replace(x=x, momentum=self.fresh_momentum(rng, x)))

    def learned_point(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Return the positions (chains, dim) and gradients from which the metric is learned."""
        return state.x, state.gradient

    def pre_draw(self, rng: RandomNumbers, state: State) -> tuple[Tensor]:
        """Draw the leapfrog steps: (num_leapfrog_steps,) ones, then zeros."""
        most = self.num_leapfrog_steps
        least = max(1, most // 2) if self.jitter else most
        count = least + (rng.uniform((1,), torch.float64) * (most - least + 1)).floor()
        return ((torch.arange(most, device=state.x.device) < count.to(state.x.device)).to(state.x.dtype),)

    def kernel(self, rng: RandomNumbers, state: State, steps_taken: Tensor) -> tuple[State, Info]:
        """Simulate a trajectory of every chain and accept or reject its end."""
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
        statistics = (
            state.potential,
            accepted.to(probability.dtype),
            probability,
            error,
            before,
            length(after.x - state.x),
        )
        steps = steps_taken.sum().expand(probability.shape)
        return after, Info(*statistics, steps, self.diverging(error).to(probability.dtype), failed)

    def _trajectory(self, state: State, momentum: Tensor, taken: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return position, momentum, U and gradient at a trajectory's end; steps not ``taken`` have size zero."""
        x, size, metric = state.x, self.size(state.adaptation), state.adaptation.metric
        potential, gradient = state.potential, state.gradient
        drifts = size * taken
        # The last half step of the momentum is merged with the first one of the next step.
        kicks = (0.5 * size) * (taken + torch.nn.functional.pad(taken[1:], (0, 1)))
        momentum = momentum - (0.5 * size) * metric.apply_transpose(gradient)
        # On the host, steps that are not taken are skipped.
        steps = int(taken.sum()) if self.host_sync else len(taken)
        for drift, kick in zip(drifts[:steps].unbind(), kicks[:steps].unbind(), strict=True):
            x = x + drift * metric.apply(momentum)
            potential, gradient = self.target.gradient(x)
            momentum = momentum - kick * metric.apply_transpose(gradient)
        return x, momentum, potential, gradient

    def tried(self, step_batch: StepBatch, step: int, chain: int) -> Tensor:
        """Return the points (n, dim) of a chain's trajectory."""
        states = step_batch.before[step], step_batch.state_after(step)
        return torch.stack(self.trajectory(*states, step_batch.infos[step], chain))

    def trajectory(self, before: State, state: State, info: Info, chain: int) -> list[Tensor]:
        """Return the points of a chain's last trajectory, recomputed backwards from its end."""
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
