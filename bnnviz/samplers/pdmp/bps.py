r"""Sample by the Bouncy Particle Sampler (BPS).

Target $\pi(x) \propto e^{-U(x)}$, velocity $v \sim N(0, \sigma^2 I)$; with g the gradient of U at x:

$$\begin{aligned}
  \text{flow} &: \quad \phi_t(x, v) = (x + v t, v) \\
  \text{rate} &: \quad \lambda(x, v) = \max(0, \langle v, g \rangle) \\
  \text{bounce} &: \quad R_x v = v - 2 \frac{\langle g, v \rangle}{\langle g, g \rangle}\, g \\
  \text{refreshment} &: \quad v \sim N(0, \sigma^2 I) \quad \text{at rate } \lambda_r
  \end{aligned}$$

With a metric (`bnnviz.samplers.pdmp.scaling.preconditioner`) $v \sim N(0, \sigma^2 M)$ with $M = L L^\top$, and the
bounce is orthogonal in it: $v - 2 \frac{\langle v, g \rangle}{\langle g, M g \rangle} M g$.

Along the path $\frac{d}{dt} \langle v, g \rangle = v^\top H v$, H the Hessian of U.

Source: Bouchard-Cote, Vollmer and Doucet 2018, doi:10.1080/01621459.2017.1294075; for networks, Goan, Perrin, Mengersen
and Fookes 2023, Table 1 and Algorithm 2, doi:10.48550/arXiv.2302.08724.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, Sampler, preset
from bnnviz.samplers.pdmp.base import PDMP, capped
from bnnviz.samplers.pdmp.scaling.preconditioned import Preconditioned
from bnnviz.samplers.pdmp.scaling.preconditioner import Preconditioner
from bnnviz.samplers.random import RandomNumbers


class BouncyParticle(Sampler):
    """Straight lines that bounce on the gradient of U: a mixin of the Bouncy Particle and sigma-BPS."""

    velocity_sd = settings.Number(
        1.0,
        bounds=(1e-3, 10.0),
        scale="log",
        live=True,
        doc="Standard deviation of the components of refreshed velocities (0.001 with t_init 10 in the code of the"
        " authors).",
    )

    def rate(self, x: Tensor, v: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Return v . g."""
        return (v * g).sum(-1)

    def rate_slope(self, x: Tensor, v: Tensor, g: Tensor, curvature: Tensor, scaling: Any) -> Tensor:
        """Return v' H v."""
        return curvature

    def scaled_gradient(self, g: Tensor, scaling: Any) -> Tensor:
        """Return M g for the metric M in which bounces are orthogonal."""
        raise NotImplementedError

    def reflect(self, rng: RandomNumbers, x: Tensor, v: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Return v - 2 (g . v) / (g' M g) M g, which keeps v' M^-1 v."""
        scaled = self.scaled_gradient(g, scaling)
        norm = (g * scaled).sum(-1, keepdim=True).clamp_min(1e-30)
        along = (g * v).sum(-1, keepdim=True)
        return v - 2 * along / norm * scaled

    def mean_rate(self, x: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Return velocity_sd sqrt(g' M g) / sqrt(2 pi)."""
        square = (self.scaled_gradient(g, scaling) * g).sum(-1)
        return self.velocity_sd * square.sqrt() / math.sqrt(2 * math.pi)

    def directions(self, v: Tensor, scaling: Any) -> Tensor:
        """Return v."""
        return v[:, None]

    def gaussian_terms(
        self, x: Tensor, v: Tensor, mean: Tensor, precision: Tensor, scaling: Any
    ) -> tuple[Tensor, Tensor]:
        """Return the rate itself, v . P (x - m) + t v' P v."""
        pull = v @ precision
        return (pull * (x - mean)).sum(-1, keepdim=True), (pull * v).sum(-1, keepdim=True)


@REGISTRY.add
class BPS(Preconditioned, BouncyParticle, PDMP):
    """Bouncy Particle Sampler: straight paths, with reflections at the gradient of U at rate max(0, v . grad U)."""

    registered = "bps"
    title = "Bouncy Particle"

    presets: ClassVar[list[dict[str, Any]]] = [
        *Preconditioned.presets,
        capped(
            "Ten proposals, slow",
            "Algorithm 2 as in the paper, with a bounce at the tenth proposal and a velocity_sd of 0.001.",
            metric="unit",
            velocity_sd=1e-3,
            t_init=10.0,
        ),
        preset(
            "regression",
            "Stochastic BPS (Pakman and others)",
            "A regression line of noisy rates, raised by three predicted standard deviations, with coordinate"
            " scales learned in the warm-up; for batches.",
            bound="regression",
            sds_above=3.0,
            metric="diagonal",
        ),
    ]

    def scaled_gradient(self, g: Tensor, scaling: Any) -> Tensor:
        """Return M g."""
        return g if not isinstance(scaling, Preconditioner) else scaling.apply(scaling.apply_transpose(g))

    def draw_velocity(self, rng: RandomNumbers, like: Tensor, scaling: Any) -> Tensor:
        """Draw from N(0, velocity_sd^2 M)."""
        velocity = self.velocity_sd * rng.normal(like.shape, like.dtype)
        return velocity if not isinstance(scaling, Preconditioner) else scaling.apply(velocity)
