r"""Scale what is sampled of a network's weights, so that one isotropic normal prior stands for priors of many scales.

States keep independent coordinates :math:`\theta_k \sim N(0, \sigma^2)`, whatever the prior of the weights is, and a
weight is :math:`w_k = c_k \theta_k`, or :math:`w_k = c_k \theta_k e^{h_{g(k)} / \sigma}` where the scale of its group
g(k), of ten weights at least, is learned. The coordinates h of the groups have the same normal prior, so that the
logarithm of a group's scale has the sd 1. With :math:`c_k = n^{-1/2}` for the weights of a unit that reads n others,
the outputs of a wide network keep their spread (Neal 1996, chapter 2, https://doi.org/10.1007/978-1-4612-0745-0); a
scale for each input is his automatic relevance determination. From the derivatives by the weights those by the states
follow:

.. math::
    \frac{\partial \ell}{\partial \theta_k} = \frac{w_k}{\theta_k} \frac{\partial \ell}{\partial w_k}, \qquad
    \frac{\partial \ell}{\partial h_g} = \frac{1}{\sigma} \sum_{k: g(k) = g} w_k \frac{\partial \ell}{\partial w_k}.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

PRIORS = ("equal", "fan_in", "learned")
_LOGITS = 3.0
#: Weights that a scale is learned from at least: of fewer it is hardly known, and what is left is a ridge, along which
#: weight and scale change and their product does not, that holds every sampler up.
FEWEST = 10


class ScaledSegment(NamedTuple):
    """Consecutive weights with a learned scale for each column of their matrix, or with one for all."""

    start: int
    end: int
    columns: int


class Scales(NamedTuple):
    """Scales of weights.

    Attributes
    ----------
    fixed : Tensor, shape (weights,)
        The factors c.
    group : Tensor or None, shape (weights,)
        The number of the learned scale of each weight; that of one more than there are is 1. None if none is learned.
    """

    fixed: Tensor
    group: Tensor | None
    segments: list[ScaledSegment]
    names: list[str]


def scales(
    shapes: Mapping[str, torch.Size], prior: str, of_inputs: Collection[str] = (), of_logits: Collection[str] = ()
) -> Scales | None:
    """Return the scales of a prior; None where all weights have the same."""
    if prior == "equal":
        return None
    fixed = [torch.full((shape.numel(),), _fan_in(shape) ** -0.5, dtype=torch.float64) for shape in shapes.values()]
    if prior == "fan_in":
        return Scales(torch.cat(fixed), None, [], [])
    fixed = [part * (_LOGITS if name in of_logits else 1.0) for name, part in zip(shapes, fixed, strict=True)]
    names: list[str] = []
    groups: list[Tensor] = []
    segments: list[ScaledSegment] = []
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + shape.numel()
        if len(shape) < 2 or shape.numel() < FEWEST:
            groups.append(torch.full((shape.numel(),), -1))
            continue
        columns = shape[1] if name in of_inputs and shape[0] >= FEWEST else 1
        own = torch.arange(columns).expand(shape[0], -1) if columns > 1 else torch.zeros(shape.numel())
        groups.append(own.reshape(-1).long() + len(names))
        segments.append(ScaledSegment(start, end, columns))
        names += [f"log scale {name}[:, {k}]" for k in range(columns)] if columns > 1 else [f"log scale {name}"]
    if not names:
        return Scales(torch.cat(fixed), None, [], [])
    group = torch.cat(groups)
    return Scales(torch.cat(fixed), torch.where(group < 0, len(names), group), segments, names)


def _fan_in(shape: torch.Size) -> int:
    return max(shape[1:].numel(), 1)  # of a parameter without numbers too


def factors(theta: Tensor, scale: Tensor, group: Tensor | None, learned: int, rate: float) -> Tensor:
    """Return what coordinates are multiplied by: (weights,), or (..., weights) where scales are learned.

    Parameters
    ----------
    theta : Tensor, shape (..., dim)
        The coordinates of the weights, then those of the learned scales, then others.
    """
    if group is None:
        return scale
    logs = rate * theta[..., len(scale) : len(scale) + learned]
    logs = torch.cat([logs, torch.zeros_like(logs[..., :1])], -1)
    return scale * logs.exp()[..., group]


def pulled_back(
    weights: Tensor, gradient: Tensor, factor: Tensor, segments: Sequence[ScaledSegment], rate: float
) -> Tensor:
    """Return the gradient (chains, weights + learned) by the states from that by the weights, (chains, weights)."""
    own = gradient * factor
    if not segments:
        return own
    # Sums of views, and not by index: these come in any order on a GPU.
    product = rate * gradient * weights
    sums = [product[:, start:end].reshape(len(product), -1, columns).sum(1) for start, end, columns in segments]
    return torch.cat([own, *sums], 1)
