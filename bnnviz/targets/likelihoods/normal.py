r"""Define likelihoods of real numbers: several columns, input-dependent noise, and heavy tails.

.. math::
    \text{heteroscedastic: } y \sim N(f_1, e^{2 f_2}), \qquad
    \text{student\_t: } (y - f) / s \sim t_\nu, \qquad
    \text{log\_normal: } \log y \sim N(f, s^2),

with the expected second derivatives :math:`\mathrm{diag}(e^{-2 f_2}, 2)`, :math:`(\nu + 1) / ((\nu + 3) s^2)`
(Lange, Little and Taylor 1989, https://doi.org/10.1080/01621459.1989.10478852) and :math:`s^{-2}`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from bnnviz.errors import BnnvizError
from bnnviz.targets import validation
from bnnviz.targets.likelihoods.base import Constants, Likelihood, as_like, numbers, special

_LOG_ROOT = 0.5 * math.log(2 * math.pi)
_LARGEST = 1e100  # whose square is finite


class RealNumbers(Likelihood):
    """Observations that are a location plus a scale times a standard variable."""

    task = "regression"
    _log_sd: Any = 0.0  # logarithm of the scale, broadcastable to the mean

    def mean(self, f: Tensor) -> Tensor:
        """Return the expected observation."""
        return self._location(f)

    def _location(self, f: Tensor) -> Tensor:
        return f if self.columns > 1 else f[..., 0]

    def _scale(self, f: Tensor) -> Tensor:
        """Return the scale, shaped like the location."""
        return torch.exp(self._log_sd_like(f)).expand_as(self._location(f))

    def _log_sd_like(self, f: Tensor) -> Tensor:
        return as_like(self._log_sd, f)

    def variance(self, f: Tensor) -> Tensor:
        """Return the square of the scale."""
        return self._scale(f).square()

    def cdf(self, f: Tensor, y: np.ndarray) -> np.ndarray:
        """Return the distribution function at y."""
        z = y - numbers(self._location(f))
        z /= numbers(self._scale(f))
        return self._standard_cdf(z)

    def draw(self, f: Tensor, rng: np.random.Generator) -> np.ndarray:
        """Draw observations."""
        location = numbers(self._location(f))
        return location + numbers(self._scale(f)) * self._standard(rng, location.shape)

    def _standard_cdf(self, z: np.ndarray) -> np.ndarray:
        """Return the probability that the standard variable is at most z."""
        return special.ndtr(z)

    def _standard(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        """Draw the standard variable."""
        return rng.standard_normal(size)


class IndependentNormals(RealNumbers):
    """Independent normal columns of y with means f and separate standard deviations.

    Parameters
    ----------
    sds : sequence of float
        Standard deviation of each column.
    learned : bool
        Whether ``log sd_k = log sds[k] + r_k`` with r_k ~ N(0, 1).

    Examples
    --------
    >>> from bnnviz.targets import likelihoods
    >>> likelihoods.IndependentNormals([0.1, 2.0], learned=True).parameters
    ('log noise[0]', 'log noise[1]')
    """

    name = "gaussian"
    row_information = 2.0  # by the log sd

    def __init__(self, sds: Sequence[float], learned: bool = False) -> None:
        self.sds, self.columns = tuple(validation.scale("noise_sd", sd) for sd in sds), len(sds)
        self._log_sd = self._base = Constants([math.log(sd) for sd in self.sds])
        self.parameters = tuple(f"log noise[{k}]" for k in range(self.columns)) if learned else ()

    def width(self) -> tuple[int | None, str]:
        """Return one output per column."""
        return self.columns, f"(rows, {self.columns}), one output for each column of the observations"

    def at(self, raw: Tensor) -> Likelihood:
        """Return the likelihood with the learned noise of each chain."""
        if not self.parameters:
            return self
        made = IndependentNormals(self.sds)
        made._log_sd = (self._base.like(raw) + raw)[:, None]
        return made

    def natural(self, raw: Tensor) -> dict[str, Tensor]:
        """Return the learned standard deviations."""
        return {"noise_sd": self._base.like(raw).exp() * raw.exp()} if self.parameters else {}

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the precisions."""
        return torch.diag_embed(self._scale(f) ** -2)

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log density of each row."""
        log_sd = self._log_sd_like(f)
        return (-0.5 * ((y - f) * torch.exp(-log_sd)).square() - log_sd - _LOG_ROOT).sum(-1)


class Heteroscedastic(RealNumbers):
    """y ~ N(f_1, exp(f_2)^2): the network outputs mean and log sd of the noise.

    Examples
    --------
    >>> from bnnviz.targets import likelihoods
    >>> likelihoods.Heteroscedastic().width()[0]
    2
    """

    name = "heteroscedastic"

    def width(self) -> tuple[int | None, str]:
        """Return two outputs."""
        return 2, "(rows, 2), a mean and the logarithm of a standard deviation"

    def _log_sd_like(self, f: Tensor) -> Tensor:
        return f[..., 1]

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log density of each observation."""
        return -0.5 * ((y - f[..., 0]) * torch.exp(-f[..., 1])).square() - f[..., 1] - _LOG_ROOT

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the expected second derivatives."""
        return torch.diag_embed(torch.stack([torch.exp(-2 * f[..., 1]), torch.full_like(f[..., 1], 2.0)], -1))


class _ScaleFamily(RealNumbers):
    """A family with one scale, which may be learned."""

    def __init__(self, scale: float = 1.0, learned: bool = False) -> None:
        self.scale = validation.scale("noise_sd", scale)
        self._log_sd = Constants([[math.log(self.scale)]])
        self.parameters = ("log noise",) if learned else ()

    def at(self, raw: Tensor) -> Self:
        """Return the likelihood with each chain's scale, if it is learned."""
        if not self.parameters:
            return self
        made = copy.copy(self)
        made.parameters, made._log_sd = (), math.log(self.scale) + raw
        return made

    def natural(self, raw: Tensor) -> dict[str, Tensor]:
        """Return the scale, if it is learned."""
        return {"noise_scale": self.scale * raw[:, 0].exp()} if self.parameters else {}


class StudentT(_ScaleFamily):
    """Student's t distribution of (y - f) / scale, which is robust to outliers.

    Parameters
    ----------
    df : float
        Degrees of freedom, greater than 2.
    scale : float
    learned : bool
        Whether the scale is learned, with the prior ``log scale + r``, r ~ N(0, 1).

    Examples
    --------
    >>> from bnnviz.targets import likelihoods
    >>> likelihoods.StudentT(df=3.0, scale=0.5).df
    3.0
    """

    name = "student_t"

    def __init__(self, df: float = 4.0, scale: float = 1.0, learned: bool = False) -> None:
        self.df = validation.scale("df", df)
        if not self.df > 2:
            raise BnnvizError(f"df = {df:g} must be above 2, so that observations have a variance.", "df")
        super().__init__(scale, learned)
        self.row_information = 2 * self.df / (self.df + 3)

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log density of each observation."""
        log_sd, half = self._log_sd_like(f), 0.5 * (self.df + 1)
        z = (y - f[..., 0]) * torch.exp(-log_sd)
        constant = math.lgamma(half) - math.lgamma(0.5 * self.df) - 0.5 * math.log(self.df * math.pi)
        return constant - log_sd - half * torch.log1p(z.square() / self.df)

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the expected second derivative."""
        return ((self.df + 1) / (self.df + 3) * self._scale(f) ** -2)[..., None, None]

    def variance(self, f: Tensor) -> Tensor:
        """Return the variance of an observation."""
        return self._scale(f).square() * (self.df / (self.df - 2))

    def _standard_cdf(self, z: np.ndarray) -> np.ndarray:
        if self.df != 4:
            return special.stdtr(self.df, z)
        # The closed form for four degrees of freedom is ten times faster.
        u = np.clip(z, -_LARGEST, _LARGEST)
        u /= np.sqrt(4 + np.square(u))
        return np.square(1 + u) * (2 - u) / 4

    def _standard(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        return rng.standard_t(self.df, size)


class LogNormal(_ScaleFamily):
    """Log-normal distribution of y, where the mean of log y is f.

    Parameters
    ----------
    scale : float
        Standard deviation of log y.
    learned : bool
        Whether the scale is learned, with the prior ``log scale + r``, r ~ N(0, 1).

    Examples
    --------
    >>> import torch
    >>> from bnnviz.targets import likelihoods
    >>> float(likelihoods.LogNormal(scale=0.5).cdf(torch.zeros(1, 1, 1), 1.0)[0, 0])
    0.5
    """

    name = "log_normal"
    row_information = 2.0
    takes_logits = "the logarithm of a median"

    def check(self, y: Tensor, outputs: int) -> None:
        """Raise an error if an observation is not positive."""
        if len(y) and not (y > 0).all():
            raise BnnvizError(
                f"A log_normal likelihood needs positive observations, and one is {float(y.min()):g}.", "data"
            )

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log density of each observation."""
        log_sd, log_y = self._log_sd_like(f), torch.log(y)
        z = (log_y - f[..., 0]) * torch.exp(-log_sd)
        return -0.5 * z.square() - log_sd - log_y - 0.5 * math.log(2 * math.pi)

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the precision of log y."""
        return (self._scale(f) ** -2)[..., None, None]

    def mean(self, f: Tensor) -> Tensor:
        """Return the expected observation."""
        return torch.exp(f[..., 0] + 0.5 * self._scale(f).square())

    def variance(self, f: Tensor) -> Tensor:
        """Return the variance of an observation."""
        return torch.expm1(self._scale(f).square()) * self.mean(f).square()

    def cdf(self, f: Tensor, y: np.ndarray) -> np.ndarray:
        """Return the distribution function at y."""
        log_y = np.log(np.maximum(y, np.finfo(float).tiny))
        return np.where(y > 0, super().cdf(f, log_y), 0.0)

    def draw(self, f: Tensor, rng: np.random.Generator) -> np.ndarray:
        """Draw observations."""
        return np.exp(super().draw(f, rng))
