r"""Define what a likelihood of a network's outputs has to say, with derivatives by automatic differentiation.

A likelihood may have parameters of its own, such as the logarithm of a noise. Each is a number r with the prior N(0, 1)
and one more coordinate of a state, after those of the weights; `Likelihood.at` puts values of them in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor

from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    from numpy.random import Generator


class Likelihood:
    """How outputs (chains, rows, outputs) explain the observations; losses are summed over rows.

    Observations are (rows,) for all chains, or each one's own: (chains, rows); with several columns these are the last
    axis. Derive from it for a likelihood of your own: ``log_density`` is enough to sample, ``mean``, ``variance``,
    ``cdf`` and ``draw`` predict observations.

    Attributes
    ----------
    name : str
    task : {"regression", "classification", "outputs"}
        What is predicted: numbers, classes, or the outputs alone.
    columns : int
        How many columns the observations have.
    parameters : sequence of str
        Labels of the learned coordinates.
    by_hand : bool
        Whether the derivatives by the outputs are written out.
    discrete : bool
        Whether observations are whole numbers.
    takes_logits : str
        What the outputs are that have to reach all real numbers, such as "logits"; empty where they need not.

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
    by_hand = False
    discrete = False
    takes_logits = ""

    def fitted(self, y: Tensor) -> Self:
        """Return the likelihood for observations (rows, columns), of which it may take over columns and classes."""
        if y.shape[1] != self.columns:
            raise BnnvizError(
                f"The observations have the shape {tuple(y.shape)}; with a {self.name} likelihood give"
                f" {'one number' if self.columns == 1 else f'{self.columns} numbers'} a row.",
                "data",
            )
        return self

    def kept(self, y: Tensor) -> Tensor:
        """Return observations (rows, columns) as the target keeps them: (rows,) where there is one column."""
        y = y.double()
        return y[:, 0] if self.columns == 1 else y

    def check(self, y: Tensor, outputs: int) -> None:
        """Refuse observations, as the target keeps them, that do not fit.

        Raises
        ------
        BnnvizError
            If so.
        """

    def width(self) -> tuple[int | None, str]:
        """Return how many outputs it needs (None: any number), and what they are, in words."""
        return 1, "(rows, 1), one output"

    def classes(self, outputs: int) -> int:
        """Return how many classes there are, of a network with so many outputs."""
        return max(outputs, 2)

    def at(self, raw: Tensor) -> Likelihood:
        """Return the likelihood with the values (chains, parameters) of its parameters."""
        return self

    def natural(self, raw: Tensor) -> dict[str, Tensor]:
        """Return by name what the values (n, parameters) of its parameters stand for, ``(n, ...)`` each."""
        return {}

    def loss(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the negative log likelihood (chains,), up to a constant."""
        return -self.log_density(f, y).sum(-1)

    def derivatives(self, f: Tensor, y: Tensor, raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss (chains,), and its derivatives by the outputs and by the parameters (chains, parameters)."""
        with torch.enable_grad():
            leaves = f.detach().requires_grad_(True), raw.detach().requires_grad_(True)
            loss = self.at(leaves[1]).loss(leaves[0], y)
            slopes = torch.autograd.grad(loss.sum(), leaves, allow_unused=True, materialize_grads=True)
        return loss.detach(), *slopes

    def residual(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the derivative of the loss by the outputs, shaped like them."""
        return self.derivatives(f, y, f.new_zeros(len(f), len(self.parameters)))[1]

    def curvature(self, f: Tensor, first: Tensor) -> Tensor:
        """Return first' (d2 loss / df2) first, summed over rows: (chains,)."""
        raise NotImplementedError

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return a matrix without negative eigenvalue for each row's loss, (chains, rows, outputs, outputs).

        It is the second derivatives, or what is expected of them; without either, what is positive of the former.
        """
        with torch.enable_grad():
            at = f.detach().requires_grad_(True)
            # No row's loss depends on another row, so that sums over rows hold each one's derivatives.
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
        """Return matrices L, shaped like the `hessian`, with L L' = hessian: with one output its root."""
        found = self.hessian(f, y)
        if found.shape[-1] == 1:
            return found.sqrt()
        values, vectors = torch.linalg.eigh(found)
        return vectors * values.clamp_min(0).sqrt()[..., None, :]

    def information(self, f: Tensor, y: Tensor, raw: Tensor) -> Tensor:
        """Return the curvature (parameters,) by the parameters at one state: the sum of squares of rows' derivatives.

        Outputs are (1, rows, outputs), the parameters (1, parameters).
        """
        rows = f.shape[1]
        each = raw.expand(rows, -1)
        return self.derivatives(f[0][:, None], y[:, None], each)[2].square().sum(0)

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
        """Return the probability of no more than y, (rows,) or (rows, columns), for each chain; on the CPU."""
        raise NotImplementedError

    def draw(self, f: Tensor, rng: Generator) -> np.ndarray:
        """Draw an observation for each chain and row, shaped like the mean; on the CPU."""
        raise NotImplementedError


class _Special:
    """Functions of SciPy, which is imported when one is needed first."""

    def __getattr__(self, name: str) -> Any:
        from scipy import special

        return getattr(special, name)


special = _Special()


class Constants:
    """Keep numbers as tensors, once for each device and precision."""

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


def class_numbers(y: Tensor, name: str) -> Tensor:
    """Return class numbers (rows,) as integers."""
    if y.is_floating_point() and (y != y.round()).any():
        raise BnnvizError(f"{_article(name)} likelihood needs class numbers, which are whole, as observations.", "data")
    return y.long()


def _article(name: str) -> str:
    return f"{'An' if name[0] in 'aeiou' else 'A'} {name}"


def check_counts(y: Tensor, name: str) -> None:
    """Refuse observations that are no counts."""
    if len(y) and ((y < 0) | (y != y.round())).any():
        wrong = float(y[(y < 0) | (y != y.round())][0])
        raise BnnvizError(
            f"{_article(name)} likelihood needs counts, whole numbers from 0 on, as observations, and one is"
            f" {wrong:g}; give them as they were counted, not standardised.",
            "data",
        )
