"""The Zig-Zag sampler."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.pdmp.base import PDMP
from bnnviz.samplers.pdmp.exact_bound import Lines
from bnnviz.samplers.random import RandomNumbers


@REGISTRY.add
class ZigZag(PDMP):
    """Zig-Zag: straight lines along +-velocity in each coordinate, of which one turns round at an event.

    Coordinate i turns at rate max(0, v_i dU/dx_i). All coordinates share one clock with the sum of these rates, and
    which of them turns is drawn in proportion to its rate; with ``bound="exact"`` each has a clock of its own. No
    refreshment is needed. Source: Bierkens, Fearnhead and Roberts 2019.
    """

    # The sum of positive parts has kinks, which a line through two points does not see.
    late_events = "the posterior comes out wrong"
    registered = "zigzag"
    title = "Zig-Zag"

    refresh_rate = settings.Number(
        0.0,
        bounds=(0.0, 20.0),
        step=0.05,
        unit="1/time",
        live=True,
        doc="Refreshments of all signs per unit of path time; the Zig-Zag needs none.",
    )
    velocity = settings.Number(
        1.0, bounds=(1e-3, 10.0), scale="log", live=True, doc="Speed along each coordinate; only signs change."
    )

    def flow(self, x: Tensor, v: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """Move along v in a straight line."""
        return x + v * t[:, None].to(x.dtype), v

    def rate(self, x: Tensor, v: Tensor, g: Tensor) -> Tensor:
        """Return the sum of max(0, v_i g_i), which is never negative."""
        return (v * g).clamp_min(0).sum(-1)

    def _evaluate(self, source: Any, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return U, its gradient and, where the bound asks for slopes, H v in the place of v' H v."""
        if self._thinner.needs_curvature:
            return source.gradient_and_product(x, v)
        return *source.gradient(x), None

    def rate_slope(self, x: Tensor, v: Tensor, g: Tensor, curvature: Tensor) -> Tensor:
        """Return the sum of v_i (H v)_i over the coordinates that climb."""
        return torch.where(v * g > 0, v * curvature, 0.0).sum(-1)

    def rate_after(self, x: Tensor, v: Tensor, g: Tensor, f: Tensor) -> Tensor:
        """Return the rate without the coordinate that has turned round."""
        return self.rate(x, v, g).double()

    def reflect(self, rng: RandomNumbers, x: Tensor, v: Tensor, g: Tensor) -> Tensor:
        """Turn one coordinate round, chosen in proportion to its rate."""
        heaped = (v * g).clamp_min(0).cumsum(-1)
        mark = rng.uniform((len(v), 1), v.dtype) * heaped[:, -1:]
        turning = (heaped <= mark).sum(-1, keepdim=True).clamp_max(v.shape[1] - 1)
        return v.scatter(1, turning, -v.gather(1, turning))

    def mean_rate(self, x: Tensor, g: Tensor) -> Tensor:
        """Return velocity sum |g_i| / 2."""
        return 0.5 * self.velocity * g.abs().sum(-1)

    def exact_lines(self, centre: Tensor, precision: Tensor) -> tuple[Lines, bool]:
        """Return each coordinate's rate, v_i (P (x - m))_i + t v_i (P v)_i."""

        def lines(x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            return v * ((x - centre) @ precision), v * (v @ precision)

        return lines, True

    def draw_velocity(self, rng: RandomNumbers, like: Tensor) -> Tensor:
        """Draw every sign anew."""
        signs = rng.uniform(like.shape, like.dtype) < 0.5
        return torch.where(signs, -self.velocity, self.velocity).to(like.dtype)
