r"""Define likelihoods of real numbers: normal, with input-dependent noise, and with heavy tails.

.. math::
    \text{gaussian: } y \sim N(f, s^2), \qquad
    \text{heteroscedastic: } y \sim N(f_1, e^{2 f_2}), \qquad
    \text{student\_t: } (y - f) / s \sim t_\nu, \qquad
    \text{log\_normal: } \log y \sim N(f, s^2),

with the expected second derivatives :math:`s^{-2}`, :math:`\mathrm{diag}(e^{-2 f_2}, 2)`, :math:`(\nu + 1) / ((\nu + 3)
s^2)` (Lange, Little and Taylor 1989, https://doi.org/10.1080/01621459.1989.10478852) and :math:`s^{-2}`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy import special
from torch import Tensor

from bnnviz.errors import BnnvizError
from bnnviz.targets import validation
from bnnviz.targets.likelihoods.base import Constants, Likelihood, numbers

_LOG_ROOT = 0.5 * math.log(2 * math.pi)
_LARGEST = 1e100  # whose square is finite


class RealNumbers(Likelihood):
    """Columns y = location + scale z with a standard z. Only tensors inside have an axis for a single column."""

    task = "regression"
    scale_name = "noise_scale"
    row_information = 2.0

    def __init__(self, scale: float | Sequence[float] = 1.0, learned: bool = False) -> None:
        scales = scale if isinstance(scale, Sequence) else [scale]
        self.scales = tuple(validation.scale("noise_sd", each) for each in scales)
        self.columns = len(self.scales)
        labels = [f"log noise[{k}]" for k in range(self.columns)] if self.columns > 1 else ["log noise"]
        self.parameters = tuple(labels) if learned else ()
        self._log_scales = Constants([math.log(each) for each in self.scales])

    def natural(self, raw: Tensor) -> dict[str, Tensor]:
        """Return the learned scales."""
        return {self.scale_name: self._public((self._log_scales.like(raw) + raw).exp())} if self.parameters else {}

    def _public(self, values: Tensor) -> Tensor:
        return values if self.columns > 1 else values[..., 0]

    def _observed(self, y: Tensor) -> Tensor:
        return y if self.columns > 1 else y[..., None]

    def _location(self, f: Tensor) -> Tensor:
        return f

    def _log_scale(self, f: Tensor) -> Tensor:
        logs = self._log_scales.like(f)
        return logs if self.raw is None else logs + self.raw.to(f)[:, None]

    def _scale(self, f: Tensor) -> Tensor:
        """Return the scale, shaped like the location."""
        return torch.exp(self._log_scale(f)).expand_as(self._location(f))

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log density of each row."""
        log_scale = self._log_scale(f)
        z = (self._observed(y) - self._location(f)) * torch.exp(-log_scale)
        return (self._standard_log_density(z) - log_scale).sum(-1)

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the precisions."""
        return torch.diag_embed(self._scale(f) ** -2)

    def mean(self, f: Tensor) -> Tensor:
        """Return the expected observation."""
        return self._public(self._location(f))

    def variance(self, f: Tensor) -> Tensor:
        """Return the square of the scale."""
        return self._public(self._scale(f)).square()

    def cdf(self, f: Tensor, y: np.ndarray) -> np.ndarray:
        """Return the distribution function at y."""
        z = y - numbers(self._public(self._location(f)))
        z /= numbers(self._public(self._scale(f)))
        return self._standard_cdf(z)

    def draw(self, f: Tensor, rng: np.random.Generator) -> np.ndarray:
        """Draw observations."""
        location = numbers(self._public(self._location(f)))
        return location + numbers(self._public(self._scale(f))) * self._standard(rng, location.shape)

    def _standard_log_density(self, z: Tensor) -> Tensor:
        return -0.5 * z.square() - _LOG_ROOT

    def _standard_cdf(self, z: np.ndarray) -> np.ndarray:
        return special.ndtr(z)

    def _standard(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        """Draw the standard variable."""
        return rng.standard_normal(size)


class Normal(RealNumbers):
    """y ~ N(f, sd^2), in each column.

    Parameters
    ----------
    sd : float or sequence of float
        Standard deviation, or one for each column.
    learned : bool
        Whether the sd is learned, with the prior ``log sd + r``, r ~ N(0, 1), for each column.

    Examples
    --------
    >>> from bnnviz.targets import likelihoods
    >>> likelihoods.Normal(0.5, learned=True).parameters
    ('log noise',)
    """

    name = "gaussian"
    scale_name = "noise_sd"

    def __init__(self, sd: float | Sequence[float], learned: bool = False) -> None:
        super().__init__(sd, learned)
        self._precisions = Constants([each**-2 for each in self.scales])

    def fitted(self, y: Tensor) -> Likelihood:
        """Return the likelihood for one or several columns."""
        if self.columns == 1 and y.shape[1] > 1:
            return Normal(self.scales * y.shape[1], bool(self.parameters))
        return super().fitted(y)

    def width(self) -> tuple[int | None, str]:
        """Return one output per column."""
        if self.columns == 1:
            return super().width()
        return self.columns, f"(rows, {self.columns}), one output for each column of the observations"

    def _precision(self, f: Tensor) -> Tensor:
        return self._precisions.like(f) if self.raw is None else torch.exp(-2 * self._log_scale(f))

    def _loss(self, squares: Tensor, f: Tensor) -> Tensor:
        """Return the loss from the sums of scaled squares (chains, columns), up to a constant of the rows."""
        loss = 0.5 * squares.sum(-1)
        return loss + f.shape[1] * self._log_scale(f).sum((1, 2)) if self.raw is not None else loss

    def loss(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the negative log likelihood, up to a constant that depends only on the rows."""
        return self._loss(((f - self._observed(y)).square() * self._precision(f)).sum(1), f)

    def derivatives(self, f: Tensor, y: Tensor, raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss and its derivatives by outputs and log sd."""
        made, off = self.at(raw), f - self._observed(y)
        scaled = off * made._precision(f)
        squares = (off * scaled).sum(1)
        return made._loss(squares, f), scaled, f.shape[1] - squares if self.parameters else raw

    def curvature(self, f: Tensor, y: Tensor, raw: Tensor, first: Tensor, rate: Tensor) -> Tensor:
        """Return the second derivative of the loss along a direction of outputs and log sd."""
        precision = self.at(raw)._precision(f)
        found = (first.square() * precision).sum(1)
        if self.parameters:
            off = f - self._observed(y)
            scaled = off * precision
            found = found + 2 * rate * (rate * (off * scaled).sum(1) - 2 * (scaled * first).sum(1))
        return found.sum(-1)


class Heteroscedastic(RealNumbers):
    """y ~ N(f_1, exp(f_2)^2): the network outputs mean and log sd of the noise.

    Examples
    --------
    >>> from bnnviz.targets import likelihoods
    >>> likelihoods.Heteroscedastic().width()[0]
    2
    """

    name = "heteroscedastic"

    def __init__(self) -> None:
        super().__init__()

    def width(self) -> tuple[int | None, str]:
        """Return two outputs."""
        return 2, "(rows, 2), a mean and the logarithm of a standard deviation"

    def _location(self, f: Tensor) -> Tensor:
        return f[..., :1]

    def _log_scale(self, f: Tensor) -> Tensor:
        return f[..., 1:]

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the expected second derivatives."""
        precision = self._scale(f) ** -2
        return torch.diag_embed(torch.cat([precision, torch.full_like(precision, 2.0)], -1))


class StudentT(RealNumbers):
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
        super().__init__(scale, learned)
        self.df = validation.scale("df", df)
        if not self.df > 2:
            raise BnnvizError(f"df = {df:g} must be above 2, so that observations have a variance.", "df")
        self.row_information = 2 * self.df / (self.df + 3)

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the expected second derivative."""
        return (self.df + 1) / (self.df + 3) * super().hessian(f, y)

    def variance(self, f: Tensor) -> Tensor:
        """Return the variance of an observation."""
        return super().variance(f) * (self.df / (self.df - 2))

    def _standard_log_density(self, z: Tensor) -> Tensor:
        half = 0.5 * (self.df + 1)
        constant = math.lgamma(half) - math.lgamma(0.5 * self.df) - 0.5 * math.log(self.df * math.pi)
        return constant - half * torch.log1p(z.square() / self.df)

    def _standard_cdf(self, z: np.ndarray) -> np.ndarray:
        if self.df != 4:
            return special.stdtr(self.df, z)
        # The closed form for four degrees of freedom is ten times faster.
        u = np.clip(z, -_LARGEST, _LARGEST)
        u /= np.sqrt(4 + np.square(u))
        return np.square(1 + u) * (2 - u) / 4

    def _standard(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        return rng.standard_t(self.df, size)


class LogNormal(RealNumbers):
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
    takes_logits = "the logarithm of a median"

    def check(self, y: Tensor, outputs: int) -> None:
        """Raise an error if an observation is not positive."""
        if len(y) and not (y > 0).all():
            raise BnnvizError(
                f"A log_normal likelihood needs positive observations, and one is {float(y.min()):g}.", "data"
            )

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log density of each observation."""
        log_y = torch.log(y)
        return super().log_density(f, log_y) - log_y

    def mean(self, f: Tensor) -> Tensor:
        """Return the expected observation."""
        return torch.exp(super().mean(f) + 0.5 * super().variance(f))

    def variance(self, f: Tensor) -> Tensor:
        """Return the variance of an observation."""
        return torch.expm1(super().variance(f)) * self.mean(f).square()

    def cdf(self, f: Tensor, y: np.ndarray) -> np.ndarray:
        """Return the distribution function at y."""
        log_y = np.log(np.maximum(y, np.finfo(float).tiny))
        return np.where(y > 0, super().cdf(f, log_y), 0.0)

    def draw(self, f: Tensor, rng: np.random.Generator) -> np.ndarray:
        """Draw observations."""
        return np.exp(super().draw(f, rng))
