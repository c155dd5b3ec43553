"""Hamiltonian Monte Carlo."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.discrete import Discrete, State, length
from bnnviz.samplers.discrete_draws import StepEmitter
from bnnviz.targets import Target

_TUNING_MOVES = 200
# Hoffman and Gelman 2014, section 3.2.
_SHRINKAGE, _OFFSET, _FORGETTING = 0.05, 10.0, 0.75


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
    failed : Tensor, bool
        The chain stood where U is not finite.
    """

    potential: Tensor
    accepted: Tensor
    chance: Tensor
    error: Tensor
    went: Tensor
    failed: Tensor


@REGISTRY.add
class HMC(Discrete):
    """Hamiltonian Monte Carlo: a fresh velocity, leapfrog steps along it, and a Metropolis test of where they end.

    The step size is found in the tuning by dual averaging of all chains' acceptance (Hoffman and Gelman 2014). The
    number of steps of a trajectory is drawn for each move from half the setting to the setting, for all chains alike,
    so that no trajectory closes on itself. All rows are read. Source: Neal 2011.
    """

    registered = "hmc"
    title = "HMC"
    told = ("accepted", "went")

    step_size = settings.Number(
        None,
        bounds=(1e-7, 100.0),
        scale="log",
        allow_None=True,
        live=True,
        empty="tuned",
        doc="Size of a leapfrog step; empty: tuned for the wanted acceptance.",
    )
    leaps = settings.Integer(10, bounds=(1, 1000), scale="log", live=True, doc="Most leapfrog steps of a trajectory.")
    wanted = settings.Number(
        0.8, bounds=(0.1, 0.99), step=0.01, label="Wanted acceptance", doc="Mean acceptance that the tuning aims at."
    )
    every = settings.Integer(1, bounds=(1, 100_000), scale="log", live=True, unit="moves", doc="Moves between draws.")

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target; the step size is tuned from the start on."""
        super().prepare(target, mode)
        self.tuning = True
        # Dual averaging: moves so far, mean shortfall of the acceptance, mean logarithm of the step size.
        self._seen, self._short, self._log_mean, self._centre = 0, 0.0, 0.0, 0.0

    @property
    def examples_per_step(self) -> int:
        """Gradients of single rows that a move is charged for, on average."""
        return math.ceil(self.target.examples * (1 + (self._least + self.leaps) / 2))

    @property
    def _least(self) -> int:
        return max(1, self.leaps // 2)

    def first_size(self, curvature: float) -> float:
        """Return half the step at which a leapfrog along the curvature is no longer stable."""
        size = curvature**-0.5
        self._centre = math.log(10 * size)
        return size

    def size(self) -> float:
        """Return the size of a leapfrog step."""
        return self.found if self.step_size is None else self.step_size

    def given(self, state: State) -> Any:
        """Draw which leapfrog steps are taken: (leaps,) ones, then zeros."""
        span = self.leaps - self._least + 1
        count = self._least + (self.noise.uniform((1,), torch.float64) * span).floor()
        return (torch.arange(self.leaps, device=state.x.device) < count.to(state.x.device)).to(state.x.dtype)

    def core(self, state: State, given: Any) -> tuple[State, Info]:
        """Follow a trajectory of every chain and accept or reject its end."""
        x, v = state.x, self.temperature**0.5 * self.noise.normal(state.x.shape, state.x.dtype)
        potential, g = self.target.gradient(x)
        before, energy = potential.double() + 0.5 * v.double().square().sum(-1), potential
        size = self.size()
        for step in given.unbind():
            if self.looks and not bool(step):
                break
            # A step that is not taken has the size zero.
            h = size * step
            v = v - 0.5 * h * g
            x = x + h * v
            energy, g = self.target.gradient(x)
            v = v - 0.5 * h * g
        error = energy.double() + 0.5 * v.double().square().sum(-1) - before
        chance = torch.exp((-error / self.temperature).clamp_max(0.0)).nan_to_num(0.0)
        accepted = self.noise.uniform(chance.shape, chance.dtype) < chance
        finite = torch.isfinite(potential) & torch.isfinite(state.x).all(-1)
        end = torch.where(accepted[:, None], x, state.x)
        after, failed = self.moved(state, end, state.v, finite)
        went = length(end - state.x)
        if self.tuning:
            self._adapt(float(chance[state.alive].mean()))
        return after, Info(potential, accepted.to(chance.dtype), chance, error, went, failed)

    def _adapt(self, accepted: float) -> None:
        """Move the step size by the shortfall of the acceptance (Hoffman and Gelman 2014, algorithm 5)."""
        if not math.isfinite(accepted):
            return
        self._seen += 1
        self._short += (self.wanted - accepted - self._short) / (self._seen + _OFFSET)
        log_size = self._centre - self._seen**0.5 / _SHRINKAGE * self._short
        self._log_mean += self._seen**-_FORGETTING * (log_size - self._log_mean)
        self.found = math.exp(log_size)

    def settled(self, state: State) -> bool:
        """Return whether the tuning has seen enough moves."""
        return self._seen >= _TUNING_MOVES

    def emitter(self, state: State) -> StepEmitter:
        """End the tuning with the mean step size, and draw from this state on."""
        if self.tuning and self._seen:
            self.found = math.exp(self._log_mean)
        self.tuning = False
        return super().emitter(state)

    def caption(self, info: Info, chain: int) -> str:
        """Say what became of a chain's trajectory."""
        error, chance, went = (float(part[chain]) for part in (info.error, info.chance, info.went))
        fate = f"accepted, {went:.3g} away" if float(info.accepted[chain]) else "rejected: the chain stays"
        return f"the energy changed by {error:.3g} along the trajectory; its end, of chance {chance:.2f}, was {fate}."

    def told_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return acceptance and how far a move leads."""
        return [["Acceptance; a move's length", f"{means['accepted']:.2f}; {means['went']:.3g}", ""]]

    def told_words(self, means: dict[str, float]) -> str:
        """Return acceptance and how far a move leads."""
        return (
            f"of which {100 * means['accepted']:.0f} % were accepted; a move leads {means['went']:.3g} away on average"
        )

    def rows(self, state: State) -> list[list[str]]:
        """Return the step size."""
        return [["Leapfrog step", f"{self.size():.3g}", ""]]

    def adopt(self, other: HMC) -> None:
        """Take over how far the tuning has come."""
        super().adopt(other)
        self.tuning, self._centre = other.tuning, other._centre
        self._seen, self._short, self._log_mean = other._seen, other._short, other._log_mean

    def save(self, state: State) -> dict[str, Any]:
        """Return how far the tuning has come, too."""
        tuning = [self.tuning, self._seen, self._short, self._log_mean, self._centre]
        return super().save(state) | {"tuning": tuning}

    def load(self, saved: dict[str, Any], rng: torch.Generator) -> State:
        """Return the saved state."""
        self.tuning, self._seen, self._short, self._log_mean, self._centre = saved["tuning"]
        return super().load(saved, rng)
