r"""Train samplers by Adam: a step updates every chain, on a loss defined by a subclass.

With g the gradient of the loss in step t,

$$m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \quad
  x \leftarrow x - \eta \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \varepsilon}.$$

Reference: D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR 2015,
doi:10.48550/arXiv.1412.6980.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import Sampler, Traits
from bnnviz.samplers.baselines.text import TrainedText
from bnnviz.samplers.minibatch import MiniBatch, batch_size_setting, refuse_without_rows
from bnnviz.samplers.random import RandomNumbers
from bnnviz.targets import Target

_FIRST, _SECOND, _FLOOR = 0.9, 0.999, 1e-8  # beta 1, beta 2 and epsilon, as Kingma and Ba recommend


class Info(NamedTuple):
    """Info of one step for every chain, shape (chains,)."""

    # Before the step: the loss on its batch, and its penalty part
    loss: Tensor
    penalty: Tensor
    # Learning rate, and distance moved; zero after the training
    learning_rate: Tensor
    jump_distance: Tensor
    failed: Tensor  # bool: The chain met a non-finite value


class LossGradient(NamedTuple):
    """A loss and its penalty (chains,), and the gradient of the loss, shaped like the trained part."""

    loss: Tensor
    penalty: Tensor
    gradient: Tensor


class Step(NamedTuple):
    """A step of Adam: the decrement, and the running means after it."""

    move: Tensor
    mean: Tensor
    square: Tensor


def adam(g: Tensor, mean: Tensor, square: Tensor, number: Tensor, rate: Tensor) -> Step:
    """Return a step of Adam for (chains, ...), number and rate (chains,); `torch.optim` would update in place."""
    mean, square = torch.lerp(g, mean, _FIRST), torch.lerp(g.square(), square, _SECOND)
    shape = (-1, *[1] * (g.ndim - 1))
    scale = (rate / (1 - _FIRST**number)).to(g.dtype).view(shape)
    root = (1 - _SECOND**number).sqrt().to(g.dtype).view(shape)
    return Step(scale * mean / (square.sqrt() / root + _FLOOR), mean, square)


class Trained(Sampler):
    """Base of the samplers trained by Adam: batches, learning rate and its schedule."""

    traits = Traits(exact=False, converges=False, descends=True)
    start = "random"
    info_means = {"loss": "loss", "penalty": "penalty"}
    text = TrainedText
    width = 3

    learning_rate = settings.Number(0.01, bounds=(1e-7, 1.0), scale="log", doc="Initial learning rate of Adam.")
    schedule = settings.Choice(
        "linear",
        objects=["linear", "cosine", "constant"],
        doc="Schedule of the learning rate: linear or cosine decay to zero, or constant.",
    )
    batch_size = batch_size_setting("Number of random data rows per gradient, redrawn for each step. Empty: all rows.")

    def check(self, target: Target) -> None:
        """Raise if batches do not fit the target."""
        refuse_without_rows(target, self.batch_size)

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target and its batches."""
        super().prepare(target, mode)
        self.source = MiniBatch(target, self.batch_size)

    @property
    def gradients_per_step(self) -> int:
        """Single-row gradients that a step is charged."""
        return self.source.examples * self.passes

    @property
    def passes(self) -> int:
        """Passes over the rows of a batch per step."""
        return 1

    @property
    def epoch(self) -> int:
        """Steps that use as many rows as the data set has."""
        return max(1, math.ceil((self.target.data_rows or 1) / max(self.source.examples, 1)))

    def scheduled(self, share: Tensor) -> Tensor:
        """Return the factor on the learning rate (chains,) after a share (chains,) of the training."""
        if self.schedule == "constant":
            return torch.ones_like(share)
        return 1 - share if self.schedule == "linear" else 0.5 + 0.5 * torch.cos(math.pi * share)

    def fit(self, x: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
        """Return U (chains,) at states (chains, dim) without the term of a separate prior, and its gradient."""
        potential, g = self.source.of(batch).gradient(x)
        precision = self.target.prior_precision or 0.0
        return potential - 0.5 * precision * x.square().sum(-1), g - precision * x

    def pre_draw(self, rng: RandomNumbers, state: Any) -> tuple:
        """Draw the batch."""
        return (self.source.draw((), len(state.x), rng),)


class Training(NamedTuple):
    """Progress of the training of every chain."""

    # Running means of the gradient and of its square, shaped like the trained part
    mean: Tensor
    square: Tensor
    taken: Tensor  # (chains,), float64: Steps of Adam in this training
    # (chains,): As in `Info`
    loss: Tensor
    penalty: Tensor

    @classmethod
    def begun(cls, trained: Tensor) -> Training:
        """Return the training of chains before the first step, for a trained part (chains, ...)."""
        zero, nothing = torch.zeros_like(trained), trained.new_zeros(len(trained))
        return cls(zero, zero, nothing.double(), nothing, nothing)

    def restarted(self) -> Training:
        """Return the training before the first step, with the last losses."""
        zero = torch.zeros_like(self.mean)
        return self._replace(mean=zero, square=zero, taken=torch.zeros_like(self.taken))


def squared(x: Tensor, precision: float | None) -> tuple[Tensor, Tensor]:
    """Return precision |x|^2 / 2 (chains,) of states (chains, dim), and its gradient; zero without a precision."""
    pull = (precision or 0.0) * x
    return 0.5 * (pull * x).sum(-1), pull
