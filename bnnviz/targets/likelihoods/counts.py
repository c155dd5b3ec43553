r"""Define likelihoods of counts. The output is the logarithm of the mean.

.. math::
    \text{poisson: } y f - e^f - \log y!, \qquad
    \text{negative\_binomial: } \log \binom{y + r - 1}{y} - r \log(1 + e^{f - \log r}) - y \log(1 + e^{\log r - f}),

the latter with mean :math:`\mu = e^f` and variance :math:`\mu + \mu^2 / r` (Cameron and Trivedi 2013, chapter 3, ISBN
978-1-107-01416-9). Expected second derivatives are :math:`\mu` and :math:`\mu r / (\mu + r)`.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy import special
from torch import Tensor
from torch.nn import functional

from bnnviz.errors import BnnvizError
from bnnviz.targets import validation
from bnnviz.targets.likelihoods.base import Constants, Likelihood, numbers


class _CountLikelihood(Likelihood):
    task = "regression"
    discrete = True
    takes_logits = "the logarithm of a mean"

    def check(self, y: Tensor, outputs: int) -> None:
        """Raise if an observation is not a count."""
        wrong = y[(y < 0) | (y != y.round())]
        if len(wrong):
            raise BnnvizError(
                f"The {self.name} likelihood needs counts, nonnegative integers, as observations, but one is"
                f" {float(wrong[0]):g}; give the counts themselves, not standardised.",
                "data",
            )

    def mean(self, f: Tensor) -> Tensor:
        """Return the expected count."""
        return torch.exp(f[..., 0])


class Poisson(_CountLikelihood):
    """Poisson distribution of y with log mean f.

    Examples
    --------
    >>> import torch
    >>> from bnnviz.targets import likelihoods
    >>> likelihoods.Poisson().mean(torch.zeros(1, 2, 1)).tolist()
    [[1.0, 1.0]]
    """

    name = "poisson"

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log probability of each observation."""
        return y * f[..., 0] - torch.exp(f[..., 0]) - torch.lgamma(y + 1)

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the mean."""
        return torch.exp(f)[..., None]

    def variance(self, f: Tensor) -> Tensor:
        """Return the mean."""
        return self.mean(f)

    def cdf(self, f: Tensor, y: np.ndarray) -> np.ndarray:
        """Return the distribution function at y."""
        mean = numbers(self.mean(f))
        return np.where(y >= 0, special.pdtr(np.floor(np.maximum(y, 0)), mean), 0.0)

    def draw(self, f: Tensor, rng: np.random.Generator) -> np.ndarray:
        """Draw counts."""
        return rng.poisson(numbers(self.mean(f)))


class NegativeBinomial(_CountLikelihood):
    """Negative binomial distribution of y with log mean f and concentration r.

    Parameters
    ----------
    concentration : float, optional
        Concentration. By default it is learned, with the prior ``log r ~ N(0, 2^2)``.

    Examples
    --------
    >>> from bnnviz.targets import likelihoods
    >>> likelihoods.NegativeBinomial().parameters
    ('log concentration',)
    """

    name = "negative_binomial"
    spread = 2.0  # sd of the logarithm of the concentration

    def __init__(self, concentration: float | None = None) -> None:
        given = 1.0 if concentration is None else validation.scale("concentration", concentration)
        self.parameters = ("log concentration",) if concentration is None else ()
        self._log = Constants([[math.log(given)]])

    def natural(self, raw: Tensor) -> dict[str, Tensor]:
        """Return the learned concentration."""
        return {"concentration": (self.spread * raw[:, 0]).exp()} if self.parameters else {}

    def log_concentration(self, f: Tensor) -> Tensor:
        """Return log r, (chains, 1) or (1, 1)."""
        return self._log.like(f) if self.raw is None else self.spread * self.raw.to(f)

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log probability of each observation."""
        log_r, f = self.log_concentration(f), f[..., 0]
        r = torch.exp(log_r)
        choices = torch.lgamma(y + r) - torch.lgamma(r) - torch.lgamma(y + 1)
        return choices - r * functional.softplus(f - log_r) - y * functional.softplus(log_r - f)

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the expected second derivative."""
        mean, r = torch.exp(f), torch.exp(self.log_concentration(f))[..., None]
        return (mean * r / (mean + r))[..., None]

    def variance(self, f: Tensor) -> Tensor:
        """Return the variance of a count."""
        mean = self.mean(f)
        return mean + mean.square() * torch.exp(-self.log_concentration(f))

    def cdf(self, f: Tensor, y: np.ndarray) -> np.ndarray:
        """Return the distribution function at y."""
        mean, r = numbers(self.mean(f)), numbers(torch.exp(self.log_concentration(f)))
        return np.where(y >= 0, special.betainc(r, np.floor(np.maximum(y, 0)) + 1, r / (r + mean)), 0.0)

    def draw(self, f: Tensor, rng: np.random.Generator) -> np.ndarray:
        """Draw counts."""
        mean, r = numbers(self.mean(f)), numbers(torch.exp(self.log_concentration(f)))
        return rng.poisson(rng.gamma(np.broadcast_to(r, mean.shape)) * mean / r)
