r"""Map sampled coordinates to weights with a prior that is not normal.

A state has standard normal coordinates z for every prior; a weight with the distribution function F is
:math:`w = F^{-1}(\Phi(z))`. Samplers, baselines and prior predictions thus need no case for it. A horseshoe, with a
half-Cauchy scale for each weight (Carvalho, Polson and Scott 2010, https://doi.org/10.1093/biomet/asq017), has no
quantiles in closed form: they come from its tail probabilities. Quantiles are interpolated by cubics with the exact
slopes, to six digits at least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import interpolate, special, stats
from torch import Tensor, distributions

from bnnviz.errors import BnnvizError

_END, _STEP = 9.0, 1 / 64  # of the interpolated z; beyond, with probability 1e-19, the map is linear


class WeightLaw(NamedTuple):
    """The prior of the weights start to end, which have this shape."""

    start: int
    end: int
    shape: torch.Size
    quantiles: Quantiles | Callable[[Tensor], Tensor]


def mapped(z: Tensor, laws: Sequence[WeightLaw]) -> Tensor:
    """Return weights (..., weights) at coordinates z; those without a law are unchanged."""
    parts, done = [], 0
    for start, end, shape, quantiles in laws:
        own = quantiles(z[..., start:end].reshape(*z.shape[:-1], *shape))
        parts += [z[..., done:start], own.reshape(*z.shape[:-1], end - start)]
        done = end
    return torch.cat([*parts, z[..., done:]], -1)


def inverted(weights: Tensor, laws: Sequence[WeightLaw]) -> Tensor:
    """Return the coordinates of weights (weights,); 0, the centre, under a function, whose inverse is unknown."""
    z = weights.clone()
    for start, end, _, quantiles in laws:
        known = isinstance(quantiles, Quantiles)
        z[start:end] = quantiles.inverse(z[start:end]) if known else 0.0
    return z


def quantiles_of(pattern: str, prior: Any, shape: torch.Size) -> Quantiles | Callable[[Tensor], Tensor]:
    """Return the map of a distribution of torch or scipy.stats, or of a function of standard normal numbers."""
    if isinstance(prior, distributions.HalfCauchy) and prior.batch_shape.numel() == 1:
        z = np.arange(0.0, _END + _STEP / 2, _STEP)
        positive, slopes = (prior.scale.item() * each for each in _horseshoe(z))
        return Quantiles(np.concatenate([-positive[:0:-1], positive]), np.concatenate([slopes[:0:-1], slopes]))
    if isinstance(prior, distributions.Distribution):
        prior = _of_torch(pattern, prior)
    if isinstance(prior, stats.distributions.rv_frozen):
        z = np.arange(-_END, _END + _STEP / 2, _STEP)
        quantiles = np.where(z < 0, prior.ppf(special.ndtr(z)), prior.isf(special.ndtr(-z)))
        slopes = np.exp(stats.norm.logpdf(z) - prior.logpdf(quantiles))
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
        distributions.Normal: lambda p: stats.norm(p.loc.item(), p.scale.item()),
        distributions.Laplace: lambda p: stats.laplace(p.loc.item(), p.scale.item()),
        distributions.Cauchy: lambda p: stats.cauchy(p.loc.item(), p.scale.item()),
        distributions.StudentT: lambda p: stats.t(p.df.item(), p.loc.item(), p.scale.item()),
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
    tails = special.ndtr(-np.exp(logs[:, None] - u)) @ (step / (np.pi * np.cosh(u)))
    spline = interpolate.CubicSpline(-special.ndtri(tails), logs)
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
