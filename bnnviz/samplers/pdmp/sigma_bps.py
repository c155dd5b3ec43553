r"""Sample by the Bouncy Particle Sampler with scales learned in a warm-up (sigma-BPS).

Target $\pi(x) \propto e^{-U(x)}$; with A = diag(std) of the path in a warm-up, and g the gradient of U at x:

$$\begin{aligned}
  \text{flow} &: \quad \phi_t(x, v) = (x + A v t, v) \\
  \text{rate} &: \quad \lambda(x, v) = \max(0, \langle v, A g \rangle) \\
  \text{bounce} &: \quad R_x v = v - 2 \frac{\langle A g, v \rangle}{\langle A g, A g \rangle}\, A g \\
  \text{refreshment} &: \quad v \sim N(0, \sigma^2 I) \quad \text{at rate } \lambda_r
  \end{aligned}$$

The velocity stored here is A v, that of x itself. As printed, a refreshment is $N(0, \sigma^2 A^2)$ in v, which the
reflection does not preserve: narrow coordinates come out narrower (``variant="paper"``).

Source: Goan, Perrin, Mengersen and Fookes 2023, section on sigma-BPS, doi:10.48550/arXiv.2302.08724.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.mcmc.metric import WindowSums
from bnnviz.samplers.pdmp.base import PDMP, as_in_the_paper, capped
from bnnviz.samplers.pdmp.bps import BouncyParticle
from bnnviz.samplers.pdmp.warmup import PathSums
from bnnviz.samplers.random import RandomNumbers

_LEAST = 1e-4  # of the largest scale: a coordinate that did not move in the warm-up can still move after it


@REGISTRY.add
class SigmaBPS(BouncyParticle, PDMP):
    """Bouncy Particle Sampler in coordinates that are scaled by A = diag(std), estimated in a warm-up.

    std is the time-averaged standard deviation of each chain's path in the second half of the warm-up (the paper: after
    1,000 events of a plain BPS; its code initialises the sums with 1, so that std >= 0.032).
    """

    registered = "sigma_bps"
    title = "sigma-BPS"
    rounds = 1

    presets: ClassVar[list[dict[str, Any]]] = [
        *as_in_the_paper(
            "Algorithm 2 with alpha 1 and R 2, draws at events, one batch held between events, scales from 1,000"
            " events, and refreshments with the variance of these scales, which biases narrow coordinates.",
            variant="paper",
            warmup_events=1000,
        ),
        capped(
            "Ten proposals",
            "Algorithm 2 as in the paper, with a bounce at the tenth proposal.",
            variant="paper",
            warmup_events=1000,
        ),
    ]

    warmup_events = settings.Integer(
        1000,
        bounds=(20, 1_000_000),
        doc="Number of events for estimating the scales, summed over chains.",
    )
    variant = settings.Choice(
        "corrected",
        objects=["corrected", "paper"],
        doc="Distribution of refreshed velocities. corrected: standard normal in scaled coordinates. paper: with"
        " variance std^2 in scaled coordinates, which the reflection does not preserve, so that the variance of narrow"
        " coordinates is too small.",
    )

    def first_scaling(self) -> Tensor:
        """Return scales of one."""
        return torch.ones(self.target.dim, dtype=self.target.dtype, device=self.target.device)

    def round_events(self, rounds_left: int) -> int:
        """Return the events of the plain Bouncy Particle."""
        return self.warmup_events

    def learned_scaling(self, sums: PathSums, points: WindowSums | None, before: Tensor) -> Tensor:
        """Return the standard deviation (dim,) of the path."""
        sd = sums.sd_within()
        return sd.clamp_min(_LEAST * float(sd.max())).to(self.target.dtype)

    def scaled_gradient(self, g: Tensor, scaling: Tensor) -> Tensor:
        """Return A^2 g."""
        return scaling.square() * g

    def draw_velocity(self, rng: RandomNumbers, like: Tensor, scaling: Tensor) -> Tensor:
        """Draw A v with v from N(0, velocity_sd^2 I), or with the paper's variance."""
        scale = scaling if self.variant == "corrected" else scaling.square()
        return self.velocity_sd * scale * rng.normal(like.shape, like.dtype)
