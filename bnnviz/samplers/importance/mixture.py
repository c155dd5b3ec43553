r"""Compute covariances of normal proposals, full or diagonal, and the log density of their mixture.

With factors $\Sigma_m = L_m L_m^\top$ in d dimensions,

$$\log \frac1M \sum_m q_m(\theta) = \operatorname{logsumexp}_m \Bigl(-\tfrac12 |L_m^{-1} (\theta - \mu_m)|^2
  - \log \det L_m\Bigr) - \tfrac d2 \log 2 \pi - \log M.$$
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bnnviz.errors import BnnvizError

_LARGEST = 4000  # dimensions of a full covariance
_CACHED = 200_000  # numbers of a product
_LOG_2PI = math.log(2 * math.pi)


class Full:
    """The covariances of all proposals by their lower Cholesky factors L (proposals, dim, dim)."""

    @staticmethod
    def check(dim: int) -> None:
        """Raise if there are too many dimensions."""
        if dim > _LARGEST:
            raise BnnvizError(
                f"A full covariance of {dim:,} dimensions takes {4 * dim**2 / 1e9:.1f} GB for each proposal; use the"
                " light variant, whose covariances are diagonal.",
                "sampler",
            )

    @staticmethod
    def first(x: Tensor, sd: float) -> Tensor:
        """Return the factors of sd^2 I for means x (proposals, dim)."""
        return (sd * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)).repeat(len(x), 1, 1)

    @staticmethod
    def scaled(factor: Tensor, z: Tensor) -> Tensor:
        """Return normal draws z L' from standard normal numbers z (proposals, draws, dim)."""
        return z @ factor.mT

    @staticmethod
    def applied(factor: Tensor, g: Tensor) -> Tensor:
        """Return L L' g, the covariances times vectors g (proposals, dim)."""
        return (factor @ (factor.mT @ g[..., None]))[..., 0]

    @staticmethod
    def log_mixture(points: Tensor, means: Tensor, factor: Tensor) -> Tensor:
        """Return the log density (n,), float64, of the equally weighted mixture of proposals at points (n, dim)."""
        count, dim = means.shape
        # Inverse factors take a third of the time of triangular solves; in float64, only products are rounded.
        eye = torch.eye(dim, dtype=torch.float64, device=points.device)
        log_det = factor.diagonal(dim1=1, dim2=2).double().log().sum(1)
        logs = torch.full((len(points),), -math.inf, dtype=torch.float64, device=points.device)
        # Few points at a time, so that they fit in the processor's cache.
        size = max(64, _CACHED // dim)
        apart, white = torch.empty_like(points[:size]), torch.empty_like(points[:size])
        for mean, triangle, volume in zip(means, factor, log_det, strict=True):
            inverse = torch.linalg.solve_triangular(triangle.double(), eye, upper=False).to(points.dtype)
            for part, log in zip(torch.split(points, size), torch.split(logs, size), strict=True):
                torch.sub(part, mean, out=apart[: len(part)])
                torch.mm(apart[: len(part)], inverse.T, out=white[: len(part)])
                square = torch.linalg.vector_norm(white[: len(part)], dim=1).double().square()
                log.copy_(torch.logaddexp(log, -0.5 * square - volume))
        return logs - 0.5 * dim * _LOG_2PI - math.log(count)

    @staticmethod
    def squared(factor: Tensor) -> Tensor:
        """Return L L'."""
        return factor @ factor.mT

    @staticmethod
    def mixed(before: Tensor, draws: Tensor, weights: list[Tensor], shares: list[float]) -> Tensor:
        """Return covariances plus shares of those of draws (proposals, draws, dim) with weights (proposals, draws)."""
        total = before
        for weight, share in zip(weights, shares, strict=True):
            if share:
                apart = draws - (weight[:, None] @ draws)
                apart = apart * weight.sqrt()[..., None]
                total = total + share * (apart.mT @ apart)
        return total

    @staticmethod
    def factorised(total: Tensor) -> tuple[Tensor, Tensor]:
        """Return the factors of covariances, and where they exist; rounding may hide singular ones."""
        made, trouble = torch.linalg.cholesky_ex(total)
        return made, (trouble == 0) & torch.isfinite(made).flatten(1).all(1)

    @staticmethod
    def singular(total: Tensor) -> Tensor:
        """Return where `scipy.stats.multivariate_normal` rejects a matrix, by its eigenvalues."""
        values = torch.linalg.eigvalsh(total)
        rounding = (1e6 if total.dtype == torch.float64 else 1e3) * torch.finfo(total.dtype).eps
        return values[:, 0] <= rounding * values.abs().amax(1)


class Diagonal:
    """The same by standard deviations (proposals, dim)."""

    @staticmethod
    def check(dim: int) -> None:
        """Accept any dimension."""

    @staticmethod
    def first(x: Tensor, sd: float) -> Tensor:
        """Return sd everywhere."""
        return torch.full_like(x, sd)

    @staticmethod
    def scaled(factor: Tensor, z: Tensor) -> Tensor:
        """Return sd z."""
        return factor[:, None] * z

    @staticmethod
    def applied(factor: Tensor, g: Tensor) -> Tensor:
        """Return sd^2 g."""
        return factor.square() * g

    @staticmethod
    def log_mixture(points: Tensor, means: Tensor, factor: Tensor) -> Tensor:
        """Return the log density of the mixture."""
        count, dim = means.shape
        logs = torch.full((len(points),), -math.inf, dtype=torch.float64, device=points.device)
        apart = torch.empty_like(points)
        for mean, sd in zip(means, factor, strict=True):
            torch.sub(points, mean, out=apart).div_(sd)
            square = torch.linalg.vector_norm(apart, dim=1).double().square()
            logs = torch.logaddexp(logs, -0.5 * square - sd.double().log().sum())
        return logs - 0.5 * dim * _LOG_2PI - math.log(count)

    @staticmethod
    def squared(factor: Tensor) -> Tensor:
        """Return sd^2."""
        return factor.square()

    @staticmethod
    def mixed(before: Tensor, draws: Tensor, weights: list[Tensor], shares: list[float]) -> Tensor:
        """Return variances."""
        total = before
        for weight, share in zip(weights, shares, strict=True):
            if share:
                apart = draws - (weight[:, None] @ draws)
                total = total + share * (weight[..., None] * apart.square()).sum(1)
        return total

    @staticmethod
    def factorised(total: Tensor) -> tuple[Tensor, Tensor]:
        """Return standard deviations, and where all are positive."""
        return total.sqrt(), ((total > 0) & torch.isfinite(total)).all(1)

    @staticmethod
    def singular(total: Tensor) -> Tensor:
        """Return false for all."""
        return torch.zeros(len(total), dtype=torch.bool, device=total.device)
