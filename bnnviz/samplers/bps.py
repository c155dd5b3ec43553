"""The Bouncy Particle Sampler."""

from __future__ import annotations

from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.pdmp import PDMP


@REGISTRY.add
class BPS(PDMP):
    """Bouncy Particle Sampler: straight lines, reflected on the gradient of U at rate max(0, v . grad U).

    Refreshed velocities are N(0, velocity_sd^2 I). Source: Bouchard-Cote, Vollmer and Doucet 2018;
    for networks, the PDMP paper, Table 1 and Algorithm 2.
    """

    registered = "bps"
    title = "Bouncy Particle"

    velocity_sd = settings.Number(
        1.0,
        bounds=(1e-3, 10.0),
        scale="log",
        live=True,
        doc="Standard deviation of a refreshed velocity's components (the reference code: 0.001 with t_init 10).",
    )

    def flow(self, x: Tensor, v: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """Move along v in a straight line."""
        return x + v * t[:, None].to(x.dtype), v

    def rate(self, x: Tensor, v: Tensor, g: Tensor) -> Tensor:
        """Return v . grad U."""
        return (v * g).sum(-1)

    def rate_slope(self, x: Tensor, v: Tensor, g: Tensor, curvature: Tensor) -> Tensor:
        """Return v' H v."""
        return curvature

    def reflect(self, x: Tensor, v: Tensor, g: Tensor) -> Tensor:
        """Return v - 2 (g . v) / (g . g) g, which keeps |v|."""
        along = (g * v).sum(-1, keepdim=True) / (g * g).sum(-1, keepdim=True).clamp_min(1e-30)
        return v - 2 * along * g

    def draw_velocity(self, like: Tensor) -> Tensor:
        """Draw from N(0, velocity_sd^2 I)."""
        return self.velocity_sd * self._normals(like)
