r"""Define targets that sum over data rows, so that a batch of rows can represent all of them.

For a batch B of the N rows, drawn without replacement,

.. math:: \hat U_B(\theta) = -\frac{N}{|B|} \sum_{i \in B} \log p(y_i \mid x_i, \theta) - \log p(\theta)

is an unbiased estimate of U (Welling and Teh 2011, https://icml.cc/2011/papers/398_icmlpaper.pdf). With control
variates at an anchor :math:`\theta_0` it is :math:`\hat U_B(\theta) - \hat U_B(\theta_0) + U(\theta_0)` (Baker,
Fearnhead, Fox and Nemeth 2019, https://doi.org/10.1007/s11222-018-9826-2).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bnnviz.targets.base import Target, differentiate, differentiate_twice


class Rows(NamedTuple):
    """Data rows for a potential.

    Attributes
    ----------
    x, y : Tensor
        Inputs (rows, ...) and observations (rows,), optionally with a leading chain axis.
    weight : float
        Weight of the negative log likelihood: N / B for B of N rows.

    Examples
    --------
    >>> from bnnviz import targets
    >>> import torch
    >>> targets.Rows(torch.zeros(5, 2), torch.zeros(5)).weight
    1.0
    """

    x: Tensor
    y: Tensor
    weight: float = 1.0


class LinearLosses(NamedTuple):
    """Losses of a linear predictor, whose sum plus a normal prior is U.

    Attributes
    ----------
    x : Tensor, shape (rows, dim)
        Coefficients of the parameters.
    curvature : float
        Upper bound of the second derivative of the loss of a row.
    prior_precision : float
        Precision of the prior of each parameter, or 0 for a flat prior.

    Examples
    --------
    >>> from bnnviz import targets
    >>> targets.LogisticRegression().linear_losses().curvature
    0.25
    """

    x: Tensor
    curvature: float
    prior_precision: float


class RowTarget(Target):
    """Base class of targets with data rows. Subclasses define `all_rows` and `potential_on`.

    Examples
    --------
    >>> from bnnviz import targets
    >>> isinstance(targets.TwoData(), targets.RowTarget)
    True
    """

    def all_rows(self) -> Rows:
        """Return all data rows."""
        raise NotImplementedError

    @property
    def data_rows(self) -> int:
        """Number of data rows."""
        return len(self.all_rows().y)

    def read(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Return the inputs and observations (chains, size, ...) of the rows ``index`` (chains, size)."""
        x, y, _ = self.all_rows()
        return x[index], y[index]

    def weighted(self, x: Tensor, y: Tensor) -> Rows:
        """Return a batch (chains, size, ...) of each chain with weights that represent all rows."""
        return Rows(x, y, self.data_rows / y.shape[1])

    def seen_from(self, x: Tensor, y: Tensor) -> Batch:
        """Return the target on rows from `read`, a batch for each chain."""
        return Batch(self, self.weighted(x, y))

    def batch(self, index: Tensor) -> Batch:
        """Return the target on the rows ``index`` (chains, size), a batch for each chain."""
        return self.seen_from(*self.read(index))

    def part(self, index: Tensor) -> Batch:
        """Return the target on the rows ``index`` (size,), shared by all chains."""
        x, y, weight = self.all_rows()
        return Batch(self, Rows(x[index], y[index], weight * self.data_rows / len(index)))

    def some_rows(self, most: int) -> RowTarget | Batch:
        """Return the target on evenly spaced rows, shared by all chains."""
        if most >= self.data_rows:
            return self
        return self.part(torch.linspace(0, self.data_rows - 1, most, device=self.device).long())

    def linear_losses(self) -> LinearLosses | None:
        """Return the losses of a linear predictor if U is a sum of losses with bounded curvature, otherwise None."""
        return None

    def potential_on(self, theta: Tensor, rows: Rows) -> Tensor:
        """Return U (chains,) of states (chains, dim), up to a constant."""
        raise NotImplementedError

    def gradient_on(self, theta: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        """Return U and its gradient, computed using automatic differentiation by default."""
        return differentiate(lambda x: self.potential_on(x, rows), theta)

    def curvature_on(self, theta: Tensor, v: Tensor, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and v' H v, computed using automatic differentiation by default."""
        potential, gradient, product = self.product_on(theta, v, rows)
        return potential, gradient, (product * v).sum(-1)

    def product_on(self, theta: Tensor, v: Tensor, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and H v, computed using automatic differentiation."""
        return differentiate_twice(lambda x: self.potential_on(x, rows), theta, v)

    def potential(self, x: Tensor) -> Tensor:
        """Return U, up to a constant: (chains, dim) -> (chains,)."""
        return self.potential_on(x, self.all_rows())

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U (chains,) and its gradient (chains, dim)."""
        return self.gradient_on(x, self.all_rows())

    def gradient_and_curvature(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return U (chains,), its gradient (chains, dim) and the curvature v' H v along v (chains,)."""
        return self.curvature_on(x, v, self.all_rows())

    def gradient_and_product(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return U (chains,), its gradient and the product H v with the Hessian, both (chains, dim)."""
        return self.product_on(x, v, self.all_rows())


class Batch:
    """A target on some of its rows: an unbiased estimate of U, and its derivatives."""

    def __init__(self, target: RowTarget, rows: Rows) -> None:
        self._target, self._rows = target, rows

    def potential(self, x: Tensor) -> Tensor:
        """Return the batch's U (chains,)."""
        return self._target.potential_on(x, self._rows)

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the batch's U (chains,) and its gradient (chains, dim)."""
        return self._target.gradient_on(x, self._rows)

    def gradient_and_curvature(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the batch's U, its gradient and v' H v."""
        return self._target.curvature_on(x, v, self._rows)

    def gradient_and_product(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the batch's U, its gradient and H v."""
        return self._target.product_on(x, v, self._rows)


class Controlled:
    """A batch whose value at an anchor (1, dim) is replaced by that of all rows, (1,) and (1, dim)."""

    def __init__(self, batch: Batch, anchor: Tensor, potential: Tensor, gradient: Tensor) -> None:
        self._batch, self._anchor, self._potential, self._gradient = batch, anchor, potential, gradient

    def _corrected(self, potential: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        there, pull = self._batch.gradient(self._anchor.expand_as(gradient).contiguous())
        return potential - there + self._potential, gradient - pull + self._gradient

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the estimate of U (chains,) and its gradient (chains, dim)."""
        return self._corrected(*self._batch.gradient(x))

    def gradient_and_curvature(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the estimate of U, its gradient and v' H v."""
        *first, curvature = self._batch.gradient_and_curvature(x, v)
        return *self._corrected(*first), curvature

    def gradient_and_product(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the estimate of U, its gradient and H v."""
        *first, product = self._batch.gradient_and_product(x, v)
        return *self._corrected(*first), product


def choose_rows(keys: Tensor, size: int) -> Tensor:
    """Return the rows (chains, size) with the largest keys (chains, rows); uniform keys give uniform batches."""
    return keys.topk(size, dim=1, sorted=False).indices
