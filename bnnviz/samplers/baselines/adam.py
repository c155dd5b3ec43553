"""Samplers that are trained: one step is one step of Adam for every chain, on a loss that a subclass gives."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.discrete import Moving, length
from bnnviz.samplers.minibatch import FullData, MiniBatch, refuse_without_rows
from bnnviz.targets import Target

_FIRST, _SECOND, _FLOOR = 0.9, 0.999, 1e-8  # as Kingma and Ba 2015 recommend


class State(NamedTuple):
    """All chains between two steps of training.

    Attributes
    ----------
    x, v : Tensor, shape (chains, dim)
        Position, and the running mean of the gradient.
    count : Tensor, shape (chains,), float64
        Moves since the start.
    alive : Tensor, bool
        False for a chain that met a value that is not finite.
    square : Tensor, shape (chains, dim)
        Running mean of the gradient's square.
    taken : Tensor, shape (chains,), float64
        Steps of Adam in this training.
    loss, penalty : Tensor, shape (chains,)
        Before the last step: the loss as its batch has it, and the part of it that is not the fit to the data.
    """

    x: Tensor
    v: Tensor
    count: Tensor
    alive: Tensor
    square: Tensor
    taken: Tensor
    loss: Tensor
    penalty: Tensor


class Info(NamedTuple):
    """What one step did, for every chain, shape (chains,).

    Attributes
    ----------
    loss, penalty : Tensor
        As of `State`.
    rate, went : Tensor
        Learning rate, and how far it moved the chain; zero where the training has ended.
    failed : Tensor, bool
        The chain met a value that is not finite.
    """

    loss: Tensor
    penalty: Tensor
    rate: Tensor
    went: Tensor
    failed: Tensor


class Slope(NamedTuple):
    """A loss and its penalty (chains,), and the gradient of the loss, shaped like what is trained."""

    loss: Tensor
    penalty: Tensor
    gradient: Tensor


class Step(NamedTuple):
    """A step of Adam: how far to go back, and the running means after it."""

    move: Tensor
    v: Tensor
    square: Tensor


def adam(g: Tensor, v: Tensor, square: Tensor, number: Tensor, rate: Tensor) -> Step:
    """Return a step of Adam as a function of its state, which `torch.optim` has only as something that it changes.

    Parameters
    ----------
    g, v, square : Tensor, shape (chains, ...)
        Gradient, and the running means of it and of its square.
    number : Tensor, shape (chains,)
        Which step it is in each chain's training, from 1.
    rate : Tensor, shape (chains,)
        Learning rate.
    """
    v, square = torch.lerp(g, v, _FIRST), torch.lerp(g.square(), square, _SECOND)
    shape = (-1, *[1] * (g.ndim - 1))
    scale = (rate / (1 - _FIRST**number)).to(g.dtype).view(shape)
    root = (1 - _SECOND**number).sqrt().to(g.dtype).view(shape)
    return Step(scale * v / (square.sqrt() / root + _FLOOR), v, square)


class Trained(Moving):
    """Base of the samplers that are trained by Adam: batches, learning rate and its schedule.

    Attributes
    ----------
    penalised : str
        What the penalty is called in the table.
    """

    exact = False
    converges = False
    descends = True
    start = "random"
    told = ("loss", "penalty")
    penalised: ClassVar[str] = "penalty"

    learning_rate = settings.Number(
        0.01, bounds=(1e-7, 1.0), scale="log", doc="Learning rate of Adam in the first step."
    )
    schedule = settings.Choice(
        "linear",
        objects=["linear", "cosine", "constant"],
        doc="How the learning rate falls. linear: evenly to zero. cosine: to zero, slowly at both ends. constant: it"
        " stays.",
    )
    batch_size = settings.Integer(
        None,
        bounds=(1, 1_000_000),
        scale="log",
        allow_None=True,
        label="Mini-batch",
        unit="rows",
        empty="all rows",
        doc="Data rows that a gradient reads, drawn afresh for each step, weighted to stand for all of them; empty: all"
        " rows.",
    )

    def check(self, target: Target) -> None:
        """Raise where batches do not fit the target."""
        refuse_without_rows(target, self.batch_size)

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target and its batches."""
        super().prepare(target, mode)
        self.source: FullData | MiniBatch = FullData(target)
        if self.batch_size is not None:
            self.source = MiniBatch(target, self.batch_size, False, None)

    def init(self, x0: Tensor, rng: torch.Generator) -> State:
        """Return the chains at their starting points, untrained."""
        first = super().init(x0, rng)
        nothing = x0.new_zeros(len(x0))
        return State(*first, torch.zeros_like(x0), torch.zeros_like(first.count), nothing, nothing)

    @property
    def width(self) -> int:
        """Numbers that a state holds of each chain and coordinate."""
        return 3

    @property
    def examples_per_step(self) -> int:
        """Gradients of single rows that a step is charged for."""
        return self.source.examples * self.passes

    @property
    def passes(self) -> int:
        """How often a step reads its rows."""
        return 1

    @property
    def epoch(self) -> int:
        """Steps that read as many rows as there are."""
        return max(1, math.ceil((self.target.data_rows or 1) / max(self.source.examples, 1)))

    def scheduled(self, share: Tensor) -> Tensor:
        """Return what the learning rate is multiplied by (chains,) after a share (chains,) of the training."""
        if self.schedule == "constant":
            return torch.ones_like(share)
        return 1 - share if self.schedule == "linear" else 0.5 + 0.5 * torch.cos(math.pi * share)

    def fit(self, x: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
        """Return the negative log likelihood (chains,) of states (chains, dim) and its gradient: U without the prior.

        Where U has no prior of its own it is U.
        """
        potential, g = self.source.of(batch).gradient(x)
        precision = self.target.prior_precision or 0.0
        return potential - 0.5 * precision * x.square().sum(-1), g - precision * x

    def pre_draw(self, state: Any) -> Any:
        """Draw the batch."""
        return self.source.draw((), len(state.x), self.rng)

    def caption(self, info: Any, chain: int) -> str:
        """Say what a step of Adam did to a chain."""
        loss, rate, jump_distance = (float(part[chain]) for part in (info.loss, info.rate, info.went))
        return f"the loss was {loss:.4g}; Adam at learning rate {rate:.2g} moves the chain by {jump_distance:.3g}."

    def told_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return the loss, and the parts that it has."""
        loss, penalty = means["loss"], means["penalty"]
        return [[f"Loss = fit + {self.penalised}", f"{loss:.4g} = {loss - penalty:.4g} + {penalty:.4g}", ""]]

    def told_words(self, means: dict[str, float]) -> str:
        """Return the loss."""
        return f"with a loss of {means['loss']:.4g} on average"

    def rebuilt(self, parts: list[Tensor]) -> Any:
        """Return the state made of its tensors."""
        return State(*parts)


def squared(x: Tensor, precision: float | None) -> tuple[Tensor, Tensor]:
    """Return precision |x|^2 / 2 (chains,) of states (chains, dim), and its gradient; zero without a precision."""
    pull = (precision or 0.0) * x
    return 0.5 * (pull * x).sum(-1), pull


def norm(move: Tensor) -> Tensor:
    """Return the lengths (chains,) of moves (chains, ...)."""
    return length(move.flatten(1))
