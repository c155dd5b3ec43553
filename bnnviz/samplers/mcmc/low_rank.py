r"""Learn a metric that is diagonal plus a few directions, for dimensions where a dense one has too few draws.

In coordinates divided by their scales the map from momenta to velocities is

$$L = I + V (\Lambda^{1/2} - I) V^\top$$

with orthonormal directions V (dim, rank) and the scales $\Lambda^{1/2}$ of the density along them in those coordinates.
Candidate directions are those of largest variance of the draws, and of the gradients, which is where draws vary least.
In the span of both, $M = V \Lambda V^\top$ is the metric for which positions and gradients have the same covariance
(`bnnviz.samplers.mcmc.metric`); directions with a variance near one are dropped. Reference: A. Seyboldt, nutpie,
low-rank modified mass matrix, https://pymc-devs.github.io/nutpie/; the criterion is the Fisher divergence between the
transformed density and N(0, I).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

#: Maximum number of directions of a metric.
RANK = 48
_SHARE = 3  # draws per candidate direction
_MOST, _MOST_NUMBERS = 1000, 20_000_000  # maximum draws, and values in them, of a window
_CUTOFF = math.log(1.5)  # minimum absolute log variance of a direction
# Added to covariances in units of the scales, for directions without variation. It is small, because directions that
# the chains have not explored yet vary little, and positions and gradients still determine their scales.
_RIDGE = 1e-6


class LowRank(NamedTuple):
    """A symmetric map that stretches along a few directions."""

    directions: Tensor  # (dim, rank): Orthonormal columns; unused ones are zero
    stretch: Tensor  # (rank,): One for no stretch

    @classmethod
    def unit(cls, dim: int, like: Tensor) -> LowRank:
        """Return the identity map."""
        rank = min(RANK, dim)
        return cls(like.new_zeros(dim, rank), like.new_ones(rank))

    def apply(self, vectors: Tensor) -> Tensor:
        """Return the images of vectors (..., dim); the map is symmetric."""
        return vectors + ((vectors @ self.directions) * (self.stretch - 1)) @ self.directions.T


class WindowDraws(NamedTuple):
    """Vectors of every chain in a window of the warm-up, limited to the most recent ones."""

    rows: Tensor  # (n, dim)
    chain: Tensor  # (n,), int64

    @classmethod
    def begun(cls, like: Tensor) -> WindowDraws:
        """Return an empty collection for chains (chains, dim)."""
        return cls(like[:0], torch.zeros(0, dtype=torch.int64, device=like.device))

    def added(self, x: Tensor, counted: Tensor) -> WindowDraws:
        """Return the collection with the vectors (chains, dim) of the counted chains (chains,)."""
        chain = counted.nonzero()[:, 0]
        most = max(1, min(_MOST, _MOST_NUMBERS // x.shape[1]))
        rows, chains = torch.cat([self.rows, x[chain]]), torch.cat([self.chain, chain])
        return WindowDraws(rows[-most:], chains[-most:])

    def centred(self) -> tuple[Tensor, float]:
        """Return the deviations (n, dim) from the chain means, in float64, and their degrees of freedom."""
        rows, chains = self.rows.double(), int(self.chain.max()) + 1
        count = torch.bincount(self.chain, minlength=chains)
        sums = rows.new_zeros(chains, rows.shape[1]).index_add(0, self.chain, rows)
        mean = sums / count.clamp_min(1)[:, None]
        return rows - mean[self.chain], max(len(rows) - int((count > 0).sum()), 1)

    def covariance(self, count: Tensor) -> Tensor:
        """Return variances (dim,) within chains."""
        rows, freedom = self.centred()
        return rows.square().sum(0) / freedom


def learned(positions: WindowDraws, gradients: WindowDraws, scale: Tensor) -> LowRank | None:
    """Return the map learned from draws and gradients, in units of scales (dim,); None if there are too few draws."""
    (x, freedom), (g, _) = positions.centred(), gradients.centred()
    x, g = x / scale, g * scale
    looked = min(int(freedom) // (2 * _SHARE), RANK, len(scale) // 2)
    if looked < 1 or not bool(torch.isfinite(x).all() & torch.isfinite(g).all()):
        return None
    try:
        basis = torch.linalg.qr(torch.cat([_leading(x, looked), _leading(g, looked)], 1)).Q
    except torch.linalg.LinAlgError:  # overflow
        return None
    x, g = x @ basis, g @ basis
    root = root_of_mean(x.T @ x / freedom, g.T @ g / freedom)
    if root is None:
        return None
    spread, turned = torch.linalg.eigh(root @ root.T)
    strength = spread.clamp_min(1e-30).log().abs()
    chosen = strength.argsort(descending=True)[:RANK]
    chosen = chosen[strength[chosen] > _CUTOFF]
    found = LowRank.unit(len(scale), scale)
    directions, stretch = found.directions.clone(), found.stretch.clone()
    directions[:, : len(chosen)] = basis @ turned[:, chosen]
    stretch[: len(chosen)] = (freedom / (freedom + 5.0) * spread[chosen].log() / 2).exp()
    return LowRank(directions, stretch)


def root_of_mean(positions: Tensor, gradients: Tensor) -> Tensor | None:
    """Return L of M = L L' with M G M = C, C and G (k, k) of positions and gradients; None on overflow."""
    ridge = _RIDGE * torch.eye(len(positions), dtype=positions.dtype, device=positions.device)
    try:
        values, vectors = torch.linalg.eigh(gradients + ridge)
        root = values.sqrt()
        between = (vectors * root).T @ (positions + ridge) @ (vectors * root)
        inner, turned = torch.linalg.eigh(between)
    except torch.linalg.LinAlgError:
        return None
    found = (vectors / root) @ (turned * inner.clamp_min(0.0).pow(0.25))
    return found if bool(torch.isfinite(found).all()) else None


def _leading(rows: Tensor, count: int) -> Tensor:
    """Return the directions (dim, count) of largest variance of rows (n, dim)."""
    if len(rows) >= rows.shape[1]:
        return torch.linalg.eigh(rows.T @ rows).eigenvectors[:, -count:]
    values, vectors = torch.linalg.eigh(rows @ rows.T)
    found = rows.T @ vectors[:, -count:]
    return found / torch.linalg.vector_norm(found, dim=0).clamp_min(1e-300)
