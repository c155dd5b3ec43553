"""Descend by Adam in the tuning, then draw from the fixed result."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import SamplerState, StepBatch, Traits, counters, length, preset
from bnnviz.samplers.baselines import newton
from bnnviz.samplers.baselines.adam import Info, LossGradient, Trained, Training, adam, squared
from bnnviz.samplers.baselines.text import DescentText
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import choose
from bnnviz.targets import Target

_WHAT = "10,000 steps on mini-batches of 32 rows."
BATCHES = preset("batches", "Mini-batches", _WHAT, batch_size=32, steps=10_000, learning_rate=3e-3)
LONG = preset("long", "A long descent", "20,000 steps with a cosine schedule.", steps=20_000, schedule="cosine")


class Rest(NamedTuple):
    """Phase of the descents: all chains rest, or they descend again after a change of data."""

    resting: bool = False
    again: bool = False


class State(NamedTuple):
    """State of all chains between two steps."""

    x: Tensor  # (chains, dim): Position
    count: Tensor  # (chains,), float64: Moves since the start
    alive: Tensor  # bool: False for a chain that met a non-finite value
    training: Training
    adaptation: Rest


class Descending(Trained):
    """Base of samplers that descend by Adam, then rest and make draws without gradients, until the data change."""

    text = DescentText
    trained: ClassVar[str] = "x"

    steps = settings.Integer(
        3000, bounds=(1, 1_000_000), scale="log", doc="Number of Adam steps of the optimisation of each chain."
    )

    @property
    def tuning_limit(self) -> int:
        """Maximum number of tuning steps, which are the descent."""
        return self.steps

    def is_free(self, state: Any) -> bool:
        """Return whether all chains rest."""
        return state.adaptation.resting

    def gradient_cost(self, step_batch: StepBatch, counted: np.ndarray) -> int:
        """Return the single-row gradients of the descents in a block."""
        if self.is_free(step_batch.before[0]):
            return 0
        going = torch.stack([state.training.taken < self.steps for state in step_batch.before]).cpu().numpy()
        return self.gradients_per_step * int(going[:, counted].sum())

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains at their initial positions, untrained."""
        return State(x0, *counters(x0), Training.begun(x0), Rest())

    def pre_draw(self, rng: RandomNumbers, state: Any) -> tuple:
        """Draw the batch; nothing at rest."""
        return () if state.adaptation.resting else super().pre_draw(rng, state)

    def slope(self, rng: RandomNumbers, trained: Tensor, batch: Any) -> LossGradient:
        """Return the loss of the trained part (chains, ...) and its gradient."""
        raise NotImplementedError

    def parts(self, trained: Tensor) -> dict[str, Tensor]:
        """Return the parts of the state derived from the trained part."""
        return {self.trained: trained}

    def kernel(self, rng: RandomNumbers, state: Any, batch: Any = ()) -> tuple[Any, Info]:
        """Take one step down with every chain that is still descending."""
        if state.adaptation.again and self.host_sync and self.is_tuned(state):
            state = state._replace(adaptation=Rest(resting=True))
        if state.adaptation.resting:
            return self.rested(rng, state)
        here, before = getattr(state, self.trained), state.training
        going = before.taken < self.steps
        slope = self.slope(rng, here, batch)
        rate = self.learning_rate * self.scheduled(before.taken / self.steps)
        step = adam(slope.gradient, before.mean, before.square, before.taken + 1, rate)
        finite = torch.isfinite(slope.loss) & torch.isfinite(step.move).flatten(1).all(1)
        move = choose(going, step.move, torch.zeros_like(step.move))
        loss = torch.where(going, slope.loss, before.loss)
        penalty = torch.where(going, slope.penalty, before.penalty)
        training = Training(step.mean, step.square, before.taken + going, loss, penalty)
        after, failed = self.moved(state, finite | ~going, **self.parts(here - move), training=training)
        info = Info(loss, penalty, torch.where(going, rate, 0.0), length(move.flatten(1)), failed)
        return self.shown(rng, after, going), info

    def shown(self, rng: RandomNumbers, state: Any, going: Tensor) -> SamplerState:
        """Return the state with draws of the chains (chains,) that are no longer ``going``."""
        return state

    def rested(self, rng: RandomNumbers, state: Any) -> tuple[Any, Info]:
        """Return the state after a step at rest, and its empty info."""
        loss, penalty = state.training.loss, state.training.penalty
        nothing = torch.zeros_like(state.count), torch.zeros_like(loss), torch.zeros_like(state.alive)
        return state._replace(count=state.count + state.alive), Info(loss, penalty, *nothing)

    def is_tuned(self, state: Any) -> bool:
        """Return whether all living chains have converged."""
        return bool((state.training.taken >= self.steps)[state.alive].all())

    def arrived(self, step_batch: StepBatch) -> Tensor | None:
        """Return which chains have converged after each of these steps, (steps, chains); None if all rest."""
        states = [*step_batch.before[1:], step_batch.after]
        return None if self.is_free(states[0]) else torch.stack([each.training.taken for each in states]) >= self.steps

    def freeze(self, rng: RandomNumbers, state: Any) -> SamplerState:
        """Return the state at rest, if all chains have converged."""
        return state._replace(adaptation=Rest(self.is_tuned(state), state.adaptation.again))

    def resume(self, rng: RandomNumbers, state: Any, moved: bool = False) -> SamplerState:
        """Return the state; if the target changed, the descent restarts there."""
        return state._replace(training=state.training.restarted(), adaptation=Rest(again=True)) if moved else state

    def moved_to(self, rng: RandomNumbers, state: Any, x: Tensor) -> SamplerState:
        """Return the state of chains restarted at x (chains, dim)."""
        rest = Rest(again=state.adaptation.again)
        return state._replace(**self.parts(x), training=state.training.restarted(), adaptation=rest)


class Point(Descending):
    """Base of descents to a point, of the negative log likelihood with or without the prior's term."""

    traits = Traits(exact=False, converges=False, descends=True, one_point=True)

    @property
    def regular(self) -> bool:
        """Whether the prior's term is part of the loss."""
        raise NotImplementedError

    def place(self, target: Target, x: Tensor) -> newton.DistanceToMode | None:
        """Return the distance of a descent's end x (dim,) from a mode; None if the loss is not U."""
        return newton.place(target, x) if self.regular or target.prior_precision is None else None

    def slope(self, rng: RandomNumbers, trained: Tensor, batch: Any) -> LossGradient:
        """Return the loss at points (chains, dim) and its gradient."""
        fit, g = self.fit(trained, batch)
        penalty, pull = squared(trained, self.target.prior_precision if self.regular else None)
        return LossGradient(fit + penalty, penalty, g + pull)
