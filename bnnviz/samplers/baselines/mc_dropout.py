"""Sample by Monte Carlo dropout."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.models.perceptron import WithLinearPath
from bnnviz.samplers.base import REGISTRY, counters, preset
from bnnviz.samplers.baselines.adam import Info, LossGradient, Training, squared
from bnnviz.samplers.baselines.descent import BATCHES, Descending, Rest
from bnnviz.samplers.baselines.text import DropoutText
from bnnviz.samplers.random import RandomNumbers
from bnnviz.targets import BNN, Target


class State(NamedTuple):
    """State of all chains between two steps."""

    x: Tensor  # (chains, dim): The masked weights at rest, the weights during the descent
    # (chains,): As in `bnnviz.samplers.baselines.descent.State`
    count: Tensor
    alive: Tensor
    training: Training
    w: Tensor  # (chains, dim): The weights
    adaptation: Rest


class Reader(NamedTuple):
    """A layer that reads droppable units: the slice of its weights, their shape, and the number of units."""

    start: int
    shape: torch.Size
    units: int

    def spread(self, keep: Tensor) -> Tensor:
        """Return the factors on weights (chains, weights) from the factors on units (chains, units)."""
        outputs, inputs = self.shape[:2]
        groups = self.units // inputs
        # In a grouped convolution each group of outputs reads separate inputs.
        each = keep.view(len(keep), groups, 1, inputs).expand(-1, -1, outputs // groups, -1).flatten(1, 2)
        return each[..., None].expand(-1, -1, -1, self.shape[2:].numel()).flatten(1)


def readers(target: BNN) -> list[Reader]:
    """Return the linear and convolutional layers in order, except frozen ones and those that read the inputs."""
    starts, start = {}, 0
    for name, shape in target.shapes.items():
        starts[name], start = start, start + shape.numel()
    found: list[Reader | None] = []
    for name, child in target.module.named_modules():
        weight = f"{name}.weight" if name else "weight"
        plain = isinstance(child, _ConvNd) and not isinstance(child, _ConvTransposeNd)
        if plain or isinstance(child, nn.Linear):
            units = child.in_channels if plain else child.in_features
            found.append(Reader(starts[weight], target.shapes[weight], units) if weight in starts else None)
    of_inputs = 2 if isinstance(target.module, WithLinearPath) else 1
    return [reader for reader in found[of_inputs:] if reader is not None]


@REGISTRY.add
class MCDropout(Descending):
    """Monte Carlo dropout: a network trained and evaluated with randomly dropped units.

    In each training step every hidden unit is dropped with probability p, separately for each row, and the others are
    divided by 1 - p; the loss is -log likelihood plus the prior's term of the full weights. A chain is one such descent
    by Adam. A draw is these weights under one more mask: the outgoing weights of a dropped unit are zero, the others
    divided by 1 - p, so that the average prediction over draws is that of MC dropout. Networks other than multilayer
    perceptrons are masked in weight space, at the inputs of each linear and convolutional layer except the first (for
    convolutions, whole channels), with one mask for all rows of a step. The spread of the draws depends on p, not on
    the number of data. Source: Gal and Ghahramani 2016; p = 0.5 as in the PMCnet paper.
    """

    registered = "mc_dropout"
    title = "MC dropout"
    trained = "w"
    text = DropoutText
    width = 4

    drop = settings.Number(
        0.5,
        bounds=(0.0, 0.95),
        step=0.05,
        label="p",
        doc="Dropout probability of hidden units. With 0, the result is the MAP estimate.",
    )

    presets = [
        preset("light", "Few units dropped", "p = 0.1, for small networks.", drop=0.1),
        BATCHES,
    ]

    def check(self, target: Target) -> None:
        """Raise if there are no units to drop."""
        super().check(target)
        if not isinstance(target, BNN) or not readers(target):
            raise BnnvizError(
                f"{self.title} needs a network with a hidden layer, whose units it drops, but"
                f" {target.describe_value()} has no hidden layer; choose another sampler or a network.",
                "sampler",
            )

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target and find the layers that read hidden units."""
        super().prepare(target, mode)
        self._readers = readers(target)

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains at their initial positions, untrained."""
        return State(x0, *counters(x0), Training.begun(x0), x0, Rest())

    def parts(self, trained: Tensor) -> dict[str, Tensor]:
        """Return the weights, shown unmasked."""
        return {"w": trained, "x": trained}

    def _kept(self, rng: RandomNumbers, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Return the factors on units: 0, or 1 / (1 - p)."""
        return (rng.uniform(shape, dtype) >= self.drop).to(dtype) / (1 - self.drop)

    def factors(self, rng: RandomNumbers, like: Tensor) -> Tensor:
        """Return the factors on weights (chains, dim) under a mask for each chain."""
        factors = torch.ones_like(like)
        for reader in self._readers:
            keep = self._kept(rng, (len(like), reader.units), like.dtype)
            factors[:, reader.start : reader.start + reader.shape.numel()] = reader.spread(keep)
        return factors

    def slope(self, rng: RandomNumbers, trained: Tensor, batch: Any) -> LossGradient:
        """Return the loss of weights (chains, dim) under fresh masks, and its gradient."""
        fit, g = (self._by_factors if self.target.layers is None else self._by_units)(rng, trained, batch)
        penalty, pull = squared(trained, self.target.prior_precision)
        return LossGradient(fit + penalty, penalty, g + pull)

    def _by_factors(self, rng: RandomNumbers, w: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
        """Return -log likelihood with one mask for all rows, and its gradient."""
        factors = self.factors(rng, w)
        fit, g = self.fit(w * factors, batch)
        return fit, g * factors

    def _by_units(self, rng: RandomNumbers, w: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
        """Return -log likelihood with a mask for each row, and its gradient."""
        rows = self.source.rows(batch)
        units = [layer.inputs for layer in self.target.layers[1:]]
        masks = [self._kept(rng, (len(w), count, self.target.count(rows)), w.dtype) for count in units]
        with torch.enable_grad():
            w = w.detach().requires_grad_(True)
            fit = self.target.fit_under_masks(w, rows, masks)
            (gradient,) = torch.autograd.grad(fit.sum(), w)
        return fit.detach(), gradient

    def shown(self, rng: RandomNumbers, state: State, going: Tensor) -> State:
        """Return the state with the weights of converged chains under a fresh mask."""
        return state._replace(x=torch.where(going[:, None], state.w, state.w * self.factors(rng, state.w)))

    def rested(self, rng: RandomNumbers, state: State) -> tuple[State, Info]:
        """Return the state after a step at rest: the weights under a fresh mask."""
        after, info = super().rested(rng, state)
        return self.shown(rng, after, torch.zeros_like(state.alive)), info
