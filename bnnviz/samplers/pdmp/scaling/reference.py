r"""Define the Gaussian reference N(x*, S) of the Boomerang."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from bnnviz.samplers.pdmp.scaling.preconditioner import Preconditioner


class GaussianReference(NamedTuple):
    """The reference N(x*, S)."""

    centre: Tensor  # (dim,) or (chains, dim): x*, with a row for each chain if chains have separate references
    # (dim,) or (chains, dim): Inverse variances of the coordinates: the diagonal of S^-1 for a diagonal S
    precision: Tensor
    # (dim, dim): L with S = L L', and its inverse; None if S is diagonal
    factor: Tensor | None = None
    inverse: Tensor | None = None

    @classmethod
    def of(cls, centre: Tensor, spread: Preconditioner) -> GaussianReference:
        """Return the reference whose L is a preconditioner."""
        if spread.inverse is None:
            return cls(centre, spread.scale.square().reciprocal())
        return cls(centre, spread.factor.square().sum(1).reciprocal(), spread.factor, spread.inverse)

    @property
    def spread(self) -> Preconditioner:
        """L as a preconditioner."""
        return Preconditioner(self.precision.rsqrt(), self.factor, self.inverse)

    def of_chains(self, chains: Tensor) -> GaussianReference:
        """Return the references of the given chains."""
        if self.centre.ndim == 1:
            return self
        return self._replace(centre=self.centre[chains], precision=self.precision[chains])

    def pull(self, d: Tensor) -> Tensor:
        """Return S^-1 d of vectors d (n, dim)."""
        return self.precision * d if self.inverse is None else d @ self.inverse.T @ self.inverse

    def spread_of(self, g: Tensor) -> Tensor:
        """Return S g of vectors g (n, dim)."""
        return g / self.precision if self.factor is None else g @ self.factor @ self.factor.T

    def drawn(self, z: Tensor) -> Tensor:
        """Return L z of vectors z (n, dim), drawn from N(0, S) if z is from N(0, I)."""
        return z * self.precision.rsqrt() if self.factor is None else z @ self.factor.T
