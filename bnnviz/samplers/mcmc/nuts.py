r"""Sample by the No-U-Turn Sampler.

A trajectory of leapfrog steps of $H = U(x) + |p|^2 / 2$ (`bnnviz.samplers.mcmc.hamiltonian`) doubles, forward or back
in time, until a stretch of it turns back. With $\rho$ the sum of the momenta of a stretch, less half of those at its
ends $p_-, p_+$, it has turned where

$$p_- \cdot \rho \le 0 \quad \text{or} \quad p_+ \cdot \rho \le 0$$

(generalised criterion, Betancourt 2017, appendix A.4). The draw is one of its points: with weights
$w = \exp(-(H - H_0) / T)$ a point of a subtree is the subtree's proposal with probability $w / \sum w$ (multinomial
sampling), and the proposal of the new subtree replaces the old one with probability
$\min(1, \sum w_{new} / \sum w_{old})$ (biased progressive sampling). The tree is built without recursion: the momenta
where smaller subtrees began are checkpoints, one for each depth (Phan, Pradhan and Jankowiak 2019, algorithm 2).
References: M. D. Hoffman and A. Gelman, The No-U-Turn Sampler, JMLR 15 (2014), 1593-1623; M. Betancourt, A conceptual
introduction to Hamiltonian Monte Carlo, 2017, doi:10.48550/arXiv.1701.02434; D. Phan, N. Pradhan and M. Jankowiak,
Composable effects for flexible and accelerated probabilistic programming in NumPyro, 2019,
doi:10.48550/arXiv.1912.11554.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, counters, length
from bnnviz.samplers.mcmc.hamiltonian import Hamiltonian, StepSizeAndScale
from bnnviz.samplers.mcmc.text import NUTSText
from bnnviz.samplers.random import RandomNumbers

_DIVERGED = 1000.0  # error of the energy, in units of the temperature
_SHOWN_DEPTH = 8  # of a tree's picture
_WARMUP_DEPTH = 6  # of trees in the warm-up: before the scales are known they would be long ones


class PhasePoint(NamedTuple):
    """A point of the trajectory, for every chain: position, momentum and gradient (chains, dim)."""

    x: Tensor
    momentum: Tensor
    gradient: Tensor


class Proposal(NamedTuple):
    """The point that would be the next draw: position and gradient (chains, dim), its U (chains,)."""

    x: Tensor
    gradient: Tensor
    potential: Tensor


class State(NamedTuple):
    """All chains between two leapfrog steps, each somewhere in its own tree.

    Attributes
    ----------
    x : Tensor, shape (chains, dim)
        Where the last tree has led.
    momentum_sum : Tensor, shape (chains, dim)
        Of the tree.
    count : Tensor, shape (chains,), float64
        Trees that have ended.
    alive, fresh : Tensor, bool
        Whether the chain is still followed; whether the next step begins a tree.
    initial_energy : Tensor
        H at the tree's first point, float64.
    left, right : PhasePoint
        Ends of the trajectory.
    proposal, subtree_proposal : Proposal
        Of the whole tree, and of the subtree that is being built.
    log_weight, subtree_log_weight : Tensor
        Logarithms of the sums of their points' weights, float64.
    subtree_momentum_sum : Tensor, shape (chains, dim)
    forward : Tensor, bool
        Direction in which the subtree grows.
    depth, leaf : Tensor, int64
        Of the tree, and the number of the subtree's next point, from 0.
    checkpoint_momenta, checkpoint_sums : Tensor, shape (chains, depth, dim)
        Momenta, and their sums from the subtree's beginning, where smaller subtrees in it began.
    acceptance_sum : Tensor
        Sum of the acceptance probabilities of the tree's points, float64.
    n_steps : Tensor
        Leapfrog steps of the tree, float64.
    adaptation : StepSizeAndScale
    """

    x: Tensor
    momentum_sum: Tensor
    count: Tensor
    alive: Tensor
    fresh: Tensor
    initial_energy: Tensor
    left: PhasePoint
    right: PhasePoint
    proposal: Proposal
    subtree_proposal: Proposal
    log_weight: Tensor
    subtree_log_weight: Tensor
    subtree_momentum_sum: Tensor
    forward: Tensor
    depth: Tensor
    leaf: Tensor
    checkpoint_momenta: Tensor
    checkpoint_sums: Tensor
    acceptance_sum: Tensor
    n_steps: Tensor
    adaptation: StepSizeAndScale


class Info(NamedTuple):
    """What one leapfrog step did, for every chain, shape (chains,); of the tree only where it has ended, else zero.

    Attributes
    ----------
    potential : Tensor
        U at the new point.
    ended : Tensor, bool
        Whether the tree has ended with this step.
    acceptance_rate : Tensor
        Mean acceptance probability of the tree's points.
    n_steps : Tensor
        Leapfrog steps of the tree: its gradients.
    jump_distance : Tensor
        How far the draw lies from the one before.
    diverging : Tensor
        1 where the energy's error has ended the tree.
    failed : Tensor, bool
        The chain stood where U is not finite.
    """

    potential: Tensor
    ended: Tensor
    acceptance_rate: Tensor
    n_steps: Tensor
    jump_distance: Tensor
    diverging: Tensor
    failed: Tensor


@REGISTRY.add
class NUTS(Hamiltonian):
    """No-U-Turn Sampler: trajectories that double, forward or back, until they turn; the draw is one of their points.

    A step is one leapfrog of every chain, each in its own tree, so that no chain waits for another one's longer tree:
    a draw comes when a tree has ended. Points are weighted by exp(-energy), the later subtree preferred (multinomial
    sampling, biased progression), and the turn is that of the summed velocities (Betancourt 2017, appendix A); smaller
    subtrees are found from marks, one for each depth (Phan, Pradhan and Jankowiak 2019). Step size and scales are
    learnt in the tuning. Source: Hoffman and Gelman 2014.
    """

    registered = "nuts"
    title = "NUTS"
    reference_rank = 2
    info_means = {
        "acceptance_rate": "acceptance",
        "n_steps": "leapfrog steps of a tree",
        "jump_distance": "distance of a draw",
        "diverging": "share that diverged",
    }
    text = NUTSText
    tuning_limit = 20_000

    max_depth = settings.Integer(
        10, bounds=(1, 12), live=True, doc="A tree ends when it has doubled so often: 2^depth - 1 gradients."
    )

    @property
    def gradients_per_step(self) -> int:
        """Gradients of single rows that a leapfrog step is charged for."""
        return self.target.examples

    @property
    def width(self) -> int:
        """Numbers that a state holds of each chain and coordinate."""
        return 13 + 2 * self.max_depth

    def deepest(self, adaptation: StepSizeAndScale) -> int:
        """Return how often a tree may double: in the warm-up fewer times."""
        return self.max_depth if adaptation.stage is None else min(self.max_depth, _WARMUP_DEPTH)

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains at their starting points."""
        adaptation = self.first_adaptation(rng, x0)
        return self._fresh(x0, *counters(x0), adaptation)

    def _fresh(self, x: Tensor, count: Tensor, alive: Tensor, adaptation: StepSizeAndScale) -> State:
        """Return chains at x (chains, dim) that are about to begin a tree."""
        potential, gradient = self.target.gradient(x)
        nothing, none = torch.zeros_like(x), torch.zeros_like(count)
        point, proposal = PhasePoint(x, nothing, gradient), Proposal(x, gradient, potential)
        checkpoints = x.new_zeros(len(x), self.max_depth, x.shape[1])
        whole = torch.zeros(len(x), dtype=torch.int64, device=x.device)
        yes = torch.ones_like(alive)
        return State(
            *(x, nothing, count, alive, yes, none, point, point, proposal, proposal, none, none, nothing, yes),
            *(whole, whole, checkpoints, checkpoints, none, none, adaptation),
        )

    def pre_draw(self, rng: RandomNumbers, state: State) -> tuple[Tensor | None]:
        """Draw momenta (chains, dim) for the chains that begin a tree; None where none does."""
        if not self.host_sync:
            return (self.fresh_momentum(rng, state.x),)
        chains = state.fresh.nonzero()[:, 0]
        if not len(chains):
            return (None,)
        fresh = self.fresh_momentum(rng, state.x[chains])
        return (torch.zeros_like(state.x).index_copy(0, chains, fresh),)

    def kernel(self, rng: RandomNumbers, state: State, drawn: tuple[Tensor | None]) -> tuple[State, Info]:
        """Take one leapfrog step of every chain's tree."""
        if drawn[0] is not None:
            state = self._begun(state, drawn[0])
        direction, lot, last_lot = rng.uniform((3, len(state.x)), torch.float64)
        forward = torch.where(state.leaf == 0, direction < 0.5, state.forward)
        point, potential = self._leapfrog(_where(forward, state.right, state.left), forward, state.adaptation)
        energy = potential.double() + _kinetic(point.momentum)
        error = ((energy - state.initial_energy) / self.temperature).nan_to_num(torch.inf, torch.inf, torch.inf)
        proposal = Proposal(point.x, point.gradient, potential)
        state = self._extended(state._replace(forward=forward), point, proposal, error, lot)
        state, turned = self._checkpointed(state, point.momentum)
        diverging = error > _DIVERGED
        stopped = diverging | turned
        full = ~stopped & (state.leaf + 1 == 1 << state.depth)
        state = self._merged(state, full, last_lot)
        whole = _is_turning(state.left.momentum, state.right.momentum, state.momentum_sum)
        whole = whole | (state.depth >= self.deepest(state.adaptation))
        return self._ended(state, stopped | (full & whole), potential, diverging)

    def _begun(self, state: State, momentum: Tensor) -> State:
        """Return the state in which chains that are fresh have begun a tree with momenta (chains, dim)."""
        fresh = state.fresh
        point = PhasePoint(state.proposal.x, momentum, state.proposal.gradient)
        energy = state.proposal.potential.double() + _kinetic(momentum)
        zero = torch.zeros_like(state.leaf)
        none = torch.zeros_like(state.initial_energy)
        return state._replace(
            momentum_sum=_where(fresh, momentum, state.momentum_sum),
            fresh=torch.zeros_like(fresh),
            initial_energy=torch.where(fresh, energy, state.initial_energy),
            left=_where(fresh, point, state.left),
            right=_where(fresh, point, state.right),
            log_weight=torch.where(fresh, none, state.log_weight),
            depth=torch.where(fresh, zero, state.depth),
            leaf=torch.where(fresh, zero, state.leaf),
            acceptance_sum=torch.where(fresh, none, state.acceptance_sum),
            n_steps=torch.where(fresh, none, state.n_steps),
        )

    def _leapfrog(self, point: PhasePoint, forward: Tensor, adaptation: StepSizeAndScale) -> tuple[PhasePoint, Tensor]:
        """Return the next point in a direction, and U there."""
        size = self.size(adaptation)
        h = torch.where(forward, size, -size).to(point.x.dtype)[:, None] * adaptation.scale
        momentum = point.momentum - 0.5 * h * point.gradient
        x = point.x + h * momentum
        potential, gradient = self.target.gradient(x)
        return PhasePoint(x, momentum - 0.5 * h * gradient, gradient), potential

    def _extended(self, state: State, point: PhasePoint, proposal: Proposal, error: Tensor, lot: Tensor) -> State:
        """Return the state with a point added to the subtree, which it is proposed of by its share of the weight."""
        first, log_weight = state.leaf == 0, -error
        total = torch.where(first, log_weight, torch.logaddexp(state.subtree_log_weight, log_weight))
        taken = first | (lot.log() < log_weight - total)
        return state._replace(
            left=_where(state.forward, state.left, point),
            right=_where(state.forward, point, state.right),
            subtree_proposal=_where(taken, proposal, state.subtree_proposal),
            subtree_log_weight=total,
            subtree_momentum_sum=_where(first, point.momentum, state.subtree_momentum_sum + point.momentum),
            acceptance_sum=state.acceptance_sum + log_weight.clamp_max(0.0).exp(),
            n_steps=state.n_steps + 1,
        )

    def _checkpointed(self, state: State, momentum: Tensor) -> tuple[State, Tensor]:
        """Return the state with checkpoints at the new point, and whether a smaller subtree that it ends has turned.

        A point of even number begins subtrees; one of odd number ends as many as its number has ones at the end.
        """
        levels = torch.arange(self.max_depth, device=momentum.device)
        bits = (state.leaf[:, None] >> levels) & 1
        highest = bits[:, 1:].sum(1, keepdim=True)
        lowest = highest - bits.cumprod(1).sum(1, keepdim=True) + 1
        even = bits[:, :1] == 0
        ends = ~even & (levels >= lowest) & (levels <= highest)
        sums = state.subtree_momentum_sum[:, None]
        between = sums - state.checkpoint_sums + state.checkpoint_momenta
        turned = (_is_turning(state.checkpoint_momenta, momentum[:, None], between) & ends).any(1)
        here = (even & (levels == highest))[..., None]
        return state._replace(
            checkpoint_momenta=torch.where(here, momentum[:, None], state.checkpoint_momenta),
            checkpoint_sums=torch.where(here, sums, state.checkpoint_sums),
        ), turned

    def _merged(self, state: State, full: Tensor, lot: Tensor) -> State:
        """Return the state in which full subtrees are part of the tree; by weight the proposal moves there."""
        taken = full & (lot.log() < state.subtree_log_weight - state.log_weight)
        both = torch.logaddexp(state.log_weight, state.subtree_log_weight)
        return state._replace(
            momentum_sum=_where(full, state.momentum_sum + state.subtree_momentum_sum, state.momentum_sum),
            proposal=_where(taken, state.subtree_proposal, state.proposal),
            log_weight=torch.where(full, both, state.log_weight),
            depth=state.depth + full,
            leaf=torch.where(full, 0, state.leaf + 1),
        )

    def _ended(self, state: State, ended: Tensor, potential: Tensor, diverging: Tensor) -> tuple[State, Info]:
        """Return the state in which trees that have ended give their draw, and what happened."""
        finite = torch.isfinite(state.initial_energy)
        ended = ended & state.alive & finite
        failed = state.alive & ~finite
        x = _where(ended, state.proposal.x, state.x)
        acceptance = state.acceptance_sum / state.n_steps
        of_tree = (acceptance, state.n_steps, length(x - state.x).double(), (diverging & ended).double())
        info = Info(potential, ended, *(torch.where(ended, part, 0.0) for part in of_tree), failed)
        return state._replace(x=x, fresh=ended, count=state.count + ended, alive=state.alive & finite), info

    def ended(self, state: State, info: Info) -> Tensor:
        """Return of which chains (chains,) a tree has ended with a step."""
        return info.ended

    def end_window(self, rng: RandomNumbers, state: State, last: bool) -> State:
        """Go on with the warm-up; at its end all chains begin a tree, of steps of one size."""
        state = super().end_window(rng, state, last)
        return self.resume(rng, state) if self.is_tuned(state) else state

    def resume(self, rng: RandomNumbers, state: State, moved: bool = False) -> State:
        """Return the chains about to begin a tree where the last one has led."""
        return self._fresh(state.x, state.count, state.alive, state.adaptation)

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the state of chains that set out anew from x (chains, dim)."""
        return self._fresh(x, state.count, state.alive, state.adaptation)

    def visited(self, before: list[Tensor], states: list[State], chain: int) -> list[Tensor]:
        """Return the points of the tree under way, or of the one that has just ended."""
        fresh = torch.stack([state.fresh[chain] for state in states[:-1]]).nonzero()[:, 0].tolist()
        first = fresh[-1] if fresh else 0
        points = [states[first].x[chain]] if fresh else list(before)
        for state in states[first + 1 :]:
            points.append((state.right if state.forward[chain] else state.left).x[chain])
        return points[-(1 << _SHOWN_DEPTH) :]


def _kinetic(momentum: Tensor) -> Tensor:
    return 0.5 * momentum.double().square().sum(-1)


def _is_turning(first: Tensor, last: Tensor, total: Tensor) -> Tensor:
    """Return whether the ends (..., dim) of a trajectory go back on the sum of its momenta, its ends counting half."""
    total = total - 0.5 * (first + last)
    return ((first * total).sum(-1) <= 0) | ((last * total).sum(-1) <= 0)


def _where(mask: Tensor, yes: Any, no: Any) -> Any:
    """Return tensors, or tuples of them, with those chains (chains,) of the first for which the mask is true."""
    if isinstance(yes, Tensor):
        return torch.where(mask if yes.ndim == 1 else mask[:, None], yes, no)
    return type(yes)(*(_where(mask, *parts) for parts in zip(yes, no, strict=True)))
