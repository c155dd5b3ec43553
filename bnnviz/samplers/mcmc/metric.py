r"""Learn the metric of a Hamiltonian sampler: the linear map L from momenta to velocities.

In coordinates $y = L^{-1} x$ a density is easy to sample if it resembles N(0, I). With the covariance C of draws
and the covariance G of the gradients of U at these draws, both within chains, the metric is the $M = L L^\top$ with

$$M G M = C, \qquad M = G^{-1/2} (G^{1/2} C G^{1/2})^{1/2} G^{-1/2}:$$

in coordinates y positions and gradients have the same covariance, as for N(0, I). On a Gaussian M is its covariance as
soon as there are more draws than dimensions, wherever the draws are. A diagonal metric has
$M_{ii} = \sqrt{C_{ii} / G_{ii}}$. Without gradients M is C.

A metric is shrunk towards the previous one, which counts as five draws. A rejected move is not a draw, so chains that
do not move contribute nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers.mcmc import low_rank
from bnnviz.samplers.mcmc.low_rank import LowRank, WindowDraws, root_of_mean

_PRIOR_DRAWS = 5.0  # weight of the previous metric
_FEWEST = 3.0  # draws per coordinate for a dense metric


class Metric(NamedTuple):
    """The map from momenta to velocities."""

    scale: Tensor  # (dim,): Scales of the coordinates
    # (dim, dim), LowRank or None: L if dense; the map between momenta and scales if low-rank; None if diagonal
    factor: Tensor | LowRank | None

    @classmethod
    def unit(cls, dim: int, dense: bool, like: Tensor) -> Metric:
        """Return the metric of unit scales, in the dtype of a tensor."""
        return cls(like.new_ones(dim), torch.eye(dim, dtype=like.dtype, device=like.device) if dense else None)

    @classmethod
    def unit_of_low_rank(cls, dim: int, like: Tensor) -> Metric:
        """Return the metric of unit scales that may learn a few directions."""
        return cls(like.new_ones(dim), LowRank.unit(dim, like))

    def apply(self, momentum: Tensor) -> Tensor:
        """Return L p (..., dim), the velocities of momenta."""
        if isinstance(self.factor, LowRank):
            return self.scale * self.factor.apply(momentum)
        return self.scale * momentum if self.factor is None else momentum @ self.factor.T

    def apply_transpose(self, gradient: Tensor) -> Tensor:
        """Return the gradients (..., dim) with respect to y: L' g."""
        if isinstance(self.factor, LowRank):
            return self.factor.apply(self.scale * gradient)
        return self.scale * gradient if self.factor is None else gradient @ self.factor

    def of_curvature(self, curvature: Tensor) -> Metric | None:
        """Return this kind of metric for a Gaussian of a precision (dim, dim); None if that is not positive."""
        curvature = curvature.double()
        both = (curvature + curvature.T) / 2
        factor, failed = torch.linalg.cholesky_ex(both)
        if int(failed) or not bool(torch.isfinite(factor).all()):
            return None
        eye = torch.eye(len(both), dtype=both.dtype, device=both.device)
        root = torch.linalg.solve_triangular(factor, eye, upper=False).T
        scale = (root.square().sum(1) / both.diagonal()).pow(0.25)
        if not bool(torch.isfinite(root).all()):
            return None
        dtype = self.scale.dtype
        return Metric(scale.to(dtype), None if self.factor is None else root.to(dtype))

    def learned(self, sums: WindowSums) -> Metric:
        """Return the metric learned from a window of the warm-up; this one if nothing has moved."""
        draws = float(sums.moved)  # of chains that have moved
        if not draws:
            return self
        variance = _diagonal(sums, self.scale.double().square(), draws)
        scale = variance.sqrt()
        if self.factor is None:
            return Metric(scale.to(self.scale.dtype), None)
        if isinstance(self.factor, LowRank):
            found = None
            if isinstance(sums.gradients, WindowDraws):
                found = low_rank.learned(sums.positions, sums.gradients, scale)
            found = LowRank.unit(len(scale), scale) if found is None else found
            dtype = self.scale.dtype
            return Metric(scale.to(dtype), LowRank(found.directions.to(dtype), found.stretch.to(dtype)))
        dense = sums.gradients is not None and draws >= _FEWEST * len(scale)
        root = None
        if dense:  # in units of the scales
            both = scale[:, None] * scale
            positions, gradients = sums.positions.covariance(sums.count), sums.gradients.covariance(sums.count)
            root = root_of_mean(positions / both, gradients * both)
        factor = (scale / self.scale)[:, None] * self.factor if root is None else scale[:, None] * root
        return Metric(scale.to(self.scale.dtype), factor.to(self.scale.dtype))


class DrawMoments(NamedTuple):
    """Sums over the vectors of every chain, relative to its first one; float64."""

    # (chains, dim): Origin of the sums, and sums of the differences from it
    origin: Tensor
    first: Tensor
    second: Tensor  # (dim,) or (dim, dim): Sum of their squares, or of their outer products, over all chains

    @classmethod
    def begun(cls, origin: Tensor, dense: bool) -> DrawMoments:
        """Return empty sums of chains that start at vectors (chains, dim)."""
        origin, dim = origin.double(), origin.shape[1]
        return cls(origin, torch.zeros_like(origin), origin.new_zeros((dim, dim) if dense else dim))

    def added(self, x: Tensor, counted: Tensor) -> DrawMoments:
        """Return the sums with the vectors (chains, dim) of the counted chains (chains,)."""
        shift = torch.where(counted[:, None], x.double() - self.origin, 0.0)
        second = shift.T @ shift if self.second.ndim == 2 else shift.square().sum(0)
        return DrawMoments(self.origin, self.first + shift, self.second + second)

    def covariance(self, count: Tensor) -> Tensor:
        """Return variances (dim,) or covariances (dim, dim) within chains with numbers of vectors (chains,)."""
        count = count[:, None]
        mean = self.first / count.clamp_min(1.0)
        of_means = self.first.T @ mean if self.second.ndim == 2 else (self.first * mean).sum(0)
        return (self.second - of_means) / (count - 1).clamp_min(0.0).sum().clamp_min(1.0)


class WindowSums(NamedTuple):
    """Statistics of a warm-up window for its metric."""

    count: Tensor  # (chains,), float64: Completed moves
    moved: Tensor  # float64, 0-d: Moves that changed the position, over all chains
    # DrawMoments or WindowDraws: The draws themselves for a low-rank metric. Gradients may be None.
    positions: DrawMoments | WindowDraws
    gradients: DrawMoments | WindowDraws | None

    @classmethod
    def begun(cls, x: Tensor, gradient: Tensor | None, dense: bool, of_low_rank: bool = False) -> WindowSums:
        """Return empty sums of chains at x (chains, dim), with gradients there."""
        count = torch.zeros(len(x), dtype=torch.float64, device=x.device)
        if of_low_rank and gradient is not None:
            return cls(count, count.sum(), WindowDraws.begun(x), WindowDraws.begun(gradient))
        gradients = None if gradient is None else DrawMoments.begun(gradient, dense)
        return cls(count, count.sum(), DrawMoments.begun(x, dense and gradient is not None), gradients)

    def added(self, x: Tensor, gradient: Tensor | None, counted: Tensor, moved: Tensor) -> WindowSums:
        """Return the sums with positions and gradients of chains (chains,) with a completed move; some have moved."""
        return WindowSums(
            self.count + counted,
            self.moved + moved.sum(),
            self.positions.added(x, counted),
            None if self.gradients is None else self.gradients.added(gradient, counted),
        )


def _diagonal(sums: WindowSums, before: Tensor, draws: float) -> Tensor:
    """Return the squares (dim,) of the scales, shrunk towards the previous ones; the logarithms are averaged."""
    found = _variances(sums.positions, sums.count)
    if sums.gradients is not None:
        of_gradients = _variances(sums.gradients, sums.count)
        # If the gradient does not vary, only the variance of the draws is known.
        found = torch.where(of_gradients > 0, (found / of_gradients).sqrt(), found)
    found = torch.where((found > 0) & torch.isfinite(found), found, before)
    return torch.exp((draws * found.log() + _PRIOR_DRAWS * before.log()) / (draws + _PRIOR_DRAWS))


def _variances(moments: DrawMoments, count: Tensor) -> Tensor:
    covariance = moments.covariance(count)
    return covariance if covariance.ndim == 1 else covariance.diagonal()
