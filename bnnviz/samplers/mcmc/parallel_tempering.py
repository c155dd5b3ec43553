r"""Sample by parallel tempering: each chain has replicas at higher temperatures, which are swapped.

Replica k of K samples $\pi_k(x) \propto \exp(-\beta_k U(x) / T)$ with $\beta_k = \tau^{-(k-1)/(K-1)}$: the first
samples the target, and for the last, barriers are lower by the factor $\tau$. A move takes each replica along a
trajectory of Hamiltonian Monte Carlo with a separate step size. Then neighbours swap with probability

$$\min\{1, \exp((\beta_k - \beta_{k+1})(U(x_k) - U(x_{k+1})) / T)\},$$

the pairs (1, 2), (3, 4), ... after one move and (2, 3), (4, 5), ... after the next. A replica then keeps its direction
along the ladder, and its round trip takes time linear in K. References: D. J. Earl and M. W. Deem, Parallel
tempering, Physical Chemistry Chemical Physics 7 (2005), 3910-3916, doi:10.1039/B509983H; S. Syed, A. Bouchard-Cote, G.
Deligiannidis and A. Doucet, Non-reversible parallel tempering, JRSS B 84 (2022), 321-350, doi:10.1111/rssb.12464.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, Traits, counters
from bnnviz.samplers.discrete import Discrete
from bnnviz.samplers.mcmc.hamiltonian import DIVERGED
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.random import RandomNumbers

_TARGET_ACCEPT = 0.8  # of trajectories
_GAIN, _FORGETTING = 1.5, 0.6  # of the step sizes' logarithms: gain n^-forgetting at the n-th move
_VARIED = 0.2  # relative variation of the steps of a move, to avoid closed trajectories


class LadderSteps(NamedTuple):
    """The adaptation of the step sizes."""

    log_sizes: Tensor  # (temperatures,): Logarithms of the leapfrog steps' sizes
    moves: int  # Warm-up moves so far


class State(NamedTuple):
    """State of all chains between two moves."""

    x: Tensor  # (chains, dim): The replicas at the target's temperature
    replicas: Tensor  # (chains, temperatures - 1, dim): The others, by temperature
    # (chains, temperatures): Acceptance probabilities of the last trajectories
    acceptance: Tensor
    # (chains,): As in `bnnviz.samplers.discrete.State`
    count: Tensor
    alive: Tensor
    adaptation: LadderSteps


class Info(NamedTuple):
    """Info of one move for every chain."""

    potential: Tensor  # (chains,): U before the move
    # (chains,): Whether the end of the first replica's trajectory was accepted (0 or 1), and its acceptance probability
    accepted: Tensor
    acceptance_rate: Tensor
    swapped: Tensor  # (chains,): Share of swapped pairs
    diverging: Tensor  # (chains,): Whether the first replica's trajectory diverged (0 or 1)
    failed: Tensor  # bool, (chains,): U was not finite at the chain's position
    lowest: Tensor  # (chains, dim): The end with the smallest U among the trajectories
    least: Tensor  # (chains,): U there


@REGISTRY.add
class ParallelTempering(Discrete):
    """Parallel tempering: replicas of each chain at higher temperatures, sampled by HMC, with swaps between neighbours.

    Hot replicas cross barriers between modes and pass their positions on by swaps. The step sizes are learned in the
    warm-up, which takes as many moves as are discarded. A move costs one trajectory per temperature. If fewer than a
    tenth of the swaps between neighbours are accepted, use more temperatures. Source: Syed and others 2022.
    """

    registered = "parallel_tempering"
    title = "Parallel tempering"
    traits = Traits(warms_up_by_moves=True)
    info_means = {
        "acceptance_rate": "acceptance",
        "swapped": "swaps with a neighbour",
        "diverging": "divergent share",
    }

    temperatures = settings.Integer(8, bounds=(2, 64), doc="Number of replicas of each chain, one per temperature.")
    hottest = settings.Number(
        20.0, bounds=(1.0, 1e6), scale="log", doc="Highest temperature, relative to the temperature of the target."
    )
    num_leapfrog_steps = settings.Integer(
        8, bounds=(1, 1000), scale="log", label="Leapfrog steps", doc="Number of leapfrog steps of a trajectory."
    )

    @property
    def width(self) -> int:
        """Number of values that a state stores per chain and coordinate."""
        return 2 * self.temperatures

    @property
    def tuning_limit(self) -> int:
        """Maximum number of warm-up steps."""
        return max(self.warmup_moves, 1)

    @property
    def gradients_per_step(self) -> int:
        """Single-row gradients of a move."""
        return self.target.examples * self.temperatures * (self.num_leapfrog_steps + 1)

    @property
    def ladder(self) -> Tensor:
        """The inverse temperatures (temperatures,), beta / T."""
        exponents = torch.linspace(0, 1, self.temperatures, dtype=torch.float64, device=self.target.device)
        return (self.hottest**-exponents / self.temperature).to(self.target.dtype)

    # ---- initialisation, warm-up and changes

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains with all replicas at their initial positions (chains, dim)."""
        acceptance = x0.new_zeros(len(x0), self.temperatures)
        return State(x0, self._replicas(x0), acceptance, *counters(x0), self.first_adaptation(rng, x0))

    def _replicas(self, x: Tensor) -> Tensor:
        return x[:, None].expand(-1, self.temperatures - 1, -1).contiguous()

    def first_adaptation(self, rng: RandomNumbers, x: Tensor) -> LadderSteps:
        """Return step sizes from the largest curvature at points (n, dim), longer at higher temperatures."""
        size = self.largest_curvature(rng, x) ** -0.5
        return LadderSteps((size * (self.ladder[0] / self.ladder) ** 0.5).log(), 0)

    def adapt(self, rng: RandomNumbers, before: State, state: State, info: Any) -> State:
        """Increase each step size if more than the target share was accepted, with decreasing gain."""
        moves = state.adaptation.moves + 1
        if moves > self.warmup_moves:
            return state
        off = state.acceptance[state.alive].mean(0) - _TARGET_ACCEPT if bool(state.alive.any()) else 0.0
        log_sizes = state.adaptation.log_sizes + _GAIN * moves**-_FORGETTING * off
        return state._replace(adaptation=LadderSteps(log_sizes, moves))

    def is_tuned(self, state: State) -> bool:
        """Return whether the warm-up is over."""
        return state.adaptation.moves >= self.warmup_moves

    def warmup_share(self, state: State) -> float:
        """Return the completed share of the warm-up, 0 to 1."""
        return min(state.adaptation.moves / max(self.warmup_moves, 1), 1.0)

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the state of chains restarted at x (chains, dim), with all replicas."""
        return state._replace(x=x, replicas=self._replicas(x))

    # ---- the move

    def kernel(self, rng: RandomNumbers, state: State) -> tuple[State, Info]:
        """Move all replicas along trajectories, then swap neighbours."""
        x = torch.cat([state.x[:, None], state.replicas], dim=1)
        shape = x.shape
        varied = 1 + _VARIED * (2 * rng.uniform(shape[:1], x.dtype) - 1)
        sizes = (state.adaptation.log_sizes.exp() * varied[:, None]).reshape(-1, 1)
        beta = self.ladder.expand(shape[:2]).reshape(-1)
        begun, there, potentials, gain = self._trajectories(rng, x.flatten(0, 1), beta, sizes)
        probability = torch.where(torch.isfinite(gain), gain.clamp_max(0).exp(), 0.0)
        accepted = rng.uniform(probability.shape, probability.dtype) < probability
        x = torch.where(accepted[:, None], there, x.flatten(0, 1)).view(shape)
        potential = torch.where(accepted, potentials, begun).view(shape[:2])
        places, swapped = self._swaps(rng, potential, state.count)
        x = x.gather(1, places[:, :, None].expand(shape))
        before, probability = begun.view(shape[:2])[:, 0], probability.view(shape[:2])
        after, failed = self.moved(
            state, torch.isfinite(before), x=x[:, 0], replicas=x[:, 1:].contiguous(), acceptance=probability
        )
        statistics = accepted.view(shape[:2])[:, 0].to(x.dtype), probability[:, 0], swapped
        diverging = ~(gain.view(shape[:2])[:, 0] >= -DIVERGED)
        least, which = potentials.nan_to_num(torch.inf, torch.inf, -torch.inf).view(shape[:2]).min(1)
        lowest = there.view(shape).gather(1, which[:, None, None].expand(-1, 1, shape[2]))[:, 0]
        return after, Info(before, *statistics, diverging.to(x.dtype), failed, lowest, least)

    def tried(self, step_batch: StepBatch, step: int, chain: int) -> Tensor:
        """Return a chain's position and the lowest of its trajectories' ends, (2, dim)."""
        return torch.stack([step_batch.before[step].x[chain], step_batch.infos[step].lowest[chain]])

    def _trajectories(
        self, rng: RandomNumbers, x: Tensor, beta: Tensor, sizes: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return U at x (n, dim), the ends of the leapfrog trajectories, U there, and the decrease of the energy."""
        begun, g = self.target.gradient(x)
        momentum = rng.normal(x.shape, x.dtype)
        before = beta * begun + momentum.square().sum(-1) / 2
        force, potential, there = beta[:, None], begun, x
        momentum = momentum - sizes / 2 * force * g
        for step in range(self.num_leapfrog_steps):
            there = there + sizes * momentum
            potential, g = self.target.gradient(there)
            last = step == self.num_leapfrog_steps - 1
            momentum = momentum - (sizes / 2 if last else sizes) * force * g
        return begun, there, potential, before - beta * potential - momentum.square().sum(-1) / 2

    def _swaps(self, rng: RandomNumbers, potential: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        """Return the replica whose position each one takes (chains, temperatures), and the share of swapped pairs."""
        own = torch.arange(self.temperatures, device=potential.device).expand(potential.shape)
        odd = (torch.remainder(count, 2) == 1)[:, None] & (self.temperatures > 2)
        other = torch.where(odd, ((own + 1) ^ 1) - 1, own ^ 1)
        other = torch.where((other >= 0) & (other < self.temperatures), other, own)
        beta = self.ladder.expand(potential.shape)
        log_ratio = (beta - beta.gather(1, other)) * (potential - potential.gather(1, other))
        # Both replicas of a pair share a uniform number.
        mark = rng.uniform(potential.shape, potential.dtype).gather(1, torch.minimum(own, other))
        paired = other != own
        swaps = paired & (mark.log() < log_ratio)
        share = swaps.to(potential.dtype).sum(1) / paired.sum(1).clamp_min(1)
        return torch.where(swaps, other, own), share
