r"""Implement distribution functions of observations in torch, to find quantiles in a TorchScript program.

A likelihood's own ``cdf`` is SciPy's, which such a program has not. Student's law is a table here. Others are, with
:math:`z = (y - f) / s` and the mean :math:`\mu`,

.. math::
    \text{generalized\_gaussian: } P(|z| < t) = P(1 / \beta, t^\beta / \beta),

    \text{poisson: } P(y \le k) = Q(k + 1, \mu), \qquad
    \text{negative\_binomial: } P(y \le k) = I_{r / (r + \mu)}(r, k + 1),

with the regularised incomplete gamma functions P and Q (https://dlmf.nist.gov/8.2.E4) and the regularised incomplete
beta function I (https://dlmf.nist.gov/8.17.E2).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy import special
from torch import Tensor, nn

from bnnviz.targets.likelihoods import (
    GeneralizedGaussian,
    Heteroscedastic,
    IndependentNormals,
    Likelihood,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Poisson,
    StudentT,
)

_INTERVALS = 8192  # of a table, whose error is below 1e-6, and below 1e-8 from 3 degrees of freedom on
_NORMAL = (Normal, IndependentNormals, MultivariateNormal, Heteroscedastic)


def betainc(a: Tensor, b: Tensor, x: Tensor, rest: Tensor) -> Tensor:
    """Return the regularised incomplete beta function I_x(a, b), for positive a and b, and rest = 1 - x."""
    # The continued fraction of DLMF 8.17.22 (https://dlmf.nist.gov/8.17.E22), by Lentz's method, of I_x(a, b) or of
    # 1 - I_(1 - x)(b, a), whichever converges fast: after some multiples of the root of the larger of a and b.
    alike = torch.zeros_like(a * b * x)
    turned = x > (a + 1) / (a + b + 2)
    a, b = torch.where(turned, b, a + alike), torch.where(turned, a, b + alike)
    x, rest = torch.where(turned, rest, x), torch.where(turned, x, rest)
    front = torch.exp(torch.lgamma(a + b) - torch.lgamma(a) - torch.lgamma(b) + a * x.log() + b * rest.log()) / a
    numerator = torch.ones_like(x)
    denominator = 1 / (1 - (a + b) * x / (a + 1))
    fraction = denominator
    for m in range(1, 2000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        denominator = 1 / (1 + even * denominator)
        numerator = 1 + even / numerator
        fraction = fraction * denominator * numerator
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        denominator = 1 / (1 + odd * denominator)
        numerator = 1 + odd / numerator
        factor = denominator * numerator
        fraction = fraction * factor
        if bool((factor - 1).abs().max() < 1e-14):
            break
    found = front * fraction
    return torch.where(turned, 1 - found, found)


class _NormalLaw(nn.Module):
    def forward(self, y: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        """Return the probability of at most y (rows, ...), shaped like mean and sd (draws, rows, ...)."""
        return torch.special.ndtr((y - mean) / sd)


class _StudentLaw(nn.Module):
    """A table over u = z / sqrt(c + z^2), with cubic polynomials between its values and slopes."""

    def __init__(self, df: float, ratio: float) -> None:
        super().__init__()
        self.ratio, self.intervals, self.c = ratio, _INTERVALS, min(df, 4.0)
        u = np.linspace(-1, 1, _INTERVALS + 1)[1:-1]
        z = u * math.sqrt(self.c) / np.sqrt(1 - u * u)
        constant = math.lgamma(0.5 * (df + 1)) - math.lgamma(0.5 * df) - 0.5 * math.log(df * math.pi)
        density = np.exp(constant - 0.5 * (df + 1) * np.log1p(z * z / df))
        # With more than two degrees of freedom the density times dz / du is 0 at both ends.
        slopes = np.pad(density * math.sqrt(self.c) * (1 - u * u) ** -1.5, 1)
        values = np.pad(special.stdtr(df, z), 1, constant_values=(0.0, 1.0))
        self.register_buffer("values", torch.as_tensor(values))
        self.register_buffer("slopes", torch.as_tensor(slopes * 2 / _INTERVALS))

    def forward(self, y: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        """Return the probability of at most y."""
        z = (y - mean) / (sd * self.ratio)
        place = (z / (self.c + z.square()).sqrt() + 1) * (0.5 * self.intervals)
        left = place.floor().clamp(0, self.intervals - 1)
        t, k = place - left, left.long()
        begin, end = self.values[k], self.values[k + 1]
        first, last = self.slopes[k], self.slopes[k + 1]
        bend = (begin - end) * 2 + first + last
        return begin + t * (first + t * ((end - begin) * 3 - 2 * first - last + t * bend))


class _GeneralizedLaw(nn.Module):
    def __init__(self, power: float, ratio: float) -> None:
        super().__init__()
        self.power, self.ratio = power, ratio

    def forward(self, y: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        """Return the probability of at most y."""
        z = (y - mean) / (sd * self.ratio)
        inside = torch.special.gammainc(torch.full_like(z, 1 / self.power), z.abs() ** self.power / self.power)
        return 0.5 + 0.5 * torch.sign(z) * inside


class _PoissonLaw(nn.Module):
    def forward(self, y: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        """Return the probability of at most y."""
        count = torch.floor(y.clamp_min(0.0)).expand_as(mean)
        return torch.where(y >= 0, torch.special.gammaincc(count + 1, mean), torch.zeros_like(mean))


class _NegativeBinomialLaw(nn.Module):
    def __init__(self, concentration: Tensor) -> None:
        super().__init__()
        self.register_buffer("concentration", concentration)

    def forward(self, y: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        """Return the probability of at most y."""
        count, r = torch.floor(y.clamp_min(0.0)).expand_as(mean), self.concentration.expand_as(mean)
        return torch.where(y >= 0, betainc(r, count + 1, r / (r + mean), mean / (r + mean)), torch.zeros_like(mean))


def law_of(likelihood: Likelihood) -> nn.Module | None:
    """Return the distribution function of observations (rows, ...) given mean and sd (draws, rows, ...), or None."""
    if isinstance(likelihood, StudentT):
        return _StudentLaw(likelihood.df, _ratio(likelihood))
    if isinstance(likelihood, GeneralizedGaussian):
        return _GeneralizedLaw(likelihood.power, _ratio(likelihood))
    if isinstance(likelihood, NegativeBinomial):
        return _NegativeBinomialLaw(likelihood.log_concentration(torch.zeros(1, 1, 1, dtype=torch.float64)).exp())
    if isinstance(likelihood, Poisson):
        return _PoissonLaw()
    return _NormalLaw() if isinstance(likelihood, _NORMAL) else None


def _ratio(likelihood: StudentT | GeneralizedGaussian) -> float:
    """Return the ratio of the scale to the sd."""
    standard = type(likelihood)(likelihood.shape)
    return float(standard.variance(torch.zeros(1, 1, 1, dtype=torch.float64))) ** -0.5
