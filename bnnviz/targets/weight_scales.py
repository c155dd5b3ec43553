r"""Scale the sampled coordinates of a network's weights, so that an isotropic normal prior gives priors of many scales.

States have independent coordinates :math:`\theta_k \sim N(0, \sigma^2)` for every prior of the weights, and a weight is
:math:`w_k = c_k \theta_k`, or :math:`w_k = c_k \theta_k e^{h_{g(k)} / \sigma}` if the scale of its group g(k), of at
least ten weights, is learned. The coordinates h of the groups have the same normal prior, so that the logarithm of a
group's scale has sd 1. With :math:`c_k = n^{-1/2}` for the weights of a unit with n inputs, the outputs of a wide
network keep their variance (Neal 1996, chapter 2, https://doi.org/10.1007/978-1-4612-0745-0); a scale for each input is
his automatic relevance determination. The derivatives by the states follow from those by the weights:

.. math::
    \frac{\partial \ell}{\partial \theta_k} = \frac{w_k}{\theta_k} \frac{\partial \ell}{\partial w_k}, \qquad
    \frac{\partial \ell}{\partial h_g} = \frac{1}{\sigma} \sum_{k: g(k) = g} w_k \frac{\partial \ell}{\partial w_k}.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz.errors import BnnvizError
from bnnviz.targets import validation, weight_laws

PRIORS = ("equal", "fan_in", "learned")
_LOGITS = 3.0
#: Minimum number of weights of a learned scale. With fewer, the scale is poorly determined and the posterior has a
#: ridge of constant product of weight and scale, which slows every sampler down.
FEWEST = 10


class ScaledSegment(NamedTuple):
    """Consecutive weights with a learned scale for each column of their matrix, or one for all."""

    start: int
    end: int
    columns: int


class Scales(NamedTuple):
    """Scales of weights: fixed ones (weights,), and the group (weights,) of each learned one."""

    fixed: Tensor
    group: Tensor | None
    segments: list[ScaledSegment]
    names: list[str]


def scales(
    shapes: Mapping[str, torch.Size], prior: str, of_inputs: Collection[str] = (), of_logits: Collection[str] = ()
) -> Scales | None:
    """Return the scales of a prior; None if all weights have the same."""
    if prior == "equal":
        return None
    # The fan-in is at least 1, also for empty parameters.
    roots = [max(shape[1:].numel(), 1) ** -0.5 for shape in shapes.values()]
    sizes = [shape.numel() for shape in shapes.values()]
    fixed = [torch.full((size,), root, dtype=torch.float64) for size, root in zip(sizes, roots, strict=True)]
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


def by_name(
    shapes: Mapping[str, torch.Size], prior: Mapping[str, Any], sd: float
) -> tuple[Tensor, list[weight_laws.WeightLaw]]:
    """Return the scales (weights,) and the laws of a prior by parameter, layer or pattern; the last match counts.

    A weight with a law has the scale that makes its coordinate standard normal.
    """
    for pattern in prior:
        if not any(_matches(pattern, name) for name in shapes):
            raise BnnvizError(
                f"prior names {pattern!r}, which is no parameter; choose from {', '.join(shapes)}, the name of a layer,"
                " or a pattern such as '*.bias'.",
                "prior",
            )
    fixed, laws, end = [], [], 0
    for name, shape in shapes.items():
        start, end = end, end + shape.numel()
        pattern, value = [("", sd), *((key, each) for key, each in prior.items() if _matches(key, name))][-1]
        if _has_law(value):
            laws.append(weight_laws.WeightLaw(start, end, shape, weight_laws.quantiles_of(pattern, value, shape)))
            value = 1.0
        elif isinstance(value, torch.distributions.Normal):
            value = value.scale.item()
        value = validation.scale(f"prior[{pattern!r}]", value)
        fixed.append(torch.full((shape.numel(),), value / sd, dtype=torch.float64))
    return torch.cat(fixed), laws


def _has_law(value: Any) -> bool:
    """Return whether a prior is not a standard deviation, nor normal with mean 0."""
    is_normal = isinstance(value, torch.distributions.Normal) and value.scale.numel() == 1
    if isinstance(value, torch.distributions.Distribution):
        return not (is_normal and value.loc.count_nonzero() == 0)
    return callable(value) or hasattr(value, "logpdf")


def _matches(pattern: str, name: str) -> bool:
    return fnmatchcase(name, pattern) or name.startswith(f"{pattern}.")


def factors(theta: Tensor, scale: Tensor, group: Tensor | None, learned: int, rate: float) -> Tensor:
    """Return the factors on the coordinates theta (..., dim): (weights,), or (..., weights) with learned scales."""
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
    # Sums of views: indexed sums have a random order on a GPU.
    product = rate * gradient * weights
    sums = [product[:, start:end].reshape(len(product), -1, columns).sum(1) for start, end, columns in segments]
    return torch.cat([own, *sums], 1)
