r"""Bound the rates of all batches, where U is a sum of losses of $x_i^\top \theta$ of bounded curvature.

Let the curvatures be in [0, c], as for logistic regression with c = 1/4. Let $\theta^*$ be the anchor of the control
variates and H the Hessian of U there. Along a direction w a batch B of the N rows estimates the gradient by

$$w^\top \hat g_B(\theta) = w^\top \nabla U(\theta^*) + \frac{w^\top (\theta - \theta^*)}{\sigma^2}
  + \frac{N}{|B|} \sum_{i \in B} \kappa_i \, (x_i^\top w)\, (x_i^\top (\theta - \theta^*)), \qquad
  0 \le \kappa_i \le c.$$

The largest product of the projections of two vectors on one direction is $(|a| |b| + a^\top b) / 2$. So with
$|a|^2 = a^\top H a$ and the row of the largest $q = x_i^\top H^{-1} x_i$ the sum is at most

$$\tfrac{1}{2} N c\, q\, \bigl(|w|\, |\theta - \theta^*| + w^\top H (\theta - \theta^*)\bigr),$$

which on a line $\theta_0 + v t$ is bounded by a line in t, as $|\theta - \theta^*| \le |\theta_0 - \theta^*| + |v| t$.
All rows are used once, so that an evaluation costs as much as its batch. Such a bound was proposed by J. Bierkens,
P. Fearnhead and G. Roberts 2019, section 5, doi:10.1214/18-AOS1715.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz.targets import RowTarget


class BatchLines(NamedTuple):
    """Constants shared by all batches, in float64."""

    # (dim,): Anchor of the control variates, and the gradient of U there
    anchor: Tensor
    pull: Tensor
    metric: Tensor  # (dim, dim): The Hessian of U there
    # 1 / sigma^2, and N c q
    prior_precision: float
    most: float

    @classmethod
    def of(cls, target: RowTarget, anchor: Tensor) -> BatchLines:
        """Return the constants of a target with `RowTarget.linear_losses`, with control variates at a point (dim,)."""
        losses, points = target.linear_losses(), anchor.expand(target.dim, -1).contiguous()
        _, pull, metric = target.gradient_and_product(points, torch.eye(target.dim).to(anchor))
        metric = (metric.double() + metric.double().T) / 2
        rows = losses.x.double()
        size = float((rows * torch.linalg.solve(metric, rows.T).T).sum(-1).max())
        most = len(rows) * losses.curvature * size
        return cls(anchor.double(), pull[0].double(), metric, losses.prior_precision, most)

    def terms(self, directions: Tensor, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return heights and slopes (chains, terms) of bounds for ``directions`` (chains, terms, dim)."""
        directions, away, v = directions.double(), x.double() - self.anchor, v.double()
        turned = directions @ self.metric
        length = (turned * directions).sum(-1).clamp_min(0).sqrt()

        def above(ahead: Tensor) -> Tensor:
            along = ((ahead @ self.metric) * ahead).sum(-1).clamp_min(0).sqrt()
            rows = length * along[:, None] + _products(turned, ahead)
            return self.prior_precision * _products(directions, ahead) + self.most / 2 * rows

        return directions @ self.pull + above(away), above(v)


def _products(directions: Tensor, vectors: Tensor) -> Tensor:
    """Return the products (chains, terms) of directions with each chain's vector."""
    return (directions @ vectors[..., None])[..., 0]


def fits(target: Any) -> bool:
    """Return whether a target is a sum of losses of linear predictors."""
    return isinstance(target, RowTarget) and target.linear_losses() is not None
