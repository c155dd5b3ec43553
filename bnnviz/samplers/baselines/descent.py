"""Samplers whose tuning is one descent by Adam; then nothing is learnt any more, and draws are made where it ended."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import StepBatch
from bnnviz.samplers.baselines.adam import Info, Slope, Trained, adam, norm, squared
from bnnviz.samplers.discrete_draws import MoveDrawCollector
from bnnviz.targets import Target


class Descending(Trained):
    """Base of the samplers that descend, then rest.

    While a chain descends a step is a step of Adam; at rest it costs no gradient, and a draw is made of each. Where the
    data change, chains descend anew from where they are, and are not drawn from until they have arrived.

    Attributes
    ----------
    trained : str
        The part of the state that Adam moves.
    resting : bool
        Whether all chains have arrived.
    """

    waiting = "The descent has not begun yet."
    trained: ClassVar[str] = "x"

    steps = settings.Integer(3000, bounds=(1, 1_000_000), scale="log", doc="Steps of Adam in a chain's descent.")

    @property
    def tuning_limit(self) -> int:
        """Steps after which the tuning ends, which is the descent."""
        return self.steps

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target; the descent is still to come."""
        super().prepare(target, mode)
        self.resting = self._again = False

    @property
    def examples_per_step(self) -> int:
        """Gradients of single rows that a step is charged for; none at rest."""
        return 0 if self.resting else super().examples_per_step

    def charge(self, step_batch: StepBatch, counted: np.ndarray) -> int:
        """Return the gradients of single rows that the descents of a block took."""
        if self.resting and self.settled(step_batch.before[0]):
            return 0
        going = torch.stack([state.taken < self.steps for state in step_batch.before]).cpu().numpy()
        return super().examples_per_step * int(going[:, counted].sum())

    def pre_draw(self, state: Any) -> Any:
        """Draw the batch; nothing at rest."""
        return () if self.resting else super().pre_draw(state)

    def slope(self, trained: Tensor, batch: Any) -> Slope:
        """Return the loss at what is trained, (chains, ...), and its gradient."""
        raise NotImplementedError

    def parts(self, trained: Tensor) -> dict[str, Tensor]:
        """Return the parts of the state that follow from what is trained."""
        return {self.trained: trained}

    def kernel(self, state: Any, pre_drawn: Any) -> tuple[Any, Info]:
        """Go one step down with every chain that has not arrived."""
        if self._again and self.host_sync and self.settled(state):
            self.resting, self._again = True, False
        if self.resting:
            return self.rested(state)
        here, going = getattr(state, self.trained), state.taken < self.steps
        slope = self.slope(here, pre_drawn)
        rate = self.learning_rate * self.scheduled(state.taken / self.steps)
        step = adam(slope.gradient, state.v, state.square, state.taken + 1, rate)
        finite = torch.isfinite(slope.loss) & torch.isfinite(step.move).flatten(1).all(1)
        move = torch.where(going.view(-1, *[1] * (here.ndim - 1)), step.move, 0.0)
        loss = torch.where(going, slope.loss, state.loss)
        penalty = torch.where(going, slope.penalty, state.penalty)
        after, failed = self.moved(
            state,
            finite | ~going,
            **self.parts(here - move),
            v=step.v,
            square=step.square,
            taken=state.taken + going,
            loss=loss,
            penalty=penalty,
        )
        return self.shown(after, going), Info(loss, penalty, torch.where(going, rate, 0.0), norm(move), failed)

    def shown(self, state: Any, going: Tensor) -> Any:
        """Return the state with what is drawn of those chains that are no longer ``going`` (chains,)."""
        return state

    def rested(self, state: Any) -> tuple[Any, Info]:
        """Return the state after a move at rest, and what happened: nothing."""
        nothing = torch.zeros_like(state.loss)
        info = Info(state.loss, state.penalty, torch.zeros_like(state.count), nothing, torch.zeros_like(state.alive))
        return state._replace(count=state.count + state.alive), info

    def settled(self, state: Any) -> bool:
        """Return whether the chains that are left have arrived."""
        return bool((state.taken >= self.steps)[state.alive].all())

    def ready(self, state: Any) -> Tensor | None:
        """Return which chains (chains,) have arrived."""
        return None if self.resting else state.taken >= self.steps

    def draw_collector(self, state: Any) -> MoveDrawCollector:
        """End the tuning, and draw of chains that have arrived."""
        self.resting = self.settled(state)
        return super().draw_collector(state)

    def resume(self, state: Any, moved: bool = False) -> Any:
        """Return the state; where the target has moved, the descent begins anew from there."""
        if not moved:
            return state
        self.resting, self._again = False, True
        return self._anew(state)

    def placed(self, state: Any, x: Tensor) -> Any:
        """Return the state of chains that set out anew from x (chains, dim)."""
        self.resting = False
        return self._anew(state)._replace(**self.parts(x))

    def _anew(self, state: Any) -> Any:
        nothing = torch.zeros_like(state.v)
        return state._replace(v=nothing, square=nothing, taken=torch.zeros_like(state.taken))

    def caption(self, info: Any, chain: int) -> str:
        """Say what a step did to a chain."""
        if float(info.rate[chain]) > 0:
            return super().caption(info, chain)
        return f"the descent has ended, with a loss of {float(info.loss[chain]):.4g}; {self.at_rest}"

    #: What is drawn at rest.
    at_rest: ClassVar[str] = "every draw is the point that it came to."

    def rows(self, state: Any) -> list[list[str]]:
        """Return how far the descents are, and the chains' losses."""
        taken, loss = state.taken[state.alive], state.loss[state.alive]
        if not len(taken):
            return []
        least = float(taken.min())
        rate = self.learning_rate * float(self.scheduled(taken.min() / self.steps)) if least < self.steps else 0.0
        epochs = least / self.epoch
        told = f"{epochs:,.0f}" if epochs >= 100 else f"{epochs:.3g}"
        return [
            ["Step of the descent; epoch", f"{least:,.0f} of {self.steps:,}; {told}", ""],
            ["Learning rate", f"{rate:.2g}" if rate else "– (the descent has ended)", ""],
            ["Loss, lowest to highest", f"{float(loss.min()):.4g} to {float(loss.max()):.4g}", ""],
        ]

    def adopt(self, other: Descending) -> None:
        """Take over whether the chains rest."""
        super().adopt(other)
        self.resting, self._again = other.resting, other._again


class Point(Descending):
    """Base of the descents to a point: of the negative log likelihood, and of the prior's term where it counts."""

    penalised = "prior"

    @property
    def regular(self) -> bool:
        """Whether the prior's term is part of the loss."""
        raise NotImplementedError

    def slope(self, trained: Tensor, batch: Any) -> Slope:
        """Return the loss at points (chains, dim) and its gradient."""
        fit, g = self.fit(trained, batch)
        penalty, pull = squared(trained, self.target.prior_precision if self.regular else None)
        return Slope(fit + penalty, penalty, g + pull)
