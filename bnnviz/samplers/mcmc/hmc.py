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

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, StepBatch, counters, length
from bnnviz.samplers.mcmc.hamiltonian import Hamiltonian, StepSizeAndScale
from bnnviz.samplers.mcmc.text import HMCText
from bnnviz.samplers.random import RandomNumbers


class State(NamedTuple):
    """All chains between two moves.

    Attributes
    ----------
    x, momentum : Tensor, shape (chains, dim)
    count, alive : Tensor, shape (chains,)
        As of `bnnviz.samplers.discrete.State`.
    adaptation : StepSizeAndScale
    """

    x: Tensor
    momentum: Tensor
    count: Tensor
    alive: Tensor
    adaptation: StepSizeAndScale


class Info(NamedTuple):
    """What one move did, for every chain, shape (chains,).

    Attributes
    ----------
    potential : Tensor
        U before the move.
    accepted, acceptance_rate : Tensor
        Whether the trajectory's end was accepted (0 or 1), and with what probability it was to be.
    energy_error : Tensor
        By how much the total energy changed along the trajectory, float64.
    jump_distance : Tensor
        How far the trajectory's end lies from its beginning; 0 where it was rejected.
    n_steps : Tensor
        Leapfrog steps of the trajectory.
    failed : Tensor, bool
        The chain stood where U is not finite.
    """

    potential: Tensor
    accepted: Tensor
    acceptance_rate: Tensor
    energy_error: Tensor
    jump_distance: Tensor
    n_steps: Tensor
    failed: Tensor


@REGISTRY.add
class HMC(Hamiltonian):
    """Hamiltonian Monte Carlo: a fresh velocity, leapfrog steps along it, and a Metropolis test of where they end.

    The step size is found in the tuning by dual averaging of all chains' acceptance (Hoffman and Gelman 2014). The
    number of steps of a trajectory is drawn for each move from half the setting to the setting, for all chains alike,
    so that no trajectory closes on itself. With ``momentum_persistence`` a the velocity is kept in part,
    v <- a v + sqrt(1 - a^2) xi, and turned where the end is rejected (Horowitz 1991). All rows are read.
    Source: Neal 2011.
    """

    registered = "hmc"
    title = "HMC"
    reference_rank = 1
    info_means = {"accepted": "accepted", "jump_distance": "distance of a move"}
    text = HMCText

    num_leapfrog_steps = settings.Integer(
        10,
        bounds=(1, 1000),
        scale="log",
        live=True,
        label="Leapfrog steps",
        doc="Most leapfrog steps of a trajectory.",
    )
    vary = settings.Boolean(
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

    @property
    def gradients_per_step(self) -> int:
        """Gradients of single rows that the longest trajectory takes."""
        return self.target.examples * (1 + self.num_leapfrog_steps)

    def gradient_cost(self, step_batch: StepBatch, counted: np.ndarray) -> int:
        """Return the gradients of single rows that the block's trajectories took."""
        chosen = torch.as_tensor(counted, device=step_batch.after.x.device)
        return self.target.examples * int((1 + step_batch.column("n_steps"))[:, chosen].sum())

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains at their starting points, with momenta from N(0, T)."""
        adaptation = self.first_adaptation(rng, x0)
        return State(x0, self.fresh_momentum(rng, x0), *counters(x0), adaptation)

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the state of chains that set out anew from x (chains, dim), with fresh momenta."""
        return state._replace(x=x, momentum=self.fresh_momentum(rng, x))

    def pre_draw(self, rng: RandomNumbers, state: State) -> Tensor:
        """Draw which leapfrog steps are taken: (num_leapfrog_steps,) ones, then zeros."""
        most = self.num_leapfrog_steps
        least = max(1, most // 2) if self.vary else most
        count = least + (rng.uniform((1,), torch.float64) * (most - least + 1)).floor()
        return (torch.arange(most, device=state.x.device) < count.to(state.x.device)).to(state.x.dtype)

    def kernel(self, rng: RandomNumbers, state: State, drawn: Tensor) -> tuple[State, Info]:
        """Follow a trajectory of every chain and accept or reject its end."""
        fresh, keep = self.fresh_momentum(rng, state.x), self.momentum_persistence
        begun = keep * state.momentum + (1 - keep**2) ** 0.5 * fresh
        potential, gradient = self.target.gradient(state.x)
        before = potential.double() + 0.5 * begun.double().square().sum(-1)
        step = self.size(state.adaptation) * state.adaptation.scale
        x, momentum, energy = self._trajectory(state.x, begun, potential, gradient, step, drawn)
        error = energy.double() + 0.5 * momentum.double().square().sum(-1) - before
        probability = self.acceptance(error)
        accepted = rng.uniform(probability.shape, probability.dtype) < probability
        finite = torch.isfinite(potential) & torch.isfinite(state.x).all(-1)
        end = torch.where(accepted[:, None], x, state.x)
        after, failed = self.moved(state, finite, x=end, momentum=torch.where(accepted[:, None], momentum, -begun))
        steps = drawn.sum().expand(probability.shape)
        distance = length(end - state.x)
        return after, Info(potential, accepted.to(probability.dtype), probability, error, distance, steps, failed)

    def _trajectory(
        self, x: Tensor, momentum: Tensor, potential: Tensor, gradient: Tensor, step: Tensor, taken: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return position, momentum and U at a trajectory's end; a step that is not ``taken`` has the size zero."""
        for each in taken.unbind():
            if self.host_sync and not bool(each):
                break
            h = step * each
            momentum = momentum - 0.5 * h * gradient
            x = x + h * momentum
            potential, gradient = self.target.gradient(x)
            momentum = momentum - 0.5 * h * gradient
        return x, momentum, potential

    def trajectory(self, before: State, state: State, info: Info, chain: int) -> list[Tensor]:
        """Return the points of a chain's last trajectory: the dynamics can be reversed, so they follow from its end."""
        accepted = bool(info.accepted[chain])
        x, momentum = (part[chain : chain + 1] for part in (state.x, state.momentum))
        step = self.size(before.adaptation) * before.adaptation.scale
        points = [x[0]]
        momentum = -momentum
        for _ in range(int(info.n_steps[chain])):
            momentum = momentum - 0.5 * step * self.target.gradient(x)[1]
            x = x + step * momentum
            momentum = momentum - 0.5 * step * self.target.gradient(x)[1]
            points.append(x[0])
        return points[::-1] if accepted else points
