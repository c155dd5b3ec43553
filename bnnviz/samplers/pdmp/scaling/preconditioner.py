r"""Precondition straight-line processes: a linear map L from unit-scale velocities to those of the path.

In coordinates $y = L^{-1} x$ the gradient is $L^\top g$ and the velocity $L^{-1} v$. The Bouncy Particle draws v from
$N(0, L L^\top)$; the Zig-Zag has $v = L \theta$ with $\theta \in \{-c, c\}^d$. The map is that of
`bnnviz.samplers.mcmc.metric`, learned from positions of the path and the gradients there, and fixed after the warm-up.
Chains of a network start at different modes with different stiff weights, so each chain has separate scales there.
Reference: A. Pakman, D. Gilboa, D. Carlson and L. Paninski, Stochastic bouncy particle sampler, ICML 2017, section 5,
doi:10.48550/arXiv.1609.00770.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers.mcmc.metric import Metric, WindowSums

#: Dimensions up to which a metric is dense by default.
DENSE = 100


class Preconditioner(NamedTuple):
    """The map L and its inverse."""

    # (dim,) or (chains, dim): The diagonal of a diagonal L, with a row for each chain if chains have separate scales
    scale: Tensor
    # (dim, dim): L and its inverse; None if L is diagonal
    factor: Tensor | None
    inverse: Tensor | None

    @classmethod
    def unit(cls, like: Tensor, dense: bool) -> Preconditioner:
        """Return the identity map, for scales shaped like a tensor, (dim,) or (chains, dim)."""
        eye = torch.eye(like.shape[-1], dtype=like.dtype, device=like.device) if dense else None
        return cls(torch.ones_like(like), eye, eye)

    def apply(self, velocity: Tensor) -> Tensor:
        """Return L u of vectors u (chains, dim)."""
        return self.scale * velocity if self.factor is None else velocity @ self.factor.T

    def apply_transpose(self, gradient: Tensor) -> Tensor:
        """Return L' g of vectors g (chains, dim)."""
        return self.scale * gradient if self.factor is None else gradient @ self.factor

    def undo(self, velocity: Tensor) -> Tensor:
        """Return L^-1 v of vectors v (chains, dim)."""
        return velocity / self.scale if self.inverse is None else velocity @ self.inverse.T

    def of_chains(self, chains: Tensor) -> Preconditioner:
        """Return the map of the given chains."""
        return self if self.scale.ndim == 1 else self._replace(scale=self.scale[chains])

    def of_each(self, chains: int) -> Preconditioner:
        """Return the map with a row of scales for each chain."""
        return self._replace(scale=self.scale.expand(chains, -1).contiguous())

    def added(self, sums: WindowSums | None, x: Tensor, gradient: Tensor, alive: Tensor) -> WindowSums:
        """Return the sums with positions and gradients (chains, dim) of the chains that are alive; None starts them."""
        if self.scale.ndim == 2:
            # As one long vector; a stopped chain adds constant values.
            x, gradient, alive = x.reshape(1, -1), gradient.reshape(1, -1), alive.any()[None]
        if sums is None:
            sums = WindowSums.begun(x, gradient, self.factor is not None)
        return sums.added(x, gradient, alive, alive)

    def learned(self, sums: WindowSums) -> Preconditioner:
        """Return the map learned from a window of the warm-up."""
        metric = Metric(self.scale.flatten(), self.factor).learned(sums)
        scale = metric.scale.view(self.scale.shape)
        if metric.factor is None:
            return Preconditioner(scale, None, None)
        inverse, failed = torch.linalg.inv_ex(metric.factor.double())
        if int(failed) or not bool(torch.isfinite(inverse).all()):
            return self  # a degenerate window, as of chains that hardly moved
        return Preconditioner(scale, metric.factor, inverse.to(scale.dtype))
