"""Describe why chains have stopped or cannot move: non-finite values, an edge, or a density without finite mass."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import torch
from torch import Tensor

from bnnviz.engine.monitor import remedies
from bnnviz.messages import Message, Remedy
from bnnviz.samplers import Sampler
from bnnviz.samplers.base import OF_U
from bnnviz.samplers.observers import StepBatch
from bnnviz.targets import BNN, Target

_BISECTIONS = 50
_HUGE = {torch.float32: 1e12, torch.float64: 1e100}  # U next to an overflow; next to an edge it is smaller
_TIMES = (1.0, 4.0, 16.0)  # relative lengths of rays
_MOST_AXES = 50
#: Settings that may be too large if every chain meets non-finite values.
_STEP_SIZES = ("step_size", "learning_rate")
_OVERFLOWS = 1e6  # coordinates beyond which the terms of U may overflow
_CAUSE = "Outside of a support U is inf, not -inf; otherwise look for divisions by zero and logarithms of zero."
_PLACES, _SHOWN = 8, 4  # steps searched for such a point, and its displayed coordinates
_FAR = 10.0  # factor of the initial distance from zero beyond which a chain may run away
_FAR_SLOWLY = 2.0  # the same for steps of one length
_DECADES = 6  # over which U is followed outwards
_POINTS = 32  # per decade
_FLAT = 0.1  # of U per decade: even a logarithm rises more
_FALL = 10.0  # of U over these: less may be rounding, or a nearly flat tail
_LONG_S = 3.0  # seconds beyond which a run reports its progress
_NOWHERE_S = 30.0  # of work without a draw


def edge_between(target: Target, inside: Tensor, outside: Tensor) -> Tensor:
    """Return whether an edge of the density, and no overflow, is between points (n, dim) and ``outside`` ones, (n,)."""
    target = target.clone()
    found = torch.isfinite(target.defined_potential(inside)) & ~torch.isfinite(target.defined_potential(outside))
    if outside.dtype != torch.float64:
        with contextlib.suppress(Exception):  # a function of the user may be of one precision
            double = target.clone().to(outside.device, torch.float64).defined_potential(outside.double())
            found &= ~torch.isfinite(double)
    if not bool(found.any()):
        return found
    low, high = torch.zeros(len(inside), 1).to(inside), torch.ones(len(inside), 1).to(inside)
    last = target.defined_potential(inside).detach()
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        potential = target.defined_potential(torch.lerp(inside, outside, middle)).detach()
        finite = torch.isfinite(potential)
        last = torch.where(finite, potential, last)
        low, high = torch.where(finite[:, None], middle, low), torch.where(finite[:, None], high, middle)
    return found & (last.abs() < _HUGE.get(inside.dtype, 1e12))


def _is_at_edge(target: Target, x: Tensor, begun: Tensor) -> bool:
    """Return whether an edge of the support is near a chain at x (dim,) and its starting points (chains, dim)."""
    if not bool((x.abs() < _OVERFLOWS).all() and torch.isfinite(begun).all()):
        return False
    points = torch.cat([begun, x[None]])
    length = 1e-3 + float((points - points[0]).abs().max())
    finite = torch.isfinite(target.clone().defined_potential(points))
    if not bool(finite.any()):
        return False
    start = points[finite][0]
    axes = torch.eye(len(start)).to(start)[:: -(-len(start) // _MOST_AXES)]
    rays = torch.cat([axes, -axes, points - start])
    rays = rays / torch.linalg.vector_norm(rays, dim=1, keepdim=True).clamp_min(1e-30)
    outside = torch.cat([start + times * length * rays for times in _TIMES])
    return bool(edge_between(target, start.expand_as(outside), outside).any())


def keep(notes: list[Message], message: Message | None) -> None:
    """Add a message to notes, replacing one with the same code; None adds nothing."""
    if message is not None and message not in notes:
        notes[:] = [note for note in notes if note.code != message.code] + [message]


def rejects(sampler: Sampler) -> bool:
    """Return whether a sampler rejects proposals with non-finite U and continues."""
    return sampler.traits.weighted or "acceptance_rate" in sampler.sample_stats()


def infinite_density(sampler: Sampler, target: Target, step_batch: StepBatch, notes: list[Message]) -> Message | None:
    """Return the message on U at minus infinity that ended the run; None if the sampler rejects such points."""
    found = sampler.infinite_density(step_batch)
    if found is None or any(note.code == "infinite_points" for note in notes) or not bool(found.any()):
        return None
    for step, chain in found.nonzero()[:_PLACES].tolist():
        points = sampler.tried(step_batch, step, chain)
        where = f"step {step_batch.first_step + step}"
        if points is not None:
            points = points[torch.isfinite(points).all(-1)]
            if not bool((points.abs() < _OVERFLOWS).all()):
                continue
            points = points[target.clone().defined_potential(points) == -torch.inf]
            numbers = [f"{value:.4g}" for value in points[:1, :_SHOWN].flatten().tolist()]
            numbers += ["..."] if numbers and points.shape[1] > _SHOWN else []
            where = f"x = ({', '.join(numbers)}), {where}" if numbers else where
        if not rejects(sampler):
            return Message("infinite_density", chain=chain, where=where, cause=_CAUSE)
        fate = "have no weight" if sampler.traits.weighted else "are rejected"
        notes.append(Message("infinite_points", where=f"{where}, chain {chain}", fate=fate, cause=_CAUSE))
        return None
    return None


def all_stopped(sampler: Sampler, chains: int, steps: int) -> Message:
    """Return the message that all chains have stopped within ``steps`` steps."""
    size = next((name for name in _STEP_SIZES if name in sampler.param), None)
    first = Remedy("check the gradient of the target" if size is None else f"use a smaller {size}")
    return Message("all_stopped", first, remedies.DOUBLE, chains=chains, sampler=sampler.registered, step=steps)


def at_an_edge(sampler: Sampler, target: Target, step_batch: StepBatch, notes: list[Message]) -> Message | None:
    """Return the message that a chain failed at a non-finite U, or None; the other chains have avoided the edge too."""
    name = next((name for name in OF_U if hasattr(step_batch.infos[0], name)), None)
    # A functional with a tail outside has an infinite mean of U for any proposal.
    if isinstance(target, BNN) or name is None or (rejects(sampler) and not sampler.traits.functional):
        return None
    potential = step_batch.column(name)
    at = step_batch.column("failed") & ~torch.isfinite(potential)
    for step, chain in at.nonzero().tolist():
        x, begun = sampler.reach(step_batch.before[step]), sampler.positions(step_batch.before[0])
        if x is not None and not _is_at_edge(target, x[chain], begun):
            ways = [Remedy("take smaller steps"), remedies.DOUBLE, Remedy("use NUTS, which rejects such proposals")]
            at = {"chain": chain, "step": step_batch.first_step + step, "sampler": sampler.registered}
            keep(notes, Message("overflow", *ways, **at))
            continue
        what = "not a number" if bool(potential[step, chain].isnan()) else "infinite"
        return Message(
            "edge",
            remedies.NAME_BOUNDS,
            Remedy("write U in unbounded parameters (with the log-Jacobian)"),
            Remedy("use HMC or NUTS, which reject points outside"),
            chain=chain,
            step=step_batch.first_step + step,
            value=what,
            sampler=sampler.registered,
        )
    return None


class RunawayWatch:
    """Find chains from x (chains, dim) that diverge because exp(-U) cannot be normalised.

    If a chain is ten times as far from zero as at its start, U is evaluated along the ray from its start through its
    position. For a normalisable density U eventually increases along the ray.
    """

    def __init__(self, x: Tensor, slow: bool = False) -> None:
        self._start = x.detach()
        self._far = (_FAR_SLOWLY if slow else _FAR) * (1 + float(torch.nan_to_num(self._start).abs().max()))

    def message(self, target: Target, x: Tensor) -> Message | None:
        """Return the message on the chain of x (chains, dim) that diverges, or None."""
        reached = torch.nan_to_num(x.detach(), nan=0.0, posinf=0.0, neginf=0.0).abs().amax(-1)
        farthest = float(reached.max())
        if farthest < self._far or x.shape != self._start.shape:
            return None
        self._far = 10 * farthest
        chain = int(reached.argmax())
        way = (x[chain] - self._start[chain]).detach()
        if not bool(way.isfinite().all() and way.any()):
            return None
        rises = self._rises(target, chain, way)
        # Squares overflow, and non-finite values are uninformative.
        if len(rises) >= 2 and bool((rises < 0).all()) and float(rises.sum()) < -_FALL:
            return Message("runs_away", chain=chain, reached=farthest)
        largest = torch.arange(len(way), device=way.device) == way.abs().argmax()
        if _is_flat(rises) or _is_flat(self._rises(target, chain, torch.where(largest, way, 0))):
            return Message("wanders_off", Remedy("give every coordinate a prior"), chain=chain, reached=farthest)
        return None

    def _rises(self, target: Target, chain: int, way: Tensor) -> Tensor:
        """Return the rises of the least finite U between decades of the way; a periodic U does not rise."""
        among = torch.arange(_POINTS, device=way.device, dtype=way.dtype) / _POINTS
        powers = torch.arange(_DECADES + 1, device=way.device, dtype=way.dtype)[:, None] + among
        ahead = self._start[chain] + way * 10.0 ** powers.flatten()[:, None]
        found = target.clone().defined_potential(ahead).detach().double().view(_DECADES + 1, _POINTS)
        rises = torch.where(torch.isfinite(found), found, torch.inf).amin(1).diff()
        return rises[torch.isfinite(rises)]


def _is_flat(rises: Tensor) -> bool:
    return len(rises) == _DECADES and bool((rises.abs() < _FLAT).all())


class Waiting:
    """Track the time of the last draw of a run."""

    def __init__(self, run: Any) -> None:
        self._run, self._made, self._since = run, -1, 0.0
        self.tuning_since = 0.0  # seconds of the start search

    def note(self) -> None:
        """Check for new draws."""
        made = int(self._run.store.made.sum())
        if made != self._made or self._run.phase == "tuning":
            self._made, self._since = made, self._run.seconds

    def message(self) -> Message | None:
        """Return the progress of the start search or the warm-up, or a lack of draws; None if irrelevant."""
        run = self._run
        if run.phase == "start" and run.descent is not None:
            return _way(run.descent.taken, f"{run.descent.steps:,}", "about", run.descent.seconds_left)
        if run.phase == "tuning":
            # By its moves if their number is known, otherwise by its maximum steps.
            share, limit, passed = run.sampler.warmup_share(run.state), run.sampler.tuning_limit, run.seconds
            passed -= self.tuning_since
            if share is None:
                left = (limit - run.steps) * passed / run.steps if run.steps else math.nan
                return _way(run.steps, f"the warm-up, which has at most {limit:,}", "at most", left)
            left = passed * (1 - share) / share if share else math.nan
            return Message("warmup_left", percent=100 * share, seconds=left) if left > _LONG_S else None
        idle = run.seconds - self._since
        # A restored run has not been checked yet.
        if self._made < 0 or run.phase not in ("warm-up", "sampling") or idle < _NOWHERE_S:
            return None
        return Message("no_progress", seconds=idle)


def _way(done: int, most: str, how: str, seconds: float) -> Message | None:
    """Return the number of steps, and the remaining seconds if they are more than a few."""
    return Message("steps_left", done=done, most=most, how=how, seconds=seconds) if seconds > _LONG_S else None
