"""Weight the log likelihood of each row."""

from __future__ import annotations

import copy
from typing import Self

import torch
from torch import Tensor

from bnnviz.targets.likelihoods.base import Likelihood


class Weighted(Likelihood):
    """A likelihood raised to the power of each row's weight, the last column of the observations.

    A row of weight 2 counts like two equal rows. The density of an observation is not weighted.

    Parameters
    ----------
    base : Likelihood

    Examples
    --------
    >>> import torch
    >>> from bnnviz.targets import likelihoods
    >>> weighted = likelihoods.Weighted(likelihoods.Bernoulli())
    >>> weighted.loss(torch.zeros(1, 1, 1), torch.tensor([[1.0, 2.0]])).exp().tolist()
    [4.0]
    """

    def __init__(self, base: Likelihood) -> None:
        self._base, self.name, self.task, self.columns = base, base.name, base.task, base.columns + 1
        self.parameters, self.discrete, self.takes_logits = base.parameters, base.discrete, base.takes_logits
        self._dtype: torch.dtype | None = None

    def kept(self, y: Tensor) -> Tensor:
        """Return observations and weights, (rows, columns)."""
        if not self._base.kept(y[:, :-1]).is_floating_point():
            self._dtype = torch.long
        return y.double()

    def _split(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the observations of the base, and the weights."""
        observed = y[..., 0] if self.columns == 2 else y[..., :-1]
        return (observed if self._dtype is None else observed.to(self._dtype)), y[..., -1]

    def check(self, y: Tensor, outputs: int) -> None:
        """Validate the observations of the base."""
        self._base.check(self._split(y)[0], outputs)

    def width(self) -> tuple[int | None, str]:
        """Return the outputs of the base."""
        return self._base.width()

    def classes(self, outputs: int) -> int:
        """Return the classes of the base."""
        return self._base.classes(outputs)

    def at(self, raw: Tensor) -> Self:
        """Return the likelihood with the parameters of the base."""
        made = copy.copy(self)
        made._base = self._base.at(raw)
        return made

    def natural(self, raw: Tensor) -> dict[str, Tensor]:
        """Return the parameters of the base."""
        return self._base.natural(raw)

    def loss(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the weighted negative log likelihood."""
        observed, weights = self._split(y)
        return -(weights * self._base.log_density(f, observed)).sum(-1)

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the weighted curvature of each row."""
        observed, weights = self._split(y)
        return weights[..., None, None] * self._base.hessian(f, observed)

    def information(self, f: Tensor, y: Tensor, raw: Tensor) -> Tensor:
        """Return the weighted curvature of the parameters."""
        observed, weights = self._split(y)
        return weights[:, None] * self._base.information(f, observed, raw)

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log density of each observation."""
        return self._base.log_density(f, self._split(y)[0])

    def mean(self, f: Tensor) -> Tensor:
        """Return the expected observation."""
        return self._base.mean(f)
