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

Along the path $\frac{d}{dt} \langle v, g \rangle = v^\top H v$, H the Hessian of U. The generalised bounce (Wu
and Robert 2017, doi:10.48550/arXiv.1706.04781) reverses the component of v along g and redraws the rest. The forward
bounce (Michel, Durmus and Senecal 2020, doi:10.48550/arXiv.1702.08397) redraws the component along g from the law
of density $a\, e^{-a^2 / 2 \sigma^2}$ of uphill velocities at bounces, and the rest partially.

Source: Bouchard-Cote, Vollmer and Doucet 2018, doi:10.1080/01621459.2017.1294075; for networks, Goan, Perrin, Mengersen
and Fookes 2023, Table 1 and Algorithm 2, doi:10.48550/arXiv.2302.08724.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, Sampler
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

    turn = settings.Choice(
        "reflect",
        objects=["reflect", "generalised", "forward"],
        live=True,
        doc="Type of bounce. reflect: reflect the velocity at the gradient. generalised: reverse the component along"
        " the gradient and redraw the orthogonal component; refreshment is not required. forward: redraw the component"
        " along the gradient conditional on a decrease of U, and part of the orthogonal component.",
    )
    fresh_share = settings.Number(
        0.1,
        bounds=(0.0, 1.0),
        step=0.01,
        live=True,
        when={"turn": ["forward"]},
        label="Redrawn share",
        doc="Fraction of the variance of the orthogonal velocity that a forward bounce redraws.",
    )

    def rate(self, x: Tensor, v: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Return v . g."""
        return (v * g).sum(-1)

    def rate_slope(self, x: Tensor, v: Tensor, g: Tensor, curvature: Tensor, scaling: Any) -> Tensor:
        """Return v' H v."""
        return curvature

    def rate_after(self, x: Tensor, v: Tensor, g: Tensor, rate: Tensor, scaling: Any) -> Tensor:
        """Return minus the rate before the bounce, or the rate of the redrawn component along the gradient."""
        return self.rate(x, v, g, scaling).double() if self.turn == "forward" else -rate

    def scaled_gradient(self, g: Tensor, scaling: Any) -> Tensor:
        """Return M g for the metric M in which bounces are orthogonal."""
        raise NotImplementedError

    def reflect(self, rng: RandomNumbers, x: Tensor, v: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Return v - 2 (g . v) / (g' M g) M g, which keeps v' M^-1 v, or the other kinds of bounce."""
        scaled = self.scaled_gradient(g, scaling)
        norm = (g * scaled).sum(-1, keepdim=True).clamp_min(1e-30)
        along = (g * v).sum(-1, keepdim=True)
        if self.turn == "reflect":
            return v - 2 * along / norm * scaled
        fresh = self.draw_velocity(rng, v, scaling)
        if self.turn == "generalised":
            return fresh - (along + (g * fresh).sum(-1, keepdim=True)) / norm * scaled
        across = (1 - self.fresh_share) ** 0.5 * v + self.fresh_share**0.5 * fresh
        # Uphill velocities bounce at a rate proportional to their slope: a Rayleigh distribution.
        down = self.velocity_sd * (2 * norm * rng.exponential(norm.shape, norm.dtype)).sqrt()
        return across - (down + (g * across).sum(-1, keepdim=True)) / norm * scaled

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
            {"metric": "unit", "velocity_sd": 1e-3, "t_init": 10.0},
        ),
        {
            "name": "regression",
            "title": "Stochastic BPS (Pakman and others)",
            "doc": "A regression line of noisy rates, raised by three predicted standard deviations, with coordinate"
            " scales learned in the warm-up; for batches.",
            "settings": {"bound": "regression", "sds_above": 3.0, "metric": "diagonal"},
        },
    ]

    def scaled_gradient(self, g: Tensor, scaling: Any) -> Tensor:
        """Return M g."""
        return g if not isinstance(scaling, Preconditioner) else scaling.apply(scaling.apply_transpose(g))

    def draw_velocity(self, rng: RandomNumbers, like: Tensor, scaling: Any) -> Tensor:
        """Draw from N(0, velocity_sd^2 M)."""
        velocity = self.velocity_sd * rng.normal(like.shape, like.dtype)
        return velocity if not isinstance(scaling, Preconditioner) else scaling.apply(velocity)
