r"""Sample by the Bouncy Particle Sampler (BPS).

Target $\pi(x) \propto e^{-U(x)}$, velocity $v \sim N(0, \sigma^2 I)$; with g the gradient of U at x:

$$\begin{aligned}
  \text{flow} &: \quad \phi_t(x, v) = (x + v t, v) \\
  \text{rate} &: \quad \lambda(x, v) = \max(0, \langle v, g \rangle) \\
  \text{bounce} &: \quad R_x v = v - 2 \frac{\langle g, v \rangle}{\langle g, g \rangle}\, g \\
  \text{refreshment} &: \quad v \sim N(0, \sigma^2 I) \quad \text{at rate } \lambda_r
  \end{aligned}$$

Along the path $\frac{d}{dt} \langle v, g \rangle = v^\top H v$, H the Hessian of U. The generalised bounce (Wu
and Robert 2017, doi:10.48550/arXiv.1706.04781) turns the part of v along g round and draws the rest anew.

Source: Bouchard-Cote, Vollmer and Doucet 2018, doi:10.1080/01621459.2017.1294075; for networks, Goan, Perrin, Mengersen
and Fookes 2023, Table 1 and Algorithm 2, doi:10.48550/arXiv.2302.08724.
"""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.pdmp.base import PDMP
from bnnviz.samplers.random import RandomNumbers


@REGISTRY.add
class BPS(PDMP):
    """Bouncy Particle Sampler: straight lines, reflected on the gradient of U at rate max(0, v . grad U)."""

    registered = "bps"
    title = "Bouncy Particle"

    velocity_sd = settings.Number(
        1.0,
        bounds=(1e-3, 10.0),
        scale="log",
        live=True,
        doc="Standard deviation of a refreshed velocity's components (the authors' code: 0.001 with t_init 10).",
    )

    turn = settings.Choice(
        "reflect",
        objects=["reflect", "generalised"],
        live=True,
        doc="What a bounce does. reflect: the velocity is mirrored on the gradient. generalised: its part along the"
        " gradient turns round and the rest is drawn anew, so that no refreshment is needed.",
    )

    def rate(self, x: Tensor, v: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Return v . g."""
        return (v * g).sum(-1)

    def rate_slope(self, x: Tensor, v: Tensor, g: Tensor, curvature: Tensor, scaling: Any) -> Tensor:
        """Return v' H v."""
        return curvature

    def metric(self, scaling: Any) -> Tensor | float:
        """Return the diagonal of the matrix M in whose metric v' M^-1 v a bounce is orthogonal."""
        return 1.0

    def reflect(self, rng: RandomNumbers, x: Tensor, v: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Return v - 2 (g . v) / (g' M g) M g, which keeps v' M^-1 v; or the generalised bounce."""
        scaled = self.metric(scaling) * g
        norm = (g * scaled).sum(-1, keepdim=True).clamp_min(1e-30)
        if self.turn == "reflect":
            return v - 2 * (g * v).sum(-1, keepdim=True) / norm * scaled
        fresh = self.draw_velocity(rng, v, scaling)
        return fresh - (g * (fresh + v)).sum(-1, keepdim=True) / norm * scaled

    def draw_velocity(self, rng: RandomNumbers, like: Tensor, scaling: Any) -> Tensor:
        """Draw from N(0, velocity_sd^2 I)."""
        return self.velocity_sd * rng.normal(like.shape, like.dtype)

    def mean_rate(self, x: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Return velocity_sd sqrt(g' M g) / sqrt(2 pi)."""
        return self.velocity_sd * (self.metric(scaling) * g * g).sum(-1).sqrt() / math.sqrt(2 * math.pi)

    def gaussian_terms(
        self, x: Tensor, v: Tensor, mean: Tensor, precision: Tensor, scaling: Any
    ) -> tuple[Tensor, Tensor]:
        """Return the rate itself, v . P (x - m) + t v' P v."""
        pull = v @ precision
        return (pull * (x - mean)).sum(-1, keepdim=True), (pull * v).sum(-1, keepdim=True)
