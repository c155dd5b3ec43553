r"""Map sampled coordinates with an isotropic normal prior to a network's weights, for priors of any scale and shape.

States have independent coordinates :math:`\theta_k \sim N(0, \sigma^2)` for every prior of the weights, and a weight is
:math:`w_k = c_k \theta_k`, or :math:`w_k = c_k \theta_k e^{h_{g(k)} / \sigma}` if the scale of its group g(k), of at
least ten weights, is learned. The coordinates h of the groups have the same normal prior, so that the logarithm of a
group's scale has sd 1. With :math:`c_k = n^{-1/2}` for the weights of a unit with n inputs, the outputs of a wide
network keep their variance (Neal 1996, chapter 2, https://doi.org/10.1007/978-1-4612-0745-0); a scale for each input is
his automatic relevance determination. The derivatives by the states follow from those by the weights:

.. math::
    \frac{\partial \ell}{\partial \theta_k} = \frac{w_k}{\theta_k} \frac{\partial \ell}{\partial w_k}, \qquad
    \frac{\partial \ell}{\partial h_g} = \frac{1}{\sigma} \sum_{k: g(k) = g} w_k \frac{\partial \ell}{\partial w_k}.

A weight whose prior is not normal has standard normal coordinates z, and :math:`w = F^{-1}(\Phi(z))` with its
distribution function F. Samplers, baselines and prior predictions thus need no case for it. A horseshoe, with a
half-Cauchy scale for each weight (Carvalho, Polson and Scott 2010, https://doi.org/10.1093/biomet/asq017), has no
quantiles in closed form: they come from its tail probabilities. Quantiles are interpolated by cubics with the exact
slopes, to six digits at least.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import scipy  # which imports scipy.stats, half a second, at its first use
import torch
from torch import Tensor, distributions

from bnnviz.errors import BnnvizError
from bnnviz.targets import validation

PRIORS = ("equal", "fan_in", "learned")
_LOGITS = 3.0
#: Minimum number of weights of a learned scale. With fewer, the scale is poorly determined and the posterior has a
#: ridge of constant product of weight and scale, which slows every sampler down.
FEWEST = 10
_END, _STEP = 9.0, 1 / 64  # of the interpolated z; beyond, with probability 1e-19, the map is linear


class WeightLaw(NamedTuple):
    """The prior of the weights start to end, which have this shape."""

    start: int
    end: int
    shape: torch.Size
    quantiles: Quantiles | Callable[[Tensor], Tensor]


class ScaledSegment(NamedTuple):
    """Consecutive weights with a learned scale for each column of their matrix, or one for all."""

    start: int
    end: int
    columns: int


class WeightPrior(NamedTuple):
    """The map from coordinates to weights.

    ``scale`` (weights,) has the fixed scales, ``group`` (weights,) the number of the learned scale of each weight, and
    ``rate`` is the precision of the coordinates, to the power 1/2.
    """

    rate: float
    scale: Tensor
    group: Tensor | None = None
    segments: Sequence[ScaledSegment] = ()
    names: Sequence[str] = ()
    laws: Sequence[WeightLaw] = ()

    def to(self, device: torch.device, dtype: torch.dtype) -> WeightPrior:
        """Return the map on a device, in a precision."""
        group = None if self.group is None else self.group.to(device)
        return self._replace(scale=self.scale.to(device, dtype), group=group)

    def factor(self, theta: Tensor) -> Tensor:
        """Return the factors on the coordinates theta (..., dim): (weights,), or (..., weights) with learned scales."""
        if self.group is None:
            return self.scale
        logs = self.rate * theta[..., len(self.scale) : len(self.scale) + len(self.names)]
        logs = torch.cat([logs, torch.zeros_like(logs[..., :1])], -1)
        return self.scale * logs.exp()[..., self.group]

    def weights(self, theta: Tensor) -> Tensor:
        """Return the weights (..., weights) at coordinates theta (..., dim)."""
        scaled = theta[..., : len(self.scale)] * self.factor(theta)
        parts, done = [], 0
        for start, end, shape, quantiles in self.laws:
            own = quantiles(scaled[..., start:end].reshape(*scaled.shape[:-1], *shape))
            parts += [scaled[..., done:start], own.reshape(*scaled.shape[:-1], end - start)]
            done = end
        return torch.cat([*parts, scaled[..., done:]], -1) if self.laws else scaled

    def coordinates(self, weights: Tensor) -> Tensor:
        """Return the coordinates of weights (weights,); 0, the centre, under a function, whose inverse is unknown."""
        z = weights.clone()
        for start, end, _, quantiles in self.laws:
            known = isinstance(quantiles, Quantiles)
            z[start:end] = quantiles.inverse(z[start:end]) if known else 0.0
        return z / self.scale.to(z)

    def pulled_back(self, theta: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient (chains, weights + learned) by theta from that by the weights, (chains, weights)."""
        own = gradient * self.factor(theta)
        if self.group is None:
            return own
        # Sums of views: indexed sums have a random order on a GPU.
        product = self.rate * own * theta[:, : len(self.scale)]
        sums = [
            product[:, start:end].reshape(len(product), -1, columns).sum(1) for start, end, columns in self.segments
        ]
        return torch.cat([own, *sums], 1)


def by_fan_in(
    shapes: Mapping[str, torch.Size], learns: bool, rate: float, of_inputs: Collection[str], of_logits: Collection[str]
) -> WeightPrior:
    """Return the prior whose scales decrease with the inputs of a unit, and are also learned for the larger groups."""
    # The fan-in is at least 1, also for empty parameters.
    roots = [max(shape[1:].numel(), 1) ** -0.5 for shape in shapes.values()]
    sizes = [shape.numel() for shape in shapes.values()]
    fixed = [torch.full((size,), root, dtype=torch.float64) for size, root in zip(sizes, roots, strict=True)]
    if not learns:
        return WeightPrior(rate, torch.cat(fixed))
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
    group = torch.cat(groups)
    group = torch.where(group < 0, len(names), group) if names else None
    return WeightPrior(rate, torch.cat(fixed), group, segments, names)


def by_name(shapes: Mapping[str, torch.Size], prior: Mapping[str, Any], rate: float) -> WeightPrior:
    """Return a prior by parameter, layer or pattern; the last match counts."""
    for pattern in prior:
        if not any(_matches(pattern, name) for name in shapes):
            raise BnnvizError(
                f"prior names {pattern!r}, which is no parameter; choose from {', '.join(shapes)}, the name of a layer,"
                " or a pattern such as '*.bias'.",
                "prior",
            )
    fixed, laws, end, sd = [], [], 0, 1 / rate
    for name, shape in shapes.items():
        start, end = end, end + shape.numel()
        pattern, value = [("", sd), *((key, each) for key, each in prior.items() if _matches(key, name))][-1]
        if _has_law(value):
            laws.append(WeightLaw(start, end, shape, quantiles_of(pattern, value, shape)))
            value = 1.0  # so that the coordinate is standard normal
        elif isinstance(value, torch.distributions.Normal):
            value = value.scale.item()
        value = validation.scale(f"prior[{pattern!r}]", value)
        fixed.append(torch.full((shape.numel(),), value / sd, dtype=torch.float64))
    return WeightPrior(rate, torch.cat(fixed), laws=laws)


def _has_law(value: Any) -> bool:
    """Return whether a prior is not a standard deviation, nor normal with mean 0."""
    is_normal = isinstance(value, torch.distributions.Normal) and value.scale.numel() == 1
    if isinstance(value, torch.distributions.Distribution):
        return not (is_normal and value.loc.count_nonzero() == 0)
    return callable(value) or hasattr(value, "logpdf")


def _matches(pattern: str, name: str) -> bool:
    return fnmatchcase(name, pattern) or name.startswith(f"{pattern}.")


def quantiles_of(pattern: str, prior: Any, shape: torch.Size) -> Quantiles | Callable[[Tensor], Tensor]:
    """Return the map of a distribution of torch or scipy.stats, or of a function of standard normal numbers."""
    if isinstance(prior, distributions.HalfCauchy) and prior.batch_shape.numel() == 1:
        z = np.arange(0.0, _END + _STEP / 2, _STEP)
        positive, slopes = (prior.scale.item() * each for each in _horseshoe(z))
        return Quantiles(np.concatenate([-positive[:0:-1], positive]), np.concatenate([slopes[:0:-1], slopes]))
    if isinstance(prior, distributions.Distribution):
        prior = _of_torch(pattern, prior)
    if isinstance(prior, scipy.stats.distributions.rv_frozen):
        z = np.arange(-_END, _END + _STEP / 2, _STEP)
        quantiles = np.where(z < 0, prior.ppf(scipy.special.ndtr(z)), prior.isf(scipy.special.ndtr(-z)))
        slopes = np.exp(scipy.stats.norm.logpdf(z) - prior.logpdf(quantiles))
        if not (np.isfinite(quantiles).all() and np.isfinite(slopes).all()):
            raise BnnvizError(f"The prior of {pattern!r} has no finite quantiles; give another one.", "prior")
        return Quantiles(quantiles, slopes)
    if not callable(prior):
        raise BnnvizError(f"The prior of {pattern!r} is {prior!r:.80}, which has no density.", "prior")
    found = prior(torch.zeros(2, *shape, dtype=torch.float64))
    if not isinstance(found, Tensor) or found.shape != (2, *shape) or not torch.isfinite(found).all():
        raise BnnvizError(
            f"The function prior[{pattern!r}] must return finite weights of the shape of its argument, {(2, *shape)}.",
            "prior",
        )
    return prior


def _of_torch(pattern: str, prior: distributions.Distribution) -> Any:
    """Return a distribution of torch as one of scipy.stats."""
    known = {
        distributions.Normal: lambda p: scipy.stats.norm(p.loc.item(), p.scale.item()),
        distributions.Laplace: lambda p: scipy.stats.laplace(p.loc.item(), p.scale.item()),
        distributions.Cauchy: lambda p: scipy.stats.cauchy(p.loc.item(), p.scale.item()),
        distributions.StudentT: lambda p: scipy.stats.t(p.df.item(), p.loc.item(), p.scale.item()),
    }
    if type(prior) not in known or prior.batch_shape.numel() != 1:
        names = ", ".join(each.__name__ for each in known)
        raise BnnvizError(
            f"The prior of {pattern!r} is {prior!r:.80}; give a standard deviation, one of {names} or HalfCauchy (a"
            " horseshoe) with single numbers, a continuous distribution of scipy.stats, or a function.",
            "prior",
        )
    return known[type(prior)](prior)


def _horseshoe(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return quantiles of normal numbers with standard half-Cauchy scales and their slopes, at z >= 0."""
    # With the scale e^u, u has the density 1 / (pi cosh u); sums over equal steps converge exponentially.
    u, step = np.linspace(-60.0, 60.0, 2401, retstep=True)
    logs = np.linspace(-9.0, 46.0, 1001)
    tails = scipy.special.ndtr(-np.exp(logs[:, None] - u)) @ (step / (np.pi * np.cosh(u)))
    spline = scipy.interpolate.CubicSpline(-scipy.special.ndtri(tails), logs)
    quantiles = np.exp(spline(z[1:]))
    return np.concatenate([[0.0], quantiles]), np.concatenate([[0.0], quantiles * spline(z[1:], 1)])


class Quantiles:
    """The map through quantiles at equally spaced z from -9 to 9, with these slopes."""

    def __init__(self, quantiles: np.ndarray, slopes: np.ndarray) -> None:
        self._quantiles = quantiles
        self._table = torch.as_tensor(np.stack([quantiles, _STEP * slopes]))

    def __call__(self, z: Tensor) -> Tensor:
        """Return the weights at coordinates z."""
        at = (z + _END) / _STEP
        k = at.detach().nan_to_num().floor().clamp(0, len(self._quantiles) - 2).long()
        (y0, y1), (s0, s1) = ((row[k], row[k + 1]) for row in self._table.to(z))
        inside = (at - k).clamp(0, 1)
        cubic = inside * (s0 + inside * (3 * (y1 - y0) - 2 * s0 - s1 + inside * (2 * (y0 - y1) + s0 + s1)))
        beyond = at - k - inside
        return y0 + cubic + beyond * torch.where(beyond > 0, s1, s0)

    def inverse(self, w: Tensor) -> Tensor:
        """Return the coordinates of weights, by linear interpolation."""
        at = np.interp(w.cpu().numpy(), self._quantiles, np.arange(len(self._quantiles)) * _STEP - _END)
        return torch.as_tensor(at).to(w)
