r"""Define likelihoods of a network's outputs: loss, its derivative and its second derivative along a direction.

For outputs f and observations y the losses :math:`\ell = -\log p(y \mid f)`, up to a constant, are

.. math::
    \text{gaussian: } \frac{(f - y)^2}{2 \sigma^2}, \qquad
    \text{bernoulli: } \log(1 + e^f) - y f, \qquad
    \text{categorical: } \log \sum_k e^{f_k} - f_y,

with second derivatives :math:`\sigma^{-2}`, :math:`p (1 - p)` and :math:`\mathrm{diag}(p) - p p^\top` (Bishop 2006,
sections 4.3 and 5.2, ISBN 978-0-387-31073-2).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from bnnviz.errors import BnnvizError
from bnnviz.targets import validation
from bnnviz.targets.likelihoods.base import Constants, Likelihood, class_numbers
from bnnviz.targets.likelihoods.normal import IndependentNormals, RealNumbers


class Normal(RealNumbers):
    """y ~ N(f, sd^2).

    Parameters
    ----------
    sd : float
    learned : bool
        Whether the sd is learned, with the prior ``log sd + r``, r ~ N(0, 1).

    Examples
    --------
    >>> from bnnviz.targets import likelihoods
    >>> likelihoods.Normal(0.5, learned=True).parameters
    ('log noise',)
    """

    name = "gaussian"
    by_hand = True
    row_information = 2.0  # by the log sd

    def __init__(self, sd: float, learned: bool = False) -> None:
        self.sd = validation.scale("noise_sd", sd)
        self._log_sd = Constants([[math.log(self.sd)]])
        self.parameters = ("log noise",) if learned else ()

    def fitted(self, y: Tensor) -> Likelihood:
        """Return the likelihood for one or several columns."""
        if y.shape[1] == 1:
            return self
        return IndependentNormals([self.sd] * y.shape[1], bool(self.parameters))

    def at(self, raw: Tensor) -> Likelihood:
        """Return the likelihood with the learned noise of each chain."""
        return NormalOfEach(math.log(self.sd) + raw[:, 0]) if self.parameters else self

    def natural(self, raw: Tensor) -> dict[str, Tensor]:
        """Return the learned sd of the noise."""
        return {"noise_sd": self.sd * raw[:, 0].exp()} if self.parameters else {}

    def loss(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the negative log likelihood, up to a constant."""
        return (f[..., 0] - y).square().sum(-1).mul(0.5 / self.sd**2)

    def residual(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the derivative of the loss."""
        return (f - y[..., None]) / self.sd**2

    def curvature(self, f: Tensor, first: Tensor) -> Tensor:
        """Return the second derivative of the loss along ``first``."""
        return first.square().sum((1, 2)) / self.sd**2

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the precision."""
        return torch.full_like(f, self.sd**-2)[..., None]

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log density of each observation."""
        return -0.5 * ((f[..., 0] - y) / self.sd).square() - math.log(self.sd * math.sqrt(2 * math.pi))


class NormalOfEach(Normal):
    """y ~ N(f, sd^2) with a separate sd for each chain, from log_sd (chains,)."""

    def __init__(self, log_sd: Tensor) -> None:
        self.log_sd, self.precision = log_sd, torch.exp(-2 * log_sd)
        self._log_sd = log_sd[:, None]

    def loss(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the negative log likelihood, up to a constant that depends only on the rows."""
        return 0.5 * self._squares(f, y) + y.shape[-1] * self.log_sd

    def _squares(self, f: Tensor, y: Tensor) -> Tensor:
        return (f[..., 0] - y).square().sum(-1) * self.precision

    def residual(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the derivative of the loss by the outputs."""
        return (f - y[..., None]) * self.precision[:, None, None]

    def curvature(self, f: Tensor, first: Tensor) -> Tensor:
        """Return the second derivative of the loss along ``first``, at a fixed sd."""
        return first.square().sum((1, 2)) * self.precision

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return each chain's precision."""
        return self.precision[:, None, None].expand_as(f)[..., None]

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the derivative of the loss by log sd, (chains,)."""
        return y.shape[-1] - self._squares(f, y)

    def bend(self, f: Tensor, y: Tensor, first: Tensor, rate: Tensor) -> Tensor:
        """Return the contribution of log sd, moving at ``rate`` (chains,), to the second derivative along ``first``."""
        cross = (self.residual(f, y) * first).sum((1, 2))
        return 2 * rate * (rate * self._squares(f, y) - 2 * cross)

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log density of each observation."""
        squares = (f[..., 0] - y).square() * self.precision[:, None]
        return -0.5 * squares - self.log_sd[:, None] - math.log(math.sqrt(2 * math.pi))


class Bernoulli(Likelihood):
    """y in {0, 1} with logit f.

    Examples
    --------
    >>> import torch
    >>> from bnnviz.targets import likelihoods
    >>> likelihoods.Bernoulli().mean(torch.zeros(1, 1, 1)).tolist()
    [[0.5]]
    """

    name = "bernoulli"
    by_hand = True
    takes_logits = "a logit"

    def check(self, y: Tensor, outputs: int) -> None:
        """Raise an error if an observation is neither 0 nor 1."""
        if not ((y == 0) | (y == 1)).all():
            raise BnnvizError("A bernoulli likelihood needs observations that are 0 or 1.", "data")

    def residual(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the derivative of the loss."""
        return torch.sigmoid(f) - y[..., None]

    def curvature(self, f: Tensor, first: Tensor) -> Tensor:
        """Return the second derivative of the loss along ``first``."""
        probability = torch.sigmoid(f)
        return (probability * (1 - probability) * first.square()).sum((1, 2))

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the variance of a label."""
        probability = torch.sigmoid(f)
        return (probability * (1 - probability))[..., None]

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log density of each observation."""
        return y * f[..., 0] - functional.softplus(f[..., 0])

    def mean(self, f: Tensor) -> Tensor:
        """Return the expected observation."""
        return torch.sigmoid(f[..., 0])


class Categorical(Likelihood):
    """y in {0, ..., K - 1} with K logits f.

    Examples
    --------
    >>> import torch
    >>> from bnnviz.targets import likelihoods
    >>> likelihoods.Categorical().mean(torch.zeros(1, 1, 2)).tolist()
    [[[0.5, 0.5]]]
    """

    name = "categorical"
    by_hand = True
    takes_logits = "logits"

    def width(self) -> tuple[int | None, str]:
        """Return the number of outputs, which is arbitrary."""
        return None, "(rows, classes), one output for each class"

    def kept(self, y: Tensor) -> Tensor:
        """Return integer class numbers."""
        return class_numbers(y[:, 0], self.name)

    def check(self, y: Tensor, outputs: int) -> None:
        """Raise an error if a class has no output."""
        if len(y) and (y.min() < 0 or y.max() >= outputs):
            raise BnnvizError(
                f"The classes run from {int(y.min())} to {int(y.max())}; with {outputs} outputs"
                f" they must run from 0 to {outputs - 1}.",
                "data",
            )

    def residual(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the derivative of the loss."""
        return torch.softmax(f, -1) - functional.one_hot(y, f.shape[-1]).to(f.dtype)

    def curvature(self, f: Tensor, first: Tensor) -> Tensor:
        """Return the second derivative of the loss along ``first``."""
        probability = torch.softmax(f, -1)
        spread = (probability * first.square()).sum(-1) - (probability * first).sum(-1).square()
        return spread.sum(-1)

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the covariance of the class indicators."""
        probability = torch.softmax(f, -1)
        return torch.diag_embed(probability) - probability[..., None] * probability[..., None, :]

    def root(self, f: Tensor, y: Tensor) -> Tensor:
        """Return diag(sqrt p) - p sqrt(p)', whose square is diag(p) - p p'."""
        probability = torch.softmax(f, -1)
        return torch.diag_embed(probability.sqrt()) - probability[..., None] * probability.sqrt()[..., None, :]

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log density of each observation."""
        chosen = torch.log_softmax(f, -1).gather(-1, y.expand(f.shape[0], -1).unsqueeze(-1))
        return chosen.squeeze(-1)

    def mean(self, f: Tensor) -> Tensor:
        """Return the expected observation."""
        return torch.softmax(f, -1)
