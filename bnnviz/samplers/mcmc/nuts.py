r"""Sample by the No-U-Turn Sampler.

A trajectory of leapfrog steps of $H = U(x) + |p|^2 / 2$ (`bnnviz.samplers.mcmc.hamiltonian`) doubles, forward or
backward in time, until a part of it turns back. With $\rho$ the sum of the momenta of a part, minus half of those at
its ends $p_-, p_+$, it has turned if

$$p_- \cdot \rho \le 0 \quad \text{or} \quad p_+ \cdot \rho \le 0$$

(generalised criterion, Betancourt 2017, appendix A.4). The draw is one of its points. With weights
$w = \exp(-(H - H_0) / T)$ a point of a subtree is the subtree's proposal with probability $w / \sum w$ (multinomial
sampling), and the proposal of the new subtree replaces the old one with probability
$\min(1, \sum w_{new} / \sum w_{old})$ (biased progressive sampling). The tree is built without recursion: the momenta
at the starts of smaller subtrees are checkpoints, one for each depth (Phan, Pradhan and Jankowiak 2019, algorithm 2).
References: M. D. Hoffman and A. Gelman, The No-U-Turn Sampler, JMLR 15 (2014), 1593-1623; M. Betancourt, A conceptual
introduction to Hamiltonian Monte Carlo, 2017, doi:10.48550/arXiv.1701.02434; D. Phan, N. Pradhan and M. Jankowiak,
Composable effects for flexible and accelerated probabilistic programming in NumPyro, 2019,
doi:10.48550/arXiv.1912.11554.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, Traits, counters, length
from bnnviz.samplers.mcmc.hamiltonian import (
    DIVERGED,
    AdaptationInputs,
    Hamiltonian,
    StepSizeAndMetric,
    kinetic_energy,
)
from bnnviz.samplers.mcmc.text import NUTSText
from bnnviz.samplers.mcmc.tree import is_turning, levels, zeros
from bnnviz.samplers.native import NativeStep
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import choose
from bnnviz.targets import BNN

_SHOWN_DEPTH = 8  # of displayed trees
_EARLY_DEPTH = 6  # of trees in the first windows of the warm-up
_LOG_HALF = math.log(0.5)
_NATIVE = Path(__file__).with_name("nuts_step.cpp")


class PhasePoint(NamedTuple):
    """A point of every chain's trajectory: position, momentum and its force L' grad U (chains, dim)."""

    x: Tensor
    momentum: Tensor
    force: Tensor


class Proposal(NamedTuple):
    """The candidate for the next draw: position and gradient (chains, dim), its U (chains,)."""

    x: Tensor
    gradient: Tensor
    potential: Tensor


class State(NamedTuple):
    """State of all chains between two leapfrog steps, each at some point of its tree."""

    x: Tensor  # (chains, dim): The draw of the last tree
    momentum_sum: Tensor  # (chains, dim): Of the tree
    count: Tensor  # (chains,), float64: Completed trees
    # bool: Whether the chain is alive; whether the next step starts a tree
    alive: Tensor
    fresh: Tensor
    initial_energy: Tensor  # H at the tree's first point, float64
    # Ends of the trajectory: the growing one, and the other one
    front: PhasePoint
    back: PhasePoint
    # For the whole tree and for the current subtree
    proposal: Proposal
    subtree_proposal: Proposal
    # Logarithms of the sums of their points' weights, float64; -inf for a subtree without points
    log_weight: Tensor
    subtree_log_weight: Tensor
    subtree_momentum_sum: Tensor  # (chains, dim)
    direction: Tensor  # Direction of the subtree: 1 is forward in time, -1 backward
    # Fixed within a tree: a change would not conserve the energy and would lower the acceptance
    step_size: Tensor
    # int64: Of the tree, and the number of the subtree's next point, from 0
    depth: Tensor
    leaf: Tensor
    # (chains, depth, dim): Momenta at the starts of smaller subtrees, and the sums of the momenta in the subtree up to
    # there, half of the last
    checkpoint_momenta: Tensor
    checkpoint_sums: Tensor
    acceptance_sum: Tensor  # Sum of the acceptance probabilities of the tree's points, float64
    adaptation: StepSizeAndMetric


class Info(NamedTuple):
    """Info of one leapfrog step for every chain, shape (chains,); tree statistics are zero until the tree ends."""

    potential: Tensor  # U at the new point
    ended: Tensor  # bool: Whether the tree ended with this step
    acceptance_rate: Tensor  # Mean acceptance probability of the tree's points
    n_steps: Tensor  # Leapfrog steps of the tree: its gradients
    energy: Tensor  # Total energy at the start of the tree, float64
    jump_distance: Tensor  # Distance between the draw and the previous one
    diverging: Tensor  # 1 if the energy error ended the tree
    reached_max_treedepth: Tensor  # 1 if the tree reached the maximum depth
    failed: Tensor  # bool: U was not finite at the chain's position


@REGISTRY.add
class NUTS(Hamiltonian):
    """No-U-Turn Sampler: HMC with trajectories that are doubled until they make a U-turn.

    A step is one leapfrog of every chain, each in its own tree, so that no chain waits for another one's longer tree; a
    draw is made when a tree ends. Points are weighted by exp(-energy), and later subtrees are preferred (multinomial
    sampling, biased progression). The U-turn criterion uses summed velocities (Betancourt 2017, appendix A). Smaller
    subtrees are found from checkpoints, one for each depth (Phan, Pradhan and Jankowiak 2019). Step size and metric are
    learned in the warm-up, which takes as many trees as are discarded. Source: Hoffman and Gelman 2014.
    """

    registered = "nuts"
    title = "NUTS"
    traits = Traits(warms_up_by_moves=True, ends="ended", reference_rank=2)
    info_means = {
        "acceptance_rate": "acceptance",
        "n_steps": "leapfrog steps of a tree",
        "jump_distance": "distance of a draw",
        "diverging": "divergent share",
        "reached_max_treedepth": "share at maximum depth",
    }
    text = NUTSText

    max_treedepth = settings.Integer(
        10, bounds=(1, 12), live=True, doc="Maximum number of doublings of a tree, with up to 2^depth - 1 gradients."
    )

    @property
    def of_low_rank(self) -> bool:
        """Whether the metric has a few directions; by default not on a network."""
        # On the network 1-50-1 they make a step a third more expensive, with a lower ESS of the weights.
        return super().of_low_rank and not (self.metric == "auto" and isinstance(self.target, BNN))

    def deepest(self, adaptation: StepSizeAndMetric | AdaptationInputs) -> int | Tensor:
        """Return the maximum tree depth, which is smaller early in the warm-up, where the metric fits badly."""
        if isinstance(adaptation, AdaptationInputs):
            return adaptation.deepest
        return min(self.max_treedepth, _EARLY_DEPTH) if self.is_early(adaptation) else self.max_treedepth

    def adaptation_inputs(self, adaptation: StepSizeAndMetric) -> AdaptationInputs:
        """Return step size, metric and maximum tree depth as tensors."""
        inputs = super().adaptation_inputs(adaptation)
        deepest = torch.tensor(self.deepest(adaptation), device=inputs.step_size.device)
        return inputs._replace(deepest=deepest)

    @property
    def tuning_limit(self) -> int:
        """Maximum number of leapfrog steps in the warm-up."""
        return super().tuning_limit << self.max_treedepth

    @property
    def gradients_per_step(self) -> int:
        """Single-row gradients that a leapfrog step is charged."""
        return self.target.examples

    @property
    def width(self) -> int:
        """Number of values that a state stores per chain and coordinate."""
        return 13 + 2 * self.max_treedepth

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains at their initial positions."""
        adaptation = self.first_adaptation(rng, x0)
        return self._fresh(x0, *counters(x0), adaptation)

    def _fresh(self, x: Tensor, count: Tensor, alive: Tensor, adaptation: StepSizeAndMetric) -> State:
        """Return chains at x (chains, dim) that will start a tree."""
        potential, gradient = self.target.gradient(x)
        nothing, none = torch.zeros_like(x), torch.zeros_like(count)
        # The first point of a tree replaces this one.
        point, proposal = PhasePoint(x, nothing, nothing), Proposal(x, gradient, potential)
        checkpoints = x.new_zeros(len(x), self.max_treedepth, x.shape[1])
        whole = torch.zeros(len(x), dtype=torch.int64, device=x.device)
        yes = torch.ones_like(alive)
        return State(
            *(x, nothing, count, alive, yes, none, point, point, proposal, proposal, none, none - torch.inf, nothing),
            *(*[x.new_ones(len(x))] * 2, whole, whole, checkpoints, checkpoints, none, adaptation),
        )

    def pre_draw(self, rng: RandomNumbers, state: State) -> tuple[Tensor | None, Tensor | None]:
        """Draw momenta (chains, dim) and forces for the chains that start a tree; None if no chain does."""
        if not self.host_sync:
            momentum = self.fresh_momentum(rng, state.x)
        elif len(chains := state.fresh.nonzero()[:, 0]):
            fresh = self.fresh_momentum(rng, state.x[chains])
            momentum = torch.zeros_like(state.x).index_copy(0, chains, fresh)
        else:
            return None, None
        return momentum, state.adaptation.metric.apply_transpose(state.proposal.gradient)

    def kernel(
        self, rng: RandomNumbers, state: State, momentum: Tensor | None, force: Tensor | None
    ) -> tuple[State, Info]:
        """Take one leapfrog step of every chain's tree."""
        none, failed = zeros(len(state.x), state.x.device)
        if momentum is not None:
            state, failed = self._begun(state, momentum, force)
        side, log_uniform, merge_log_uniform = rng.uniform((3, len(state.x)), torch.float64).log().unbind()
        begins, completes = self._due(state)
        if begins:
            state = self._turned(state, side)
        h = state.step_size * state.direction
        point, proposal = self._leapfrog(state.front, h, state.adaptation)
        potential = proposal.potential
        log_weight = state.initial_energy - potential - kinetic_energy(point.momentum)
        if self.temperature != 1.0:
            log_weight = log_weight / self.temperature
        log_weight = log_weight.nan_to_num(-torch.inf, -torch.inf, -torch.inf)  # -inf if the energy is not finite
        state = self._extended(state, point, proposal, log_weight, log_uniform)
        state, turned = self._checkpointed(state, point.momentum)
        diverging = log_weight < -DIVERGED
        stopped = diverging | turned
        if completes:
            full = (state.leaf == 1 << state.depth) & ~stopped
            state = self._merged(state, full, merge_log_uniform)
            turned = is_turning(state.front.momentum, state.back.momentum, state.momentum_sum)
            stopped = stopped | (full & (turned | (state.depth >= self.deepest(state.adaptation))))
        ended = stopped & state.alive
        if self.host_sync and not bool(ended.any()):
            return state, Info(potential, ended, *[none] * 6, failed)
        return self._ended(state, ended, potential, diverging, failed)

    def native_step(self) -> NativeStep:
        """Return the step in C++ around a leapfrog."""

        def leapfrog(parts: list[Tensor], learned: AdaptationInputs) -> list[Tensor]:
            x, momentum, force, direction, step_size = parts
            point, proposal = self._leapfrog(PhasePoint(x, momentum, force), step_size * direction, learned)
            return [*point, proposal.gradient, proposal.potential]

        def numbers(learned: AdaptationInputs) -> list[float]:
            size, deepest = float(learned.step_size), float(learned.deepest)
            return [self.temperature, -DIVERGED, size, deepest, self.max_treedepth]

        def reads(state: State) -> list[Tensor]:
            return [*state.front, state.direction, state.step_size]

        return NativeStep(
            _NATIVE,
            reads,
            leapfrog,
            numbers,
            5,
            lambda learned: learned.metric.scale if learned.metric.factor is None else None,
        )

    def _due(self, state: State) -> tuple[bool, bool]:
        """Return whether a chain starts a subtree, and whether one may complete its subtree; True if unknown."""
        if not self.host_sync:
            return True, True
        leaves, depths = state.leaf.tolist(), state.depth.tolist()
        return 0 in leaves, any(leaf + 1 == 1 << depth for leaf, depth in zip(leaves, depths, strict=True))

    def _begun(self, state: State, momentum: Tensor, force: Tensor) -> tuple[State, Tensor]:
        """Return the state after fresh chains started a tree, and the chains with a non-finite U there."""
        fresh, proposal = state.fresh, state.proposal
        energy = proposal.potential.double() + kinetic_energy(momentum)
        failed = fresh & state.alive & ~torch.isfinite(energy)
        point = PhasePoint(proposal.x, momentum, force)
        none = torch.zeros_like(energy)
        begun = state._replace(
            momentum_sum=choose(fresh, momentum, state.momentum_sum),
            alive=state.alive & ~failed,
            fresh=torch.zeros_like(fresh),
            initial_energy=torch.where(fresh, energy, state.initial_energy),
            front=choose(fresh, point, state.front),
            back=choose(fresh, point, state.back),
            log_weight=torch.where(fresh, none, state.log_weight),
            step_size=torch.where(fresh, self.size(state.adaptation), state.step_size),
            depth=torch.where(fresh, 0, state.depth),
            acceptance_sum=torch.where(fresh, none, state.acceptance_sum),
        )
        return _without_subtree(begun, fresh), failed

    def _turned(self, state: State, side: Tensor) -> State:
        """Return the state with directions of new subtrees, from the logarithm of a random number (chains,)."""
        back = (side >= _LOG_HALF) == (state.direction > 0)
        turned = (state.leaf == 0) & back
        if self.host_sync and True not in turned.tolist():
            return state
        front, other = choose(turned, state.back, state.front), choose(turned, state.front, state.back)
        direction = torch.where(turned, -state.direction, state.direction)
        return state._replace(direction=direction, front=front, back=other)

    def _leapfrog(self, point: PhasePoint, h: Tensor, learned: StepSizeAndMetric) -> tuple[PhasePoint, Proposal]:
        """Return the next point for steps h (chains,), negative for backward in time, and its proposal."""
        h = h[:, None]
        momentum = torch.addcmul(point.momentum, h, point.force, value=-0.5)
        x = torch.addcmul(point.x, h, learned.metric.apply(momentum))
        potential, gradient = self.target.gradient(x)
        force = learned.metric.apply_transpose(gradient)
        momentum = torch.addcmul(momentum, h, force, value=-0.5)
        return PhasePoint(x, momentum, force), Proposal(x, gradient, potential)

    def _extended(
        self, state: State, point: PhasePoint, proposal: Proposal, log_weight: Tensor, log_uniform: Tensor
    ) -> State:
        """Return the state with a point added to the subtree, which becomes its proposal by its share of the weight."""
        total = torch.logaddexp(state.subtree_log_weight, log_weight)
        return state._replace(
            front=point,
            subtree_proposal=self._where(log_uniform < log_weight - total, proposal, state.subtree_proposal),
            subtree_log_weight=total,
            subtree_momentum_sum=state.subtree_momentum_sum + point.momentum,
            acceptance_sum=state.acceptance_sum + log_weight.clamp_max(0.0).exp(),
        )

    def _checkpointed(self, state: State, momentum: Tensor) -> tuple[State, Tensor]:
        """Return the state with checkpoints at the new point, and whether a subtree ending there has turned."""
        table = levels(self.max_treedepth, momentum.device)
        sums = (state.subtree_momentum_sum - 0.5 * momentum)[:, None]
        between = sums - state.checkpoint_sums
        back = torch.minimum((between * momentum[:, None]).sum(-1), (between * state.checkpoint_momenta).sum(-1))
        turned = ((back <= 0) & table.ended.index_select(0, state.leaf)).any(1)
        here = table.written.index_select(0, state.leaf)
        return state._replace(
            leaf=state.leaf + state.alive,
            checkpoint_momenta=torch.where(here, momentum[:, None], state.checkpoint_momenta),
            checkpoint_sums=torch.where(here, sums, state.checkpoint_sums),
        ), turned

    def _merged(self, state: State, full: Tensor, log_uniform: Tensor) -> State:
        """Return the state with full subtrees merged into the tree, whose proposal is updated by weight."""
        taken = full & (log_uniform < state.subtree_log_weight - state.log_weight)
        both = torch.logaddexp(state.log_weight, state.subtree_log_weight)
        merged = state._replace(
            momentum_sum=choose(full, state.momentum_sum + state.subtree_momentum_sum, state.momentum_sum),
            proposal=self._where(taken, state.subtree_proposal, state.proposal),
            log_weight=torch.where(full, both, state.log_weight),
            depth=state.depth + full,
        )
        return _without_subtree(merged, full)

    def _ended(
        self, state: State, ended: Tensor, potential: Tensor, diverging: Tensor, failed: Tensor
    ) -> tuple[State, Info]:
        """Return the state after completed trees have made their draws, and the info."""
        none, n_steps = zeros(len(state.x), state.x.device)[0], (1 << state.depth) - 1 + state.leaf
        x = choose(ended, state.proposal.x, state.x)
        deepest = (state.depth >= self.max_treedepth).double()
        acceptance, distance = state.acceptance_sum / n_steps, length(x - state.x).double()
        of_tree = acceptance, n_steps.double(), state.initial_energy, distance, diverging.double(), deepest
        info = Info(potential, ended, *(torch.where(ended, part, none) for part in of_tree), failed)
        return state._replace(x=x, fresh=ended, count=state.count + ended), info

    def _where(self, mask: Tensor, yes: Proposal, no: Proposal) -> Proposal:
        """Return ``yes`` for chains (chains,) where the mask is true, else ``no``; no copy if all agree."""
        if self.host_sync:
            chosen = mask.tolist()
            if True not in chosen:
                return no
            if False not in chosen:
                return yes
        return choose(mask, yes, no)

    def learned_point(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Return the positions (chains, dim) of completed trees, and the gradients there."""
        return state.proposal.x, state.proposal.gradient

    def sizes(self, state: State) -> Tensor:
        """Return the step sizes (chains,) of the trees."""
        return state.step_size.double()

    def ended(self, state: State, info: Info) -> Tensor:
        """Return the chains (chains,) whose tree ended with a step."""
        return info.ended

    def resume(self, rng: RandomNumbers, state: State, moved: bool = False) -> State:
        """Return the chains ready to start a tree at their last draw."""
        return self._fresh(state.x, state.count, state.alive, state.adaptation)

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the state of chains restarted at x (chains, dim)."""
        return self._fresh(x, state.count, state.alive, state.adaptation)

    def tried(self, step_batch: StepBatch, step: int, chain: int) -> Tensor:
        """Return the point (1, dim) that a step added to a chain's tree."""
        return step_batch.state_after(step).front.x[chain][None]

    def visited(self, before: list[Tensor], step_batch: StepBatch, chain: int) -> list[Tensor]:
        """Return the points of the current tree, or of the one that has just ended."""
        steps = len(step_batch.infos)
        fresh = step_batch.history("fresh")[:steps, chain].nonzero()[:, 0].tolist()
        first = fresh[-1] if fresh else 0
        points = [step_batch.before[first].x[chain]] if fresh else list(before)
        most = 1 << _SHOWN_DEPTH
        # Copied, since a view would keep the states of all chains.
        points += step_batch.history("front")[1 + max(first, steps - most) :, chain].clone().unbind()
        return points[-most:]

    def outline(self, state: State) -> State:
        """Return the parts used by draws and plots, and the chains that start a tree."""
        nothing = dict.fromkeys(State._fields)
        asked = {name: getattr(state, name) for name in ("x", "count", "alive", "fresh", "adaptation")}
        parts = {
            "front": PhasePoint(state.front.x, None, None),
            "proposal": Proposal(None, state.proposal.gradient, None),
        }
        return State(**nothing | asked | parts)


def _without_subtree(state: State, chosen: Tensor) -> State:
    """Return the state in which the subtree of chains (chains,) has no points."""
    return state._replace(
        leaf=torch.where(chosen, 0, state.leaf),
        subtree_log_weight=torch.where(chosen, -torch.inf, state.subtree_log_weight),
        subtree_momentum_sum=torch.where(chosen[:, None], 0.0, state.subtree_momentum_sum),
    )
