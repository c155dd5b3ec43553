"""The No-U-Turn Sampler."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.mcmc.hamiltonian import Hamiltonian
from bnnviz.samplers.tree import rebuilt

_DIVERGED = 1000.0  # error of the energy, in units of the temperature
_SHOWN_DEPTH = 8  # of a tree's picture
_TUNING_DEPTH = 6  # of trees in the tuning: before the scales are known they would be long ones


class Point(NamedTuple):
    """A point of the trajectory, for every chain: position, velocity and gradient (chains, dim)."""

    x: Tensor
    v: Tensor
    g: Tensor


class Choice(NamedTuple):
    """The point that would be the next draw: position and gradient (chains, dim), its U (chains,)."""

    x: Tensor
    g: Tensor
    potential: Tensor


class State(NamedTuple):
    """All chains between two leapfrog steps, each somewhere in its own tree.

    Attributes
    ----------
    x : Tensor, shape (chains, dim)
        Where the last tree has led.
    v : Tensor, shape (chains, dim)
        Sum of the velocities of the tree, for its U-turn.
    count : Tensor, shape (chains,), float64
        Trees that have ended.
    alive, fresh : Tensor, bool
        Whether the chain is still followed; whether the next step begins a tree.
    start : Tensor
        Total energy at the tree's first point, float64.
    left, right : Point
        Ends of the trajectory.
    tree, part : Choice
        What would be drawn of the whole tree, and of the subtree that is being built.
    tree_weight, part_weight : Tensor
        Logarithm of the sum of their points' weights, float64.
    part_v : Tensor, shape (chains, dim)
        Sum of the velocities of the subtree.
    forward : Tensor, bool
        Direction in which the subtree grows.
    depth, leaf : Tensor, int64
        Of the tree, and the number of the subtree's next point, from 0.
    marks_v, marks_sum : Tensor, shape (chains, depth, dim)
        Velocities, and their sums from the subtree's beginning, where smaller subtrees in it began.
    acceptance_sum : Tensor
        Sum of the acceptance probabilities of the tree's points, float64.
    leaves : Tensor
        Points of the tree but its first.
    """

    x: Tensor
    v: Tensor
    count: Tensor
    alive: Tensor
    fresh: Tensor
    start: Tensor
    left: Point
    right: Point
    tree: Choice
    part: Choice
    tree_weight: Tensor
    part_weight: Tensor
    part_v: Tensor
    forward: Tensor
    depth: Tensor
    leaf: Tensor
    marks_v: Tensor
    marks_sum: Tensor
    acceptance_sum: Tensor
    leaves: Tensor


class Info(NamedTuple):
    """What one leapfrog step did, for every chain, shape (chains,); of the tree only where it has ended, else zero.

    Attributes
    ----------
    potential : Tensor
        U at the new point.
    ended : Tensor, bool
        Whether the tree has ended with this step.
    chance : Tensor
        Mean chance of the tree's points to be accepted.
    leaves : Tensor
        Points of the tree but its first: its gradients.
    went : Tensor
        How far the draw lies from the one before.
    diverged : Tensor
        1 where the energy's error has ended the tree.
    failed : Tensor, bool
        The chain stood where U is not finite.
    """

    potential: Tensor
    ended: Tensor
    chance: Tensor
    leaves: Tensor
    went: Tensor
    diverged: Tensor
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
    told = ("chance", "leaves", "went", "diverged")
    waiting = "The first tree has not ended yet."
    tuning_limit = 20_000

    max_depth = settings.Integer(
        10, bounds=(1, 12), live=True, doc="A tree ends when it has doubled so often: 2^depth - 1 gradients."
    )

    @property
    def examples_per_step(self) -> int:
        """Gradients of single rows that a leapfrog step is charged for."""
        return self.target.examples

    @property
    def _deepest(self) -> int:
        return min(self.max_depth, _TUNING_DEPTH) if self.tuning else self.max_depth

    @property
    def width(self) -> int:
        """Numbers that a state holds of each chain and coordinate."""
        return 13 + 2 * self.max_depth

    def init(self, x0: Tensor, rng: torch.Generator) -> State:
        """Return the chains at their starting points."""
        first = super().init(x0, rng)
        return self._fresh(x0, first.count, first.alive)

    def _fresh(self, x: Tensor, count: Tensor, alive: Tensor) -> State:
        """Return chains at x (chains, dim) that are about to begin a tree."""
        potential, g = self.target.gradient(x)
        nothing, none = torch.zeros_like(x), torch.zeros_like(count)
        point, choice = Point(x, nothing, g), Choice(x, g, potential)
        marks = x.new_zeros(len(x), self.max_depth, x.shape[1])
        whole = torch.zeros(len(x), dtype=torch.int64, device=x.device)
        yes = torch.ones_like(alive)
        return State(
            *(x, nothing, count, alive, yes, none, point, point, choice, choice, none, none, nothing, yes),
            *(whole, whole, marks, marks, none, none),
        )

    def pre_draw(self, state: State) -> Any:
        """Draw velocities (chains, dim) for the chains that begin a tree; None where none does."""
        if not self.host_sync:
            return (self._velocity(state.x),)
        chains = state.fresh.nonzero()[:, 0]
        if not len(chains):
            return (None,)
        return (torch.zeros_like(state.x).index_copy(0, chains, self._velocity(state.x[chains])),)

    def _velocity(self, like: Tensor) -> Tensor:
        return self.temperature**0.5 * self.rng.normal(like.shape, like.dtype)

    def kernel(self, state: State, pre_drawn: Any) -> tuple[State, Info]:
        """Take one leapfrog step of every chain's tree."""
        if pre_drawn[0] is not None:
            state = self._begun(state, pre_drawn[0])
        toss, lot, last = self.rng.uniform((3, len(state.x)), torch.float64)
        first = state.leaf == 0
        forward = torch.where(first, toss < 0.5, state.forward)
        point, potential = self._leapfrog(_where(forward, state.right, state.left), forward)
        energy = potential.double() + _kinetic(point.v)
        error = ((energy - state.start) / self.temperature).nan_to_num(torch.inf, torch.inf, torch.inf)
        state = self._grown(state._replace(forward=forward), point, Choice(point.x, point.g, potential), error, lot)
        state, turned = self._marked(state, point.v)
        diverged = error > _DIVERGED
        stopped = diverged | turned
        full = ~stopped & (state.leaf + 1 == 1 << state.depth)
        state = self._merged(state, full, last)
        whole = _turned(state.left.v, state.right.v, state.v) | (state.depth >= self._deepest)
        return self._ended(state, stopped | (full & whole), potential, diverged)

    def _begun(self, state: State, v: Tensor) -> State:
        """Return the state in which chains that are fresh have begun a tree with velocities v (chains, dim)."""
        fresh = state.fresh
        point = Point(state.tree.x, v, state.tree.g)
        none = torch.zeros_like(state.start)
        zero = torch.zeros_like(state.leaf)
        return state._replace(
            v=_where(fresh, v, state.v),
            fresh=torch.zeros_like(fresh),
            start=torch.where(fresh, state.tree.potential.double() + _kinetic(v), state.start),
            left=_where(fresh, point, state.left),
            right=_where(fresh, point, state.right),
            tree_weight=torch.where(fresh, none, state.tree_weight),
            depth=torch.where(fresh, zero, state.depth),
            leaf=torch.where(fresh, zero, state.leaf),
            acceptance_sum=torch.where(fresh, none, state.acceptance_sum),
            leaves=torch.where(fresh, none, state.leaves),
        )

    def _leapfrog(self, point: Point, forward: Tensor) -> tuple[Point, Tensor]:
        """Return the next point in a direction, and U there."""
        h = torch.where(forward, self.size(), -self.size()).to(point.x.dtype)[:, None] * self.scale
        v = point.v - 0.5 * h * point.g
        x = point.x + h * v
        potential, g = self.target.gradient(x)
        return Point(x, v - 0.5 * h * g, g), potential

    def _grown(self, state: State, point: Point, choice: Choice, error: Tensor, lot: Tensor) -> State:
        """Return the state with a point added to the subtree; it is chosen by its share of the weight."""
        first, weight = state.leaf == 0, -error
        total = torch.where(first, weight, torch.logaddexp(state.part_weight, weight))
        taken = first | (lot.log() < weight - total)
        return state._replace(
            left=_where(state.forward, state.left, point),
            right=_where(state.forward, point, state.right),
            part=_where(taken, choice, state.part),
            part_weight=total,
            part_v=_where(first, point.v, state.part_v + point.v),
            acceptance_sum=state.acceptance_sum + weight.clamp_max(0.0).exp(),
            leaves=state.leaves + 1,
        )

    def _marked(self, state: State, v: Tensor) -> tuple[State, Tensor]:
        """Return the state with marks at the new point, and whether a smaller subtree that it ends has turned.

        A point of even number begins subtrees; one of odd number ends as many as its number has ones at the end.
        """
        levels = torch.arange(self.max_depth, device=v.device)
        bits = (state.leaf[:, None] >> levels) & 1
        highest = bits[:, 1:].sum(1, keepdim=True)
        lowest = highest - bits.cumprod(1).sum(1, keepdim=True) + 1
        even = bits[:, :1] == 0
        ends = ~even & (levels >= lowest) & (levels <= highest)
        between = state.part_v[:, None] - state.marks_sum + state.marks_v
        turned = (_turned(state.marks_v, v[:, None], between) & ends).any(1)
        here = (even & (levels == highest))[..., None]
        return state._replace(
            marks_v=torch.where(here, v[:, None], state.marks_v),
            marks_sum=torch.where(here, state.part_v[:, None], state.marks_sum),
        ), turned

    def _merged(self, state: State, full: Tensor, lot: Tensor) -> State:
        """Return the state in which full subtrees are part of the tree; by weight the draw moves there."""
        taken = full & (lot.log() < state.part_weight - state.tree_weight)
        both = torch.logaddexp(state.tree_weight, state.part_weight)
        return state._replace(
            v=_where(full, state.v + state.part_v, state.v),
            tree=_where(taken, state.part, state.tree),
            tree_weight=torch.where(full, both, state.tree_weight),
            depth=state.depth + full,
            leaf=torch.where(full, 0, state.leaf + 1),
        )

    def _ended(self, state: State, ended: Tensor, potential: Tensor, diverged: Tensor) -> tuple[State, Info]:
        """Return the state in which trees that have ended give their draw, and what happened."""
        finite = torch.isfinite(state.start)
        ended = ended & state.alive & finite
        failed = state.alive & ~finite
        x = _where(ended, state.tree.x, state.x)
        jump_distance = torch.linalg.vector_norm(x - state.x, dim=1).double()
        acceptance_probability = state.acceptance_sum / state.leaves
        told = [
            torch.where(ended, part, 0.0)
            for part in (acceptance_probability, state.leaves, jump_distance, (diverged & ended).double())
        ]
        state = state._replace(x=x, fresh=ended, count=state.count + ended, alive=state.alive & finite)
        if self.tuning:
            self.learn(x, acceptance_probability, ended)
        return state, Info(potential, ended, *told, failed)

    def resume(self, state: State, moved: bool = False) -> State:
        """Return the chains about to begin a tree where the last one has led."""
        return self._fresh(state.x, state.count, state.alive)

    def placed(self, state: State, x: Tensor) -> State:
        """Return the state of chains that set out anew from x (chains, dim)."""
        return self._fresh(x, state.count, state.alive)

    def tune(self, state: State, last: bool) -> tuple[State, bool]:
        """Go on with the tuning; at its end all chains begin a tree, of steps of one size."""
        state, enough = super().tune(state, last)
        return (self.resume(state), True) if enough else (state, False)

    def visited(self, before: list[Tensor], states: list[State], chain: int) -> list[Tensor]:
        """Return the points of the tree under way, or of the one that has just ended."""
        fresh = torch.stack([state.fresh[chain] for state in states[:-1]]).nonzero()[:, 0].tolist()
        first = fresh[-1] if fresh else 0
        points = [states[first].x[chain]] if fresh else list(before)
        for state in states[first + 1 :]:
            points.append((state.right if state.forward[chain] else state.left).x[chain])
        return points[-(1 << _SHOWN_DEPTH) :]

    def caption(self, info: Info, chain: int) -> str:
        """Say how the tree has ended."""
        leaves, acceptance_probability, jump_distance = (
            float(part[chain]) for part in (info.leaves, info.chance, info.went)
        )
        if float(info.diverged[chain]):
            end = "the energy's error ended it: it diverged"
        elif leaves + 1 >= 1 << self._deepest:
            end = "it has doubled as often as it may"
        else:
            end = "it turned back"
        return (
            f"a tree of {leaves:.0f} leapfrog steps, of mean chance {acceptance_probability:.2f}; {end}."
            f" The draw is {jump_distance:.3g} off."
        )

    def told_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return acceptance, the trees' sizes, and the share that diverged."""
        share = means["diverged"]
        return [
            ["Acceptance; leapfrog steps of a tree", f"{means['chance']:.2f}; {means['leaves']:.3g}", ""],
            ["Trees that diverged", f"{100 * share:.2g} %", "bad" if share > 0.01 else ""],
        ]

    def told_words(self, means: dict[str, float]) -> str:
        """Return the trees' sizes and the share that diverged."""
        return (
            f"each a tree of {means['leaves']:.3g} leapfrog steps on average; {100 * means['diverged']:.2g} % diverged"
        )

    def rebuilt(self, parts: list[Tensor]) -> State:
        """Return the state made of its tensors."""
        one = self.target.initial(1, torch.Generator(self.target.device))
        none = torch.zeros(1, dtype=torch.float64, device=one.device)
        return rebuilt(self._fresh(one, none, none == 0), iter(parts))


def _kinetic(v: Tensor) -> Tensor:
    return 0.5 * v.double().square().sum(-1)


def _turned(first: Tensor, last: Tensor, between: Tensor) -> Tensor:
    """Return whether the ends (..., dim) of a trajectory go back on the sum of its velocities."""
    between = between - 0.5 * (first + last)
    return ((first * between).sum(-1) <= 0) | ((last * between).sum(-1) <= 0)


def _where(mask: Tensor, yes: Any, no: Any) -> Any:
    """Return tensors, or tuples of them, with those chains (chains,) of the first for which the mask is true."""
    if isinstance(yes, Tensor):
        return torch.where(mask if yes.ndim == 1 else mask[:, None], yes, no)
    return type(yes)(*(_where(mask, *parts) for parts in zip(yes, no, strict=True)))
