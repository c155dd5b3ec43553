r"""Bound the rates of all batches, where U is a sum of losses of $x_i^\top \theta$ of bounded curvature.

Let these lie in [0, c], as those of logistic regression do with c = 1/4, and let $\theta^*$ be where the control
variates are taken and H the Hessian of U there. Along a direction w a batch B of the N rows then says of the gradient

$$w^\top \hat g_B(\theta) = w^\top \nabla U(\theta^*) + \frac{w^\top (\theta - \theta^*)}{\sigma^2}
  + \frac{N}{|B|} \sum_{i \in B} \kappa_i \, (x_i^\top w)\, (x_i^\top (\theta - \theta^*)), \qquad
  0 \le \kappa_i \le c.$$

The largest product of the projections of two vectors on one direction is $(|a| |b| + a^\top b) / 2$. So with
$|a|^2 = a^\top H a$ and the row of the largest $q = x_i^\top H^{-1} x_i$ the sum is at most

$$\tfrac{1}{2} N c\, q\, \bigl(|w|\, |\theta - \theta^*| + w^\top H (\theta - \theta^*)\bigr),$$

which on a line $\theta_0 + v t$ is below a line of t, as $|\theta - \theta^*| \le |\theta_0 - \theta^*| + |v| t$. Rows
enter once, so that an evaluation costs as much as its batch. The idea of such a bound is that of J. Bierkens,
P. Fearnhead and G. Roberts 2019, section 5, doi:10.1214/18-AOS1715.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz.targets import RowTarget


class BatchLines(NamedTuple):
    """What all batches have in common, in float64."""

    # (dim,): Where control variates are taken, and the gradient of U there
    anchor: Tensor
    pull: Tensor
    metric: Tensor  # (dim, dim): The Hessian of U there
    # 1 / sigma^2, and N c q
    prior_precision: float
    most: float

    @classmethod
    def of(cls, target: RowTarget, anchor: Tensor) -> BatchLines:
        """Return them for a target that has `RowTarget.linear_losses`, with control variates at a point (dim,)."""
        losses, points = target.linear_losses(), anchor.expand(target.dim, -1).contiguous()
        _, pull, metric = target.gradient_and_product(points, torch.eye(target.dim).to(anchor))
        metric = (metric.double() + metric.double().T) / 2
        rows = losses.x.double()
        size = float((rows * torch.linalg.solve(metric, rows.T).T).sum(-1).max())
        most = len(rows) * losses.curvature * size
        return cls(anchor.double(), pull[0].double(), metric, losses.prior_precision, most)

    def terms(self, directions: Tensor, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return heights and slopes (chains, terms) above each signed rate of any batch, on the line x + v t.

        Parameters
        ----------
        directions : Tensor, shape (chains, terms, dim)
            Those whose products with the gradient the signed rates are.
        x, v : Tensor, shape (chains, dim)
        """
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
    """Return whether a target is a sum of such losses."""
    return isinstance(target, RowTarget) and target.linear_losses() is not None
