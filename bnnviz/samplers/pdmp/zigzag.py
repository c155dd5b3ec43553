r"""Sample by the Zig-Zag sampler.

Target $\pi(x) \propto e^{-U(x)}$, velocity $v \in \{-c, c\}^d$; each coordinate reverses at its own rate, with g the
gradient of U at x:

$$\begin{aligned}
  \text{flow} &: \quad \phi_t(x, v) = (x + v t, v) \\
  \text{rates} &: \quad \lambda_i(x, v) = \max(0, v_i g_i), \qquad \lambda = \textstyle\sum_i \lambda_i \\
  \text{bounce} &: \quad v_i \to -v_i \quad \text{with probability } \lambda_i / \lambda \\
  \text{refreshment} &: \quad \text{redraws all signs, at rate } \lambda_r \text{; not required}
  \end{aligned}$$

With a metric (`bnnviz.samplers.pdmp.scaling.preconditioner`) $v = L \theta$ with $\theta \in \{-c, c\}^d$: the signs
belong to the columns of L, and $\lambda_i = \max(0, \theta_i (L^\top g)_i)$.

The derivative of the summed rate along the path is $\sum_{i: v_i g_i > 0} v_i (H v)_i$, H the Hessian of U. With
``bound="exact"`` each coordinate has a separate event time.

Source: Bierkens, Fearnhead and Roberts 2019, doi:10.1214/18-AOS1715.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.pdmp.base import PDMP
from bnnviz.samplers.pdmp.scaling.preconditioned import Preconditioned
from bnnviz.samplers.pdmp.scaling.preconditioner import Preconditioner
from bnnviz.samplers.random import RandomNumbers


@REGISTRY.add
class ZigZag(Preconditioned, PDMP):
    """Zig-Zag sampler: straight paths with velocity +-1 in each coordinate; an event reverses one coordinate."""

    # The sum of positive parts has kinks, which a line through two points misses.
    late_events = "the posterior is wrong"
    registered = "zigzag"
    title = "Zig-Zag"
    # The paper has no Zig-Zag.
    presets: ClassVar[list[dict[str, Any]]] = [
        preset | {"title": "The paper's event times"} if preset["name"] == "paper" else preset
        for preset in Preconditioned.presets
    ]

    refresh_rate = settings.Number(
        0.0,
        bounds=(0.0, 20.0),
        step=0.05,
        unit="1/time",
        live=True,
        doc="Rate of refreshments of all signs. Not required for Zig-Zag.",
    )
    velocity = settings.Number(1.0, bounds=(1e-3, 10.0), scale="log", live=True, doc="Speed along each coordinate.")

    def rate(self, x: Tensor, v: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Return the sum of max(0, v_i g_i), which is never negative."""
        return self._rates(v, g, scaling).clamp_min(0).sum(-1)

    def _rates(self, v: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Return the signed rates (n, dim) of the directions that can reverse: (L^-1 v)_i (L' g)_i."""
        if not isinstance(scaling, Preconditioner) or scaling.factor is None:
            return v * g
        return scaling.undo(v) * scaling.apply_transpose(g)

    def derivatives(self, source: Any, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient, and H v (chains, dim)."""
        return source.gradient_and_product(x, v)

    def rate_slope(self, x: Tensor, v: Tensor, g: Tensor, curvature: Tensor, scaling: Any) -> Tensor:
        """Return the sum of v_i (H v)_i over the uphill directions."""
        climbing = self._rates(v, g, scaling) > 0
        return torch.where(climbing, self._rates(v, curvature, scaling), 0.0).sum(-1)

    def rate_after(self, x: Tensor, v: Tensor, g: Tensor, rate: Tensor, scaling: Any) -> Tensor:
        """Return the rate without the reversed direction."""
        return self.rate(x, v, g, scaling).double()

    def reflect(self, rng: RandomNumbers, x: Tensor, v: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Reverse one direction, chosen with probability proportional to its rate."""
        cumulative = self._rates(v, g, scaling).clamp_min(0).cumsum(-1)
        mark = rng.uniform((len(v), 1), v.dtype) * cumulative[:, -1:]
        turning = (cumulative <= mark).sum(-1, keepdim=True).clamp_max(v.shape[1] - 1)
        if not isinstance(scaling, Preconditioner) or scaling.factor is None:
            return v.scatter(1, turning, -v.gather(1, turning))
        # Flip the signs themselves, so that rounding does not accumulate.
        signs = torch.where(scaling.undo(v) < 0, -self.velocity, self.velocity).to(v.dtype)
        return scaling.apply(signs.scatter(1, turning, -signs.gather(1, turning)))

    def draw_velocity(self, rng: RandomNumbers, like: Tensor, scaling: Any) -> Tensor:
        """Redraw all signs."""
        signs = rng.uniform(like.shape, like.dtype) < 0.5
        velocity = torch.where(signs, -self.velocity, self.velocity).to(like.dtype)
        return velocity if not isinstance(scaling, Preconditioner) else scaling.apply(velocity)

    def mean_rate(self, x: Tensor, g: Tensor, scaling: Any) -> Tensor:
        """Return velocity sum |(L' g)_i| / 2."""
        g = g if not isinstance(scaling, Preconditioner) else scaling.apply_transpose(g)
        return 0.5 * self.velocity * g.abs().sum(-1)

    def directions(self, v: Tensor, scaling: Any) -> Tensor:
        """Return (L^-1 v)_i times the columns of L, or the coordinates of v one by one."""
        if not isinstance(scaling, Preconditioner) or scaling.factor is None:
            return torch.diag_embed(v)
        return scaling.undo(v)[..., None] * scaling.factor.T

    def gaussian_terms(
        self, x: Tensor, v: Tensor, mean: Tensor, precision: Tensor, scaling: Any
    ) -> tuple[Tensor, Tensor]:
        """Return each direction's rate, that of v_i (P (x - m))_i + t v_i (P v)_i."""
        return self._rates(v, (x - mean) @ precision, scaling), self._rates(v, v @ precision, scaling)
