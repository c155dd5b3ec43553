"""The Bouncy Particle Sampler."""

from __future__ import annotations

import math

from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.pdmp.base import PDMP
from bnnviz.samplers.pdmp.exact_bound import Lines
from bnnviz.samplers.random import RandomNumbers


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

    turn = settings.Choice(
        "reflect",
        objects=["reflect", "generalised"],
        live=True,
        doc="What a bounce does. reflect: the velocity is mirrored on the gradient. generalised: its part along the"
        " gradient turns round and the rest is drawn anew, so that no refreshment is needed.",
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

    def metric(self) -> Tensor | float:
        """Return the diagonal of the matrix M in whose metric v' M^-1 v a bounce is orthogonal."""
        return 1.0

    def reflect(self, rng: RandomNumbers, x: Tensor, v: Tensor, g: Tensor) -> Tensor:
        """Return v - 2 (g . v) / (g' M g) M g, which keeps v' M^-1 v.

        The generalised bounce (Wu and Robert 2017) turns the part along M g round and draws the rest anew.
        """
        scaled = self.metric() * g
        norm = (g * scaled).sum(-1, keepdim=True).clamp_min(1e-30)
        if self.turn == "reflect":
            return v - 2 * (g * v).sum(-1, keepdim=True) / norm * scaled
        fresh = self.draw_velocity(rng, v)
        return fresh - (g * (fresh + v)).sum(-1, keepdim=True) / norm * scaled

    def mean_rate(self, x: Tensor, g: Tensor) -> Tensor:
        """Return velocity_sd sqrt(g' M g) / sqrt(2 pi)."""
        return self.velocity_sd * (self.metric() * g * g).sum(-1).sqrt() / math.sqrt(2 * math.pi)

    def exact_lines(self, centre: Tensor, precision: Tensor) -> tuple[Lines, bool]:
        """Return the rate itself, v . P (x - m) + t v' P v."""

        def lines(x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            pull = v @ precision
            return (pull * (x - centre)).sum(-1, keepdim=True), (pull * v).sum(-1, keepdim=True)

        return lines, True

    def draw_velocity(self, rng: RandomNumbers, like: Tensor) -> Tensor:
        """Draw from N(0, velocity_sd^2 I)."""
        return self.velocity_sd * rng.normal(like.shape, like.dtype)
