r"""Implement distribution functions of observations in torch, to find quantiles in a TorchScript program.

A likelihood's own ``cdf`` is SciPy's, which such a program has not. With :math:`z = (y - f) / s` and
the mean :math:`\mu`,

.. math::
    \text{student\_t: } P(z < -t) = I_{\nu / (\nu + t^2)}(\nu / 2, 1 / 2) / 2, \qquad
    \text{generalized\_gaussian: } P(|z| < t) = P(1 / \beta, t^\beta / \beta),

    \text{poisson: } P(y \le k) = Q(k + 1, \mu), \qquad
    \text{negative\_binomial: } P(y \le k) = I_{r / (r + \mu)}(r, k + 1),

with the regularised incomplete gamma functions P and Q (https://dlmf.nist.gov/8.2.E4) and the regularised incomplete
beta function I (https://dlmf.nist.gov/8.17.E2).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bnnviz.targets.likelihoods import (
    GeneralizedGaussian,
    Heteroscedastic,
    IndependentNormals,
    Likelihood,
    LogNormal,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Poisson,
    StudentT,
)

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


class NormalLaw(nn.Module):
    """The normal law."""

    def forward(self, y: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        """Return the probability of at most y (rows, ...), shaped like mean and sd (draws, rows, ...)."""
        return torch.special.ndtr((y - mean) / sd)


class _LogNormalLaw(nn.Module):
    def forward(self, y: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        """Return the probability of at most y."""
        square = torch.log1p((sd / mean).square())  # the variance of log y
        return torch.special.ndtr((y.clamp_min(1e-300).log() - mean.log() + 0.5 * square) / square.sqrt())


class _StudentLaw(nn.Module):
    def __init__(self, df: float, ratio: float) -> None:
        super().__init__()
        self.df, self.ratio = df, ratio

    def forward(self, y: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        """Return the probability of at most y."""
        square = ((y - mean) / (sd * self.ratio)).square()
        half = torch.full_like(square, 0.5)
        tail = 0.5 * betainc(self.df * half, half, self.df / (self.df + square), square / (self.df + square))
        return torch.where(y < mean, tail, 1 - tail)


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
    if isinstance(likelihood, LogNormal):
        return _LogNormalLaw()
    if isinstance(likelihood, NegativeBinomial):
        return _NegativeBinomialLaw(likelihood.log_concentration(torch.zeros(1, 1, 1, dtype=torch.float64)).exp())
    if isinstance(likelihood, Poisson):
        return _PoissonLaw()
    return NormalLaw() if isinstance(likelihood, _NORMAL) else None


def _ratio(likelihood: StudentT | GeneralizedGaussian) -> float:
    """Return the ratio of the scale to the sd."""
    standard = type(likelihood)(likelihood.shape)
    return float(standard.variance(torch.zeros(1, 1, 1, dtype=torch.float64))) ** -0.5
