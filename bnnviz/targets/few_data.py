"""Define posteriors of few data with known moments: logistic regression, and the mean of two data."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bnnviz import settings
from bnnviz.targets.base import REGISTRY
from bnnviz.targets.minibatch import LinearLosses, Rows, RowTarget

_POINTS = 25  # of the quadrature per axis


@REGISTRY.add
class LogisticRegression(RowTarget):
    r"""Logistic regression with an intercept and two slopes on a small synthetic data set.

    .. math:: U(w) = \sum_i \left[ \log(1 + e^{x_i^\top w}) - y_i x_i^\top w \right] + \frac{|w|^2}{2 \sigma^2}

    The moments are computed by quadrature around the Laplace approximation.

    Examples
    --------
    >>> from bnnviz import targets
    >>> targets.LogisticRegression(rows=50).dim
    3
    """

    registered = "logistic_regression"
    title = "Logistic regression"
    dim = 3

    rows = settings.Integer(100, bounds=(10, 10_000), doc="Number of rows of the synthetic data set.")
    prior_sd = settings.Number(2.0, bounds=(0.1, 10.0), scale="log", doc="Standard deviation of the normal prior.")

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        rng = np.random.default_rng(7)
        features = rng.standard_normal((self.rows, 2))
        features[:, 1] = 0.8 * features[:, 0] + 0.6 * features[:, 1]
        design = np.column_stack([np.ones(self.rows), features])
        probability = 1 / (1 + np.exp(-design @ np.array([-0.5, 1.5, -1.0])))
        self.design = torch.as_tensor(design)
        self.labels = torch.as_tensor((rng.random(self.rows) < probability).astype(float))
        self.examples, self.prior_precision = self.rows, self.prior_sd**-2

    def all_rows(self) -> Rows:
        """Return design and labels."""
        return Rows(self.design, self.labels)

    def linear_losses(self) -> LinearLosses:
        """Return the rows, with losses log(1 + e^z) - y z of curvature at most 1/4."""
        return LinearLosses(self.design, 0.25, self.prior_precision)

    def potential_on(self, theta: Tensor, rows: Rows) -> Tensor:
        """Return the weighted negative log likelihood plus ``|x|^2 / (2 prior_sd^2)``."""
        return self.gradient_on(theta, rows)[0]

    def gradient_on(self, theta: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        """Return U and its gradient in closed form."""
        logits = _logits(rows, theta)
        fit = (functional.softplus(logits) - rows.y * logits).sum(-1)
        residual = torch.sigmoid(logits) - rows.y
        pull = residual @ rows.x if rows.x.ndim == 2 else (residual[:, None] @ rows.x)[:, 0]
        gradient = rows.weight * pull + self.prior_precision * theta
        return rows.weight * fit + 0.5 * self.prior_precision * (theta * theta).sum(-1), gradient

    def curvature_on(self, theta: Tensor, v: Tensor, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and v' H v in closed form."""
        probability = torch.sigmoid(_logits(rows, theta))
        curvature = (probability * (1 - probability) * _logits(rows, v) ** 2).sum(-1)
        fit = rows.weight * curvature + self.prior_precision * (v * v).sum(-1)
        return *self.gradient_on(theta, rows), fit

    @functools.cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        rows = Rows(self.design.double().cpu(), self.labels.double().cpu())
        mean, cov = self._laplace(rows)
        for _ in range(3):
            mean, cov = self._quadrature(rows, mean, cov)
        return mean, cov

    def _laplace(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the mode and the inverse Hessian there, by Newton's method."""
        w = torch.zeros(1, self.dim, dtype=torch.float64)
        for _ in range(50):
            probability = torch.sigmoid(_logits(rows, w)[0])
            variance = probability * (1 - probability)
            hessian = (rows.x.T * variance) @ rows.x + self.prior_precision * torch.eye(self.dim)
            w = w - torch.linalg.solve(hessian, self.gradient_on(w, rows)[1][0])
        return w[0].numpy(), torch.linalg.inv(hessian).numpy()

    def _quadrature(self, rows: Rows, mean: np.ndarray, cov: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Integrate by the trapezoidal rule on 25 points per axis over +-6.5 standard deviations.

        For a normal density the error is exp(-2 pi^2 / h^2), which is 6e-30 for this step h.
        """
        axis = np.linspace(-6.5, 6.5, _POINTS)
        whitened = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
        points = mean + whitened @ np.linalg.cholesky(cov).T
        parts = (self.potential_on(part, rows) for part in torch.from_numpy(points).chunk(_POINTS))
        potential = torch.cat(list(parts)).numpy()
        weight = np.exp(potential.min() - potential)
        weight /= weight.sum()
        mean = weight @ points
        return mean, (points - mean).T @ ((points - mean) * weight[:, None])

    def mean(self) -> np.ndarray:
        """Return the posterior mean, computed using quadrature."""
        return self._moments[0]

    def cov(self) -> np.ndarray:
        """Return the posterior covariance, computed using quadrature."""
        return self._moments[1]

    def names(self) -> list[str]:
        """Return the names of the coefficients."""
        return ["intercept", "slope 1", "slope 2"]


def _logits(rows: Rows, theta: Tensor) -> Tensor:
    """Return the logits (chains, rows) of rows for all chains, or of each chain's rows."""
    return theta @ rows.x.T if rows.x.ndim == 2 else (rows.x @ theta[..., None])[..., 0]


@REGISTRY.add
class TwoData(RowTarget):
    r"""Posterior of the mean of a normal distribution with variance 1 for the two observations +-c: N(0, 1/2).

    .. math:: U(\theta) = \tfrac12 (\theta - c)^2 + \tfrac12 (\theta + c)^2 = \theta^2 + c^2

    This is a minimal target for mini-batches. If a sampler keeps a batch between events, its variance exceeds 1/2, and
    the bias increases with c.

    Examples
    --------
    >>> from bnnviz import targets
    >>> targets.TwoData(apart=2.0).cov().tolist()
    [[0.5]]
    """

    registered = "two_data"
    title = "Two data"
    dim = 1

    apart = settings.Number(1.0, bounds=(0.0, 5.0), step=0.1, label="c", doc="The observations are c and -c.")

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.data = torch.tensor([self.apart, -self.apart], dtype=torch.float64)
        self.examples = 2

    def all_rows(self) -> Rows:
        """Return the two observations."""
        return Rows(self.data, self.data)

    def linear_losses(self) -> LinearLosses:
        """Return two rows of losses (x - y)^2 / 2."""
        return LinearLosses(torch.ones_like(self.data)[:, None], 1.0, 0.0)

    def potential_on(self, theta: Tensor, rows: Rows) -> Tensor:
        """Return the weighted sum of (x - y)^2 / 2."""
        return rows.weight * 0.5 * (theta - rows.y).square().sum(-1)

    def gradient_on(self, theta: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        """Return U and the weighted sum of x - y."""
        return self.potential_on(theta, rows), rows.weight * (theta - rows.y).sum(-1, keepdim=True)

    def curvature_on(self, theta: Tensor, v: Tensor, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and v^2 for each observation."""
        curvature = rows.weight * rows.y.shape[-1] * v.square()[:, 0]
        return *self.gradient_on(theta, rows), curvature

    def quadratic(self) -> tuple[Tensor, Tensor]:
        """Return the mean and the precision."""
        return self.data.new_zeros(1), self.data.new_full((1, 1), 2.0)

    def mean(self) -> np.ndarray:
        """Return the mean."""
        return np.zeros(1)

    def cov(self) -> np.ndarray:
        """Return the variance."""
        return np.array([[0.5]])

    def exact_draws(self, count: int, seed: int = 0) -> np.ndarray:
        """Return independent draws (count, 1)."""
        return math.sqrt(0.5) * np.random.default_rng(seed).standard_normal((count, 1))

    def window(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return a plotting window for draws with up to twice the standard deviation."""
        return (-4.0, 4.0), (-4.0, 4.0)
