r"""Define the interface of likelihoods, with derivatives by automatic differentiation.

A likelihood may have parameters, such as the logarithm of a noise. Each is a number r with the prior N(0, 1) and one
more coordinate of a state, after those of the weights. `Likelihood.at` sets their values.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor

from bnnviz.errors import BnnvizError
from bnnviz.targets.base import differentiate_twice

if TYPE_CHECKING:
    from numpy.random import Generator


class Likelihood:
    """Base class of likelihoods of observations given outputs (chains, rows, outputs).

    Observations have the shape (rows,) or (chains, rows), with an additional last axis for several columns. Losses are
    summed over rows. Custom likelihoods must implement ``log_density``. To predict observations, they must also
    implement ``mean``, ``variance``, ``cdf`` and ``draw``, or for classes only ``mean``.

    Attributes
    ----------
    name : str
    task : {"regression", "classification", "outputs"}
        Type of predictions: numbers, classes, or only outputs.
    columns : int
        Number of columns of the observations.
    parameters : sequence of str
        Labels of the learned coordinates.
    raw : Tensor or None
        Values (chains, parameters) of the learned coordinates, or None for the centre of their prior.
    discrete : bool
        Whether observations are integers.
    row_information : float or None
        Expected curvature of a row with respect to each parameter, if it is constant.
    takes_logits : str
        Name of outputs that must be unbounded, such as "logits", or empty if outputs may be bounded.

    Examples
    --------
    >>> import torch
    >>> from bnnviz import targets
    >>> class Laplace(targets.Likelihood):
    ...     name, task = "laplace", "regression"
    ...     def log_density(self, f, y):
    ...         return -(y - f[..., 0]).abs() - 0.6931
    >>> Laplace().loss(torch.zeros(1, 2, 1), torch.ones(2)).round().tolist()
    [3.0]
    """

    name = ""
    task = "classification"
    columns = 1
    parameters: Sequence[str] = ()
    raw: Tensor | None = None
    discrete = False
    row_information: float | None = None
    takes_logits = ""

    @property
    def predicts(self) -> bool:
        """Whether predictions of observations are implemented."""
        needed = ("mean",) if self.task == "classification" else ("mean", "variance", "cdf", "draw")
        return all(getattr(type(self), name) is not getattr(Likelihood, name) for name in needed)

    def fitted(self, y: Tensor) -> Self:
        """Return the likelihood for given observations (rows, columns)."""
        if y.shape[1] != self.columns:
            raise BnnvizError(
                f"The observations have shape {tuple(y.shape)}; a {self.name} likelihood needs"
                f" {'one number' if self.columns == 1 else f'{self.columns} numbers'} per row.",
                "data",
            )
        return self

    def kept(self, y: Tensor) -> Tensor:
        """Convert observations (rows, columns) to the format of the target."""
        y = y.double()
        return y[:, 0] if self.columns == 1 else y

    def check(self, y: Tensor, outputs: int) -> None:
        """Raise an error if observations are invalid."""

    def width(self) -> tuple[int | None, str]:
        """Return the required number of outputs (None: any) and their description."""
        return 1, "(rows, 1), one output"

    def classes(self, outputs: int) -> int:
        """Return the number of classes for a network with ``outputs`` outputs."""
        return max(outputs, 2)

    def at(self, raw: Tensor) -> Self:
        """Return the likelihood with the values (chains, parameters) of its parameters."""
        if not self.parameters:
            return self
        made = copy.copy(self)
        made.raw = raw
        return made

    def natural(self, raw: Tensor) -> dict[str, Tensor]:
        """Return by name the natural values ``(n, ...)`` of its parameters (n, parameters)."""
        return {}

    def loss(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the negative log likelihood (chains,), up to a constant."""
        return -self.log_density(f, y).sum(-1)

    def derivatives(self, f: Tensor, y: Tensor, raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss (chains,) and its derivatives with respect to outputs and parameters (chains, parameters)."""
        with torch.enable_grad():
            leaves = f.detach().requires_grad_(True), raw.detach().requires_grad_(True)
            loss = self.at(leaves[1]).loss(leaves[0], y)
            slopes = torch.autograd.grad(loss.sum(), leaves, allow_unused=True, materialize_grads=True)
        return loss.detach(), *slopes

    def curvature(self, f: Tensor, y: Tensor, raw: Tensor, first: Tensor, rate: Tensor) -> Tensor:
        """Return the second derivative (chains,) of the loss along ``first`` of the outputs and ``rate`` of raw."""

        def loss(point: Tensor) -> Tensor:
            outputs, values = point.split([point.shape[1] - raw.shape[1], raw.shape[1]], 1)
            return self.at(values).loss(outputs.reshape(f.shape), y)

        along = torch.cat([first.flatten(1), rate], 1)
        return (differentiate_twice(loss, torch.cat([f.flatten(1), raw], 1), along)[2] * along).sum(1)

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the positive semidefinite curvature of the loss of each row, (chains, rows, outputs, outputs).

        This is the expected second derivative, or the positive part of the second derivative if the expectation is
        unknown.
        """
        with torch.enable_grad():
            at = f.detach().requires_grad_(True)
            # Rows are independent, so sums over rows contain each row's derivatives.
            (slope,) = torch.autograd.grad(self.loss(at, y).sum(), at, create_graph=True)
            found = [
                torch.autograd.grad(slope[..., k].sum(), at, retain_graph=True, materialize_grads=True)[0]
                if slope.requires_grad
                else torch.zeros_like(at)
                for k in range(f.shape[-1])
            ]
        values, vectors = torch.linalg.eigh(torch.stack(found, -2).detach())
        return (vectors * values.clamp_min(0)[..., None, :]) @ vectors.mT

    def root(self, f: Tensor, y: Tensor) -> Tensor:
        """Return matrices L, shaped like the `hessian`, with L L' = hessian."""
        found = self.hessian(f, y)
        if found.shape[-1] == 1:
            return found.sqrt()
        values, vectors = torch.linalg.eigh(found)
        return vectors * values.clamp_min(0).sqrt()[..., None, :]

    def information(self, f: Tensor, y: Tensor, raw: Tensor) -> Tensor:
        """Return each row's curvature (rows, parameters) of the parameters at one state: expected, or squared slopes.

        Shapes are (1, rows, outputs) and (1, parameters).
        """
        each = raw.expand(f.shape[1], -1)
        if self.row_information is not None:
            return torch.full_like(each, self.row_information)
        return self.derivatives(f[0][:, None], y[:, None], each)[2].square()

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the exact log density of each observation, (chains, rows)."""
        raise NotImplementedError

    def mean(self, f: Tensor) -> Tensor:
        """Return the expected observation (chains, rows), or the probability of each class (chains, rows, classes)."""
        raise NotImplementedError

    def variance(self, f: Tensor) -> Tensor:
        """Return the variance of an observation, shaped like the mean."""
        raise NotImplementedError

    def cdf(self, f: Tensor, y: np.ndarray) -> np.ndarray:
        """Return the distribution function at y, (rows,) or (rows, columns), for each chain."""
        raise NotImplementedError

    def draw(self, f: Tensor, rng: Generator) -> np.ndarray:
        """Draw an observation for each chain and row."""
        raise NotImplementedError


class Constants:
    """Store numbers as tensors, once for each device and precision."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self._made: dict[tuple[str, torch.dtype], Tensor] = {}

    def like(self, other: Tensor) -> Tensor:
        """Return the numbers on another tensor's device, in its precision."""
        key = str(other.device), other.dtype
        if key not in self._made:
            with torch.inference_mode(False):
                self._made[key] = torch.as_tensor(self.values, dtype=other.dtype, device=other.device)
        return self._made[key]

    def __reduce__(self) -> tuple:
        return Constants, (self.values,)


def numbers(values: Tensor) -> np.ndarray:
    """Return a tensor as an array in double precision."""
    return values.detach().double().cpu().numpy()
