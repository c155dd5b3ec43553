"""Hamiltonian Monte Carlo."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, StepBatch
from bnnviz.samplers.discrete import State, length
from bnnviz.samplers.mcmc.hamiltonian import Hamiltonian


class Info(NamedTuple):
    """What one move did, for every chain, shape (chains,).

    Attributes
    ----------
    potential : Tensor
        U before the move.
    accepted, chance : Tensor
        Whether the trajectory's end was accepted (0 or 1), and with what chance it was to be.
    error : Tensor
        By how much the total energy changed along the trajectory.
    went : Tensor
        How far the trajectory's end lies from its beginning.
    gradients : Tensor
        That the move took.
    failed : Tensor, bool
        The chain stood where U is not finite.
    """

    potential: Tensor
    accepted: Tensor
    chance: Tensor
    error: Tensor
    went: Tensor
    gradients: Tensor
    failed: Tensor


@REGISTRY.add
class HMC(Hamiltonian):
    """Hamiltonian Monte Carlo: a fresh velocity, leapfrog steps along it, and a Metropolis test of where they end.

    The step size is found in the tuning by dual averaging of all chains' acceptance (Hoffman and Gelman 2014). The
    number of steps of a trajectory is drawn for each move from half the setting to the setting, for all chains alike,
    so that no trajectory closes on itself. With ``momentum`` a the velocity is kept in part,
    v <- a v + sqrt(1 - a^2) xi, and turned where the end is rejected (Horowitz 1991). All rows are read.
    Source: Neal 2011.
    """

    registered = "hmc"
    title = "HMC"
    reference_rank = 1
    told = ("accepted", "went")

    leaps = settings.Integer(10, bounds=(1, 1000), scale="log", live=True, doc="Most leapfrog steps of a trajectory.")
    vary = settings.Boolean(
        True,
        live=True,
        doc="Draw the number of leapfrog steps for each move, from half of them on; else all are taken.",
    )
    momentum = settings.Number(
        0.0, bounds=(0.0, 0.999), step=0.05, live=True, doc="Share of the velocity that a move keeps."
    )

    #: Where the last trajectory led (chains, dim), step by step.
    _trail: list[Tensor] | None = None

    @property
    def examples_per_step(self) -> int:
        """Gradients of single rows that the longest trajectory takes."""
        return self.target.examples * (1 + self.leaps)

    def charge(self, step_batch: StepBatch, counted: np.ndarray) -> int:
        """Return the gradients of single rows that the block's trajectories took."""
        chosen = torch.as_tensor(counted, device=step_batch.after.x.device)
        return self.target.examples * int(step_batch.column("gradients")[:, chosen].sum())

    def draw_velocity(self, like: Tensor) -> Tensor:
        """Draw from N(0, temperature)."""
        return self.temperature**0.5 * self.rng.normal(like.shape, like.dtype)

    def pre_draw(self, state: State) -> Any:
        """Draw which leapfrog steps are taken: (leaps,) ones, then zeros."""
        least = max(1, self.leaps // 2) if self.vary else self.leaps
        count = least + (self.rng.uniform((1,), torch.float64) * (self.leaps - least + 1)).floor()
        return (torch.arange(self.leaps, device=state.x.device) < count.to(state.x.device)).to(state.x.dtype)

    def kernel(self, state: State, pre_drawn: Any) -> tuple[State, Info]:
        """Follow a trajectory of every chain and accept or reject its end."""
        fresh, keep = self.draw_velocity(state.x), self.momentum
        x, v = state.x, keep * state.v + (1 - keep**2) ** 0.5 * fresh
        begun = v
        potential, g = self.target.gradient(x)
        before, energy = potential.double() + 0.5 * v.double().square().sum(-1), potential
        size, trail = self.size() * self.scale, [x]
        for step in pre_drawn.unbind():
            if self.host_sync and not bool(step):
                break
            # A step that is not taken has the size zero.
            h = size * step
            v = v - 0.5 * h * g
            x = x + h * v
            energy, g = self.target.gradient(x)
            v = v - 0.5 * h * g
            trail.append(x)
        if self.host_sync:
            self._trail = trail
        error = energy.double() + 0.5 * v.double().square().sum(-1) - before
        acceptance_probability = torch.exp((-error / self.temperature).clamp_max(0.0)).nan_to_num(0.0)
        accepted = self.rng.uniform(acceptance_probability.shape, acceptance_probability.dtype) < acceptance_probability
        finite = torch.isfinite(potential) & torch.isfinite(state.x).all(-1)
        end, v = torch.where(accepted[:, None], x, state.x), torch.where(accepted[:, None], v, -begun)
        after, failed = self.moved(state, finite, x=end, v=v)
        if self.tuning:
            self.learn(after.x, acceptance_probability, after.alive)
        gradients = (1 + pre_drawn.sum()).expand(acceptance_probability.shape)
        jump_distance = length(end - state.x)
        return after, Info(
            potential,
            accepted.to(acceptance_probability.dtype),
            acceptance_probability,
            error,
            jump_distance,
            gradients,
            failed,
        )

    def visited(self, before: list[Tensor], states: list[State], chain: int) -> list[Tensor]:
        """Return the leapfrog steps of the last trajectory; a compiled step does not tell them."""
        trail = [] if self._trail is None else [x[chain] for x in self._trail]
        return trail if trail and torch.equal(trail[0], states[-2].x[chain]) else []

    def caption(self, info: Info, chain: int) -> str:
        """Say what became of a chain's trajectory."""
        error, acceptance_probability, jump_distance = (
            float(part[chain]) for part in (info.error, info.chance, info.went)
        )
        fate = f"accepted, {jump_distance:.3g} away" if float(info.accepted[chain]) else "rejected: the chain stays"
        return (
            f"the energy changed by {error:.3g} along the trajectory; its end, of chance {acceptance_probability:.2f},"
            f" was {fate}."
        )

    def told_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return acceptance and how far a move leads."""
        return [["Acceptance; a move's length", f"{means['accepted']:.2f}; {means['went']:.3g}", ""]]

    def told_words(self, means: dict[str, float]) -> str:
        """Return acceptance and how far a move leads."""
        return (
            f"of which {100 * means['accepted']:.0f} % were accepted; a move leads {means['went']:.3g} away on average"
        )
