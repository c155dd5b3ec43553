"""Descend by Adam as a tuning; then nothing is learned any more, and draws are made where it ended."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import Sampler, StepBatch, Traits
from bnnviz.samplers.baselines import newton
from bnnviz.samplers.baselines.adam import Info, LossGradient, Trained, adam, norm, squared, untrained
from bnnviz.samplers.baselines.text import DescentText
from bnnviz.samplers.random import RandomNumbers
from bnnviz.targets import Target


class Rest(NamedTuple):
    """Where the descents are: all chains rest from here on, or they descend anew, on data that have changed."""

    resting: bool = False
    anew: bool = False


class State(NamedTuple):
    """All chains between two steps."""

    # As of `bnnviz.samplers.baselines.adam.Untrained`
    x: Tensor
    mean: Tensor
    count: Tensor
    alive: Tensor
    square: Tensor
    taken: Tensor
    loss: Tensor
    penalty: Tensor
    adaptation: Rest


class Descending(Trained, Sampler):
    """Base of the samplers that descend, then rest.

    While a chain descends a step is a step of Adam; at rest it costs no gradient, and a draw is made of each. Where the
    data change, chains descend anew from where they are, and are not drawn from until they have arrived.

    Attributes
    ----------
    trained : str
        The part of the state that Adam moves.
    """

    text = DescentText
    trained: ClassVar[str] = "x"

    steps = settings.Integer(3000, bounds=(1, 1_000_000), scale="log", doc="Steps of Adam in a chain's descent.")

    @property
    def tuning_limit(self) -> int:
        """Steps after which the tuning ends, which is the descent."""
        return self.steps

    def is_free(self, state: Any) -> bool:
        """Return whether all chains rest."""
        return state.adaptation.resting

    def gradient_cost(self, step_batch: StepBatch, counted: np.ndarray) -> int:
        """Return the gradients of single rows that the descents of a block took."""
        if self.is_free(step_batch.before[0]):
            return 0
        going = torch.stack([state.taken < self.steps for state in step_batch.before]).cpu().numpy()
        return self.gradients_per_step * int(going[:, counted].sum())

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains at their starting points, untrained."""
        return State(*untrained(x0), Rest())

    def pre_draw(self, rng: RandomNumbers, state: Any) -> tuple:
        """Draw the batch; nothing at rest."""
        return () if state.adaptation.resting else super().pre_draw(rng, state)

    def slope(self, rng: RandomNumbers, trained: Tensor, batch: Any) -> LossGradient:
        """Return the loss at what is trained, (chains, ...), and its gradient."""
        raise NotImplementedError

    def parts(self, trained: Tensor) -> dict[str, Tensor]:
        """Return the parts of the state that follow from what is trained."""
        return {self.trained: trained}

    def kernel(self, rng: RandomNumbers, state: Any, batch: Any = ()) -> tuple[Any, Info]:
        """Go one step down with every chain that has not arrived."""
        if state.adaptation.anew and self.host_sync and self.is_tuned(state):
            state = state._replace(adaptation=Rest(resting=True))
        if state.adaptation.resting:
            return self.rested(rng, state)
        here, going = getattr(state, self.trained), state.taken < self.steps
        slope = self.slope(rng, here, batch)
        rate = self.learning_rate * self.scheduled(state.taken / self.steps)
        step = adam(slope.gradient, state.mean, state.square, state.taken + 1, rate)
        finite = torch.isfinite(slope.loss) & torch.isfinite(step.move).flatten(1).all(1)
        move = torch.where(going.view(-1, *[1] * (here.ndim - 1)), step.move, 0.0)
        loss = torch.where(going, slope.loss, state.loss)
        penalty = torch.where(going, slope.penalty, state.penalty)
        after, failed = self.moved(
            state,
            finite | ~going,
            **self.parts(here - move),
            mean=step.mean,
            square=step.square,
            taken=state.taken + going,
            loss=loss,
            penalty=penalty,
        )
        return self.shown(rng, after, going), Info(loss, penalty, torch.where(going, rate, 0.0), norm(move), failed)

    def shown(self, rng: RandomNumbers, state: Any, going: Tensor) -> Any:
        """Return the state with what is drawn of those chains that are no longer ``going`` (chains,)."""
        return state

    def rested(self, rng: RandomNumbers, state: Any) -> tuple[Any, Info]:
        """Return the state after a move at rest, and what happened: nothing."""
        nothing = torch.zeros_like(state.loss)
        info = Info(state.loss, state.penalty, torch.zeros_like(state.count), nothing, torch.zeros_like(state.alive))
        return state._replace(count=state.count + state.alive), info

    def is_tuned(self, state: Any) -> bool:
        """Return whether the chains that are left have arrived."""
        return bool((state.taken >= self.steps)[state.alive].all())

    def arrived(self, step_batch: StepBatch) -> Tensor | None:
        """Return which chains have arrived after each of these steps, (steps, chains); None where all rest."""
        first = step_batch.state_after(0)
        return None if self.is_free(first) else step_batch.history("taken")[1:] >= self.steps

    def freeze(self, rng: RandomNumbers, state: Any) -> Any:
        """Return the state in which chains rest, if all have arrived."""
        return state._replace(adaptation=Rest(self.is_tuned(state), state.adaptation.anew))

    def resume(self, rng: RandomNumbers, state: Any, moved: bool = False) -> Any:
        """Return the state; where the target has moved, the descent begins anew from there."""
        return self._anew(state, Rest(anew=True)) if moved else state

    def moved_to(self, rng: RandomNumbers, state: Any, x: Tensor) -> Any:
        """Return the state of chains that set out anew from x (chains, dim)."""
        return self._anew(state, Rest(anew=state.adaptation.anew))._replace(**self.parts(x))

    def _anew(self, state: Any, rest: Rest) -> Any:
        nothing = torch.zeros_like(state.mean)
        return state._replace(mean=nothing, square=nothing, taken=torch.zeros_like(state.taken), adaptation=rest)


class Point:
    """A mixin of the descents to a point: of the negative log likelihood, and of the prior's term where it counts."""

    traits = Traits(exact=False, converges=False, descends=True, one_point=True)

    @property
    def regular(self) -> bool:
        """Whether the prior's term is part of the loss."""
        raise NotImplementedError

    def place(self, target: Target, x: Tensor) -> newton.DistanceToMode | None:
        """Return how far the end x (dim,) of a descent of U lies from a mode; None where U is not what is descended."""
        return newton.place(target, x) if self.regular or target.prior_precision is None else None

    def slope(self, rng: RandomNumbers, trained: Tensor, batch: Any) -> LossGradient:
        """Return the loss at points (chains, dim) and its gradient."""
        fit, g = self.fit(trained, batch)
        penalty, pull = squared(trained, self.target.prior_precision if self.regular else None)
        return LossGradient(fit + penalty, penalty, g + pull)
