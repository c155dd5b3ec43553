r"""Sample by stochastic-gradient Langevin dynamics.

$$x \leftarrow x - \tfrac\epsilon2 \nabla U(x) + \xi, \qquad \xi \sim N(0, \epsilon T I),$$

with a batch gradient and no accept step. Reference: M. Welling and Y. W. Teh, Bayesian learning via stochastic
gradient Langevin dynamics, ICML 2011, 681-688.
"""

from __future__ import annotations

from torch import Tensor

from bnnviz.samplers.base import REGISTRY, preset
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.sgmcmc.base import Move, StochasticGradient


@REGISTRY.add
class SGLD(StochasticGradient):
    """Stochastic-gradient Langevin dynamics: x - (eps / 2) grad U + N(0, eps T), without a Metropolis test.

    Gradients may come from batches. With a constant step size the stationary law has an O(eps) error: on a Gaussian of
    precision lambda the variance is 1 / (lambda (1 - eps lambda / 4)). Source: Welling and Teh 2011; the PDMP paper's
    baselines are SGLD, whose step size decays, and SGLD-ND, whose step size is constant (its code adds the noise to the
    gradient, which makes it eps^2 too cold, and moves by eps grad U).
    """

    registered = "sgld"
    title = "SGLD"

    presets = [
        preset("constant", "Constant step (SGLD-ND)", "The default.", decay=0.0),
        preset(
            "decaying",
            "Decaying step (Welling and Teh)",
            "Exponent 0.55, for which the bias vanishes asymptotically.",
            decay=0.55,
        ),
    ]

    def move(self, rng: RandomNumbers, x: Tensor, momentum: Tensor, g: Tensor, size: Tensor) -> Move:
        """Take half a step down the gradient and add noise of variance size x temperature."""
        drift = 0.5 * size * g
        noise = (size * self.temperature).sqrt() * rng.normal(x.shape, x.dtype)
        return Move(x - drift + noise, momentum, drift, noise)
